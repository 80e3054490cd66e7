"""The definition of a package, read once from the files of its tree when the package is loaded.

There are four layouts. The first layout in this table that fits the files in the folder counts:

==============  ==========================================================  =======================================
layout          has                                                         installed by
==============  ==========================================================  =======================================
PACKAGE         ``package.yaml``, or ``module.yaml`` of older packages      the kind in ``type``, else a Module
MODULE_FOLDER   one of these: ``hooks/``, ``openapi/``, ``enabled``, or a   a Module
                weight in its name. Without a ``Chart.yaml``, one of
                ``templates/``, ``crds/`` and a section of its own in
                ``values.yaml`` is enough. Every folder in a modules
                directory has this layout, too
CHART           ``Chart.yaml``                                              an Application or a Module
MANIFESTS       ``kustomization.yaml``, or else manifests (``*.yaml``) at   an Application or a Module
                its top
==============  ==========================================================  =======================================

If the content of a file is not valid, the package is refused here, and the error names the file and the field. Of folders such
as ``hooks/``, only the existence is recorded here; the part that runs hooks reads them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find_str, type_name
from wharfinger.formats.schemas.openapi_schema import Schema, compile_schema
from wharfinger.formats.schemas.transforms import closed, extended, required_for_helm
from wharfinger.formats.version_constraint import parse_version
from wharfinger.packages.charts.chart import CHART_FILE, MAX_CHART_FILE, Chart, read_chart_file, synthetic_chart
from wharfinger.packages.definition.conversions import NO_CONVERSIONS, ConversionChain, read_conversions
from wharfinger.packages.definition.manifest_folder import is_kustomization, is_manifest_folder, read_manifests
from wharfinger.packages.definition.module_folder import (
    CRDS_FOLDER,
    ENABLED_SCRIPT,
    HOOKS_FOLDER,
    TEMPLATES_FOLDER,
    VALUES_FILE,
    camel_name,
    check_module_name,
    is_module_folder,
    own_section,
    split_weight,
)
from wharfinger.packages.definition.package_file import (
    MAX_BYTES,
    MODULE_FILE,
    PACKAGE_FILE,
    PackageFile,
    PackageType,
    read_module_file,
    read_package_file,
)
from wharfinger.packages.definition.requirements import NO_REQUIREMENTS, Requirements, is_package_name
from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import ArtifactError, DigestError
from wharfinger.packages.files.package_files import PackageFiles, open_files

DEFAULT_WEIGHT: Final = 999
"""The weight of packages without a weight of their own. Usual weights are lower, so these packages run last."""
UNNUMBERED_WEIGHT: Final = 1
"""The weight, in a modules directory, of module folders whose names have no number (spec hook-protocol §5.4)."""
MAX_IMAGES: Final = 10_000

SETTINGS_SCHEMAS: Final = ("openapi/settings.yaml", "openapi/config-values.yaml")
VALUES_SCHEMA: Final = "openapi/values.yaml"
IMAGES_FILE: Final = "images_digests.json"
VERSION_FILE: Final = "version.json"


class Layout(StrEnum):
    """The layout of a package's folder."""

    CHART = "Chart"
    PACKAGE = "Package"
    MODULE_FOLDER = "ModuleFolder"
    MANIFESTS = "Manifests"


@dataclass(frozen=True, slots=True)
class Definition:
    """A package as its files define it.

    If ``type`` is None, an Application or a Module may install the package. Packages with a lower ``weight`` run first; the
    weight in a ``package.yaml`` counts only together with ``critical: true``. ``chart`` is None if there is nothing to render.
    ``static_values`` are the package's own values, without the key of their section. ``images`` maps an image's name to its
    digest.
    """

    layout: Layout
    type: PackageType | None
    name: str
    version: str
    description: str
    stage: str
    requirements: Requirements
    weight: int
    critical: bool
    chart: Chart | None
    static_values: JsonObject = field(repr=False)
    settings_schema: Schema | None = field(repr=False)
    values_schema: Schema | None = field(repr=False)
    helm_schema: Schema | None = field(repr=False)
    hooks: bool
    enabled_script: bool
    crds: bool
    images: Mapping[str, str] = field(repr=False)
    conversions: ConversionChain = field(default=NO_CONVERSIONS, repr=False)
    """The conversions of settings from older versions of the schema to the newest version."""
    subscriptions: tuple[str, ...] = ()
    """The names of other packages, as in the scheduler. When one of these packages runs again, this package runs again, too."""
    bundles: frozenset[tuple[str, str]] = frozenset()
    """The pairs (edition, bundle) in which a Module is on by default."""
    batch_hooks: tuple[str, ...] = ()
    """Executables that contain several hooks, as paths in the package. ``package.yaml`` or ``module.yaml`` lists them."""
    exclusive_group: str = ""
    """The group of the Module; only one Module of a group may be on. "" if it is not in a group."""

    @property
    def camel(self) -> str:
        """The key under which hooks and templates see the package's values."""
        return camel_name(self.name)

    @property
    def recorded_chart(self) -> JsonObject:
        """The chart's metadata for the record of a release.

        ``helm list`` shows the recorded version. It is the version of the package. If the package is a plain chart, or if its
        version is only a tag such as ``latest``, the recorded version is that of the chart.

        Templates always see the version of the chart, which may differ from that of the package.
        """
        if self.chart is None:
            return {}
        if self.layout is Layout.CHART or _comparable(self.version) is None:
            return self.chart.metadata
        return {**self.chart.metadata, "version": self.version}

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about oddities of ``Chart.yaml`` that are accepted."""
        return self.chart.warnings if self.chart is not None else ()

    @property
    def chart_file(self) -> JsonObject | None:
        """The content of Chart.yaml that a render request states in `chart_file`.

        None if there is no chart, or if the package is a plain chart, because Helm then reads the chart's own file.
        """
        return None if self.layout is Layout.CHART or self.chart is None else self.chart.metadata


def read_definition(tree: Path, *, name: str, version: str, in_modules_dir: bool = False) -> Definition:
    """Read the package in ``tree``, which was requested by ``name`` and ``version`` ("": any version).

    If ``name`` is a path, only its last part counts. The requested name and version must agree with those in the package's files,
    and are used if the files state none. A plain chart always has its own name and version, whatever was requested. If a tree
    has neither ``package.yaml`` nor ``module.yaml``, and lies in a modules directory (``in_modules_dir``) or has a weight in
    its name, it is a module folder, even if it is also a chart. Blocking. Raises ArtifactError naming a file relative to the
    package.
    """
    name = name.rpartition("/")[2]
    files = open_files(tree, name)
    if files.has_file(PACKAGE_FILE):
        return _package(files, read_package_file(_need(files, PACKAGE_FILE)), PACKAGE_FILE, name, version)
    if files.has_file(MODULE_FILE):
        own_name = split_weight(name)[1]
        return _package(files, read_module_file(_need(files, MODULE_FILE)), MODULE_FILE, own_name, version)
    weight, own_name = split_weight(name)
    if in_modules_dir or weight is not None or is_module_folder(files, own_name):
        unnumbered = UNNUMBERED_WEIGHT if in_modules_dir else DEFAULT_WEIGHT
        return _module_folder(files, own_name, unnumbered if weight is None else weight, version)
    if files.has_file(CHART_FILE):
        return _plain_chart(files)
    if is_kustomization(files) or is_manifest_folder(files):
        return _manifests(files, own_name, version)
    raise ArtifactError(
        f"package {name[:80]!r}: expected {PACKAGE_FILE}, a Helm chart ({CHART_FILE}), a module "
        f"folder ({HOOKS_FOLDER}/, openapi/, {ENABLED_SCRIPT}, {TEMPLATES_FOLDER}/ or {CRDS_FOLDER}/), or manifests "
        f"(*.yaml); add a {PACKAGE_FILE}"
    )


def _plain_chart(files: PackageFiles) -> Definition:
    return _plain(Layout.CHART, _own_chart(files), crds=files.has_folder(CRDS_FOLDER))


def _manifests(files: PackageFiles, name: str, version: str) -> Definition:
    if not is_package_name(name):
        raise ArtifactError(f"package {name[:80]!r}: expected a name of lower-case letters, digits and '-'")
    if not is_kustomization(files):
        read_manifests(files)
    version = _agreed_version(files, {}, version, None)
    return replace(_plain(Layout.MANIFESTS, synthetic_chart(files.root, name, version), crds=False), version=version)


def _plain(layout: Layout, chart: Chart, *, crds: bool) -> Definition:
    """Return the definition of a package that is only a chart, or only manifests."""
    return Definition(
        layout=layout,
        type=None,
        name=chart.name,
        version=chart.version,
        description=chart.description,
        stage="",
        requirements=NO_REQUIREMENTS,
        weight=DEFAULT_WEIGHT,
        critical=False,
        chart=chart,
        static_values={},
        settings_schema=None,
        values_schema=None,
        helm_schema=None,
        hooks=False,
        enabled_script=False,
        crds=crds,
        images=MappingProxyType({}),
    )


def _package(files: PackageFiles, said: PackageFile, what: str, name: str, version: str) -> Definition:
    if not is_package_name(name):
        raise ArtifactError(f"package {name[:80]!r}: expected a name of lower-case letters, digits and '-'")
    if said.name and said.name != name:
        raise ArtifactError(f"{what}: name: {said.name} was published as {name!r}; rename one of them")
    own_chart = _own_chart(files) if files.has_file(CHART_FILE) else None
    version = _agreed_version(files, {what: said.version}, version, own_chart)
    settings, values, helm = read_schemas(files)
    return Definition(
        layout=Layout.PACKAGE,
        type=said.type,
        name=name,
        version=version,
        description=said.description,
        stage=said.stage,
        requirements=said.requirements,
        weight=said.weight if said.critical and said.weight is not None else DEFAULT_WEIGHT,
        critical=said.critical,
        chart=own_chart or _chart_to_make(files, name, version),
        static_values=_flat_or_scoped(files, name),
        settings_schema=settings,
        values_schema=values,
        helm_schema=helm,
        hooks=files.has_folder(HOOKS_FOLDER),
        enabled_script=said.type is PackageType.MODULE and files.has_file(ENABLED_SCRIPT),
        crds=files.has_folder(CRDS_FOLDER),
        images=_images(files, name),
        conversions=_conversions(files, settings),
        subscriptions=said.subscriptions,
        bundles=said.bundles,
        exclusive_group=said.exclusive_group,
        batch_hooks=said.batch_hooks,
    )


def _module_folder(files: PackageFiles, name: str, weight: int, version: str) -> Definition:
    check_module_name(name)
    own_chart = _own_chart(files) if files.has_file(CHART_FILE) else None
    version = _agreed_version(files, {}, version, own_chart)
    settings, values, helm = read_schemas(files)
    return Definition(
        layout=Layout.MODULE_FOLDER,
        type=PackageType.MODULE,
        name=name,
        version=version,
        description=own_chart.description if own_chart is not None else "",
        stage="",
        requirements=NO_REQUIREMENTS,
        weight=weight,
        critical=False,
        chart=own_chart or _chart_to_make(files, name, version),
        static_values=own_section(files.read_object(VALUES_FILE) or {}, name),
        settings_schema=settings,
        values_schema=values,
        helm_schema=helm,
        hooks=files.has_folder(HOOKS_FOLDER),
        enabled_script=files.has_file(ENABLED_SCRIPT),
        crds=files.has_folder(CRDS_FOLDER),
        images=_images(files, name),
        conversions=_conversions(files, settings),
    )


def _need(files: PackageFiles, name: str) -> bytes:
    return files.read(name, limit=MAX_BYTES) or b""


def _own_chart(files: PackageFiles) -> Chart:
    data = files.read(CHART_FILE, limit=MAX_CHART_FILE) or b""
    return replace(read_chart_file(data, Path()), folder=files.root)


def _chart_to_make(files: PackageFiles, name: str, version: str) -> Chart | None:
    """Return a synthetic chart for a package without ``Chart.yaml``; None if the package has nothing to render."""
    if files.has_folder(TEMPLATES_FOLDER) or files.has_folder(CRDS_FOLDER):
        return synthetic_chart(files.root, name, version)
    return None


def _agreed_version(files: PackageFiles, said: dict[str, str], asked: str, chart: Chart | None) -> str:
    """Return the version in the package's files, else the requested version. If both are semantic versions, they must be equal.

    A chart's version is independent of the package's, and is used only if no other version is known.
    """
    told = files.read_object(VERSION_FILE) or {}
    try:
        said = said | {VERSION_FILE: find_str(told, "version")}
    except FormatError as error:
        raise ArtifactError(f"{VERSION_FILE}: {error}") from error
    versions = {what: each for what, each in said.items() if each}
    expected = _comparable(asked)
    for what, each in versions.items():
        found = _comparable(each)
        if found is None:
            raise ArtifactError(f"{what}: version: {each[:80]!r} is not a version, such as 1.2.3")
        if expected is not None and found != expected:
            raise ArtifactError(f"{what}: version: {each} was published as {asked}; publish it under its own version")
    if not versions and expected is None and chart is not None:
        return chart.version
    return next(iter(versions.values()), asked)


def _comparable(version: str) -> str | None:
    """Return a version in its canonical spelling; None for a text that is not a version, such as the tag `latest`."""
    try:
        return str(parse_version(version))
    except FormatError:
        return None


def _flat_or_scoped(files: PackageFiles, name: str) -> JsonObject:
    """Return the own values of a package with a ``package.yaml`` or ``module.yaml``.

    Its ``values.yaml`` has them flat, or all in one section named after the package.
    """
    values = files.read_object(VALUES_FILE) or {}
    key = camel_name(name)
    beside = values.keys() - {key, f"{key}Enabled", "global"}
    return own_section(values, name) if isinstance(values.get(key), dict) and not beside else values


def read_schemas(files: PackageFiles) -> tuple[Schema | None, Schema | None, Schema | None]:
    """Read the schemas of settings, of values, and of values for Helm. Raises ArtifactError naming the file."""
    settings_file = next((name for name in SETTINGS_SCHEMAS if files.has_file(name)), SETTINGS_SCHEMAS[0])
    settings = files.read_object(settings_file)
    values = files.read_object(VALUES_SCHEMA)
    what = settings_file
    try:
        settings_schema = None if settings is None else compile_schema(closed(settings), what=what)
        if values is None:
            return settings_schema, None, None
        what = VALUES_SCHEMA
        if values.get("x-extend") is not None and settings is None:
            raise ArtifactError(f"{what}: x-extend: there is no schema to extend; add {SETTINGS_SCHEMAS[0]}")
        values = closed(extended(values, settings or {}))
        helm_schema = compile_schema(required_for_helm(values), what=what)
        return settings_schema, compile_schema(values, what=what), helm_schema
    except FormatError as error:
        message = str(error).removeprefix("schema: ")
        raise ArtifactError(message if message.startswith(f"{what}:") else f"{what}: {message}") from error


def _conversions(files: PackageFiles, settings: Schema | None) -> ConversionChain:
    schema_file = next((name for name in SETTINGS_SCHEMAS if files.has_file(name)), SETTINGS_SCHEMAS[0])
    return read_conversions(files, {} if settings is None else settings.document, schema_file)


def _images(files: PackageFiles, name: str) -> Mapping[str, str]:
    """Return the digests of images by the images' names. The file has the form ``{"image": "sha256:…"}``, or contains such an
    object under the package's name.
    """
    found = files.read_object(IMAGES_FILE) or {}
    for key in (camel_name(name), name):
        section = found.get(key)
        if isinstance(section, dict):
            found = section
            break
    if len(found) > MAX_IMAGES:
        raise ArtifactError(f"{IMAGES_FILE}: more than {MAX_IMAGES} images")
    images: dict[str, str] = {}
    for image, digest in found.items():
        if not isinstance(digest, str):
            raise ArtifactError(f"{IMAGES_FILE}: {image[:80]}: expected a digest, found {type_name(digest)}")
        try:
            images[image] = Digest(digest).text
        except DigestError as error:
            raise ArtifactError(f"{IMAGES_FILE}: {image[:80]}: {error}") from error
    return MappingProxyType(images)
