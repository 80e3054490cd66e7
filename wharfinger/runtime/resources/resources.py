"""Wharfinger's own custom resources as the runtime reads them (``wharfinger.dev/v1alpha1``; manifests in ``crds/``).

An API server validates them against the CRDs, but an older CRD, a webhook or a hand-edited object may let something through:
each reader here checks what it needs, and a :class:`SpecError` names the field and what it should have been.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    ShapeError,
    find,
    find_int,
    find_list,
    find_object,
    find_str,
    need_str,
    type_name,
)
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.packages.definition.depends_on import read_depends_on
from wharfinger.packages.definition.requirements import DependsOn
from wharfinger.packages.rendering.resource_overrides import WorkloadOverride, read_overrides
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE, AppId, ModuleId, PackageId
from wharfinger.runtime.resources.release_policy import Upkeep, read_upkeep
from wharfinger.runtime.resources.static_values import read_static_values

GROUP: Final = "wharfinger.dev"
VERSION: Final = "v1alpha1"
FINALIZER: Final = "wharfinger.dev/installed"
REQUESTED: Final = "wharfinger.dev/reconcile-requested-at"
FORCED: Final = "wharfinger.dev/force-requested-at"
RESET: Final = "wharfinger.dev/reset-requested-at"
SKIP_DELETE_HOOKS: Final = "wharfinger.dev/skip-delete-hooks"
"""An annotation, whatever its value: a removal goes on without the package's own hooks."""
IGNORE_DEPENDENTS: Final = "wharfinger.dev/ignore-dependents"
"""An annotation, ``"true"``: what others need may be changed, switched off or removed all the same."""
ENABLED_BY_DEFAULT: Final = "wharfinger.dev/enabled-by-default"
"""An annotation of a Module, ``"true"`` or ``"false"``: what its files say where ``spec.enabled`` says nothing."""
SETTINGS_MAP: Final = "wharfinger.dev/settings-map"
"""An annotation of a Module, ``NAMESPACE/NAME``: the ConfigMap that its settings are taken from, and written to by its hooks."""
NO_RECONCILIATION: Final = "NoResourceReconciliation"
"""The one mode of ``spec.maintenance``: what is applied is left to people."""
DEFAULT_REPOSITORY: Final = "default"
MAX_SETTINGS_SOURCES: Final = 64
DEFAULT_SETTINGS_KEY: Final = "settings.yaml"

APPLICATION: Final = ResourceType(GROUP, VERSION, "Application", "applications", namespaced=True)
MODULE: Final = ResourceType(GROUP, VERSION, "Module", "modules", namespaced=False)
PACKAGE_REPOSITORY: Final = ResourceType(GROUP, VERSION, "PackageRepository", "packagerepositories", namespaced=False)
SECRET: Final = ResourceType("", "v1", "Secret", "secrets", namespaced=True)
CONFIG_MAP: Final = ResourceType("", "v1", "ConfigMap", "configmaps", namespaced=True)

_OBJECT_NAME: Final = re.compile(r"[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?\Z")
_SOURCE_KINDS: Final = {"Secret": SECRET, "ConfigMap": CONFIG_MAP}


class SpecError(Exception):
    """A custom resource asks for something that cannot be; permanent until it is edited."""


@dataclass(frozen=True, slots=True)
class SettingsSource:
    """One entry of ``settingsFrom``: a key of a Secret or ConfigMap in the package's namespace.

    Without a ``path`` the key holds YAML, an object of settings; with one it holds the text of the setting at that path.
    """

    source: ObjectKey
    key: str
    path: tuple[str, ...]
    optional: bool

    @property
    def is_secret(self) -> bool:
        """Whatever comes from a Secret is shown nowhere."""
        return self.source.resource == SECRET


@dataclass(frozen=True, slots=True)
class Directives:
    """How a package is to be looked after, beside what it is and its settings.

    ``requested``, ``forced`` and ``reset`` are values of annotations (``wharfinger.dev/reconcile-requested-at``,
    ``force-requested-at``, ``reset-requested-at``), of which any change counts: to look at everything again; to ask the registry
    whatever is stored, and run everything; to forget one-time steps and what hooks have made of the values.
    """

    requested: str = ""
    forced: str = ""
    reset: str = ""
    suspended: bool = False
    """Nothing is reconciled, nothing is deleted, until it is False again."""
    maintenance: str = ""
    """NO_RECONCILIATION, or empty."""
    settings_version: int = 0
    """The version of the settings schema that the settings are written for; 0: the newest."""
    overrides: tuple[WorkloadOverride, ...] = ()
    """Replicas and resources of workloads, over what the chart says."""
    depends_on: tuple[DependsOn, ...] = ()
    """What the resource says it needs, beside what its package says."""
    upkeep: Upkeep = Upkeep()  # noqa: RUF009 - frozen
    """How what is applied is kept, and what becomes of it in the end."""
    ignore_dependents: bool = False
    """It may be changed or removed although others need it as it is."""
    default: bool | None = None
    """Whether a Module is on where nobody says so (ENABLED_BY_DEFAULT); None: that is not said either."""
    cluster_scope: bool = False
    """Whether an Application reaches beyond its own namespace; its namespace says so, its own resource cannot."""
    static_values: JsonObject | None = field(default=None, hash=False)
    """Of a Module from a modules directory: what that directory says, below what the module itself says. None: it is of none."""


@dataclass(frozen=True, slots=True)
class PackageSpec:
    """What an Application or a Module asks for, and how it was when it was last looked at."""

    id: PackageId
    generation: int
    package: str
    version: str
    repository: str
    settings: JsonObject
    settings_from: tuple[SettingsSource, ...]
    status: JsonObject
    """What was last written."""
    enabled: bool | None = None
    """A Module's ``spec.enabled``; None where nobody says so, and for an Application, which is on for as long as it is there."""
    directives: Directives = Directives()


def read_application(obj: JsonObject) -> PackageSpec:
    """Read an Application. Raises SpecError."""
    try:
        identity = AppId(find_str(obj, "metadata", "namespace"), find_str(obj, "metadata", "name"))
        return _read_package(obj, identity, package=_required(obj, "packageName"), enabled=None)
    except FormatError as error:
        raise SpecError(f"{error}; correct the Application's spec") from error


def read_module(obj: JsonObject, *, enabled_by_default: bool | None = True) -> PackageSpec:
    """Read a Module: its package is named like the Module itself unless it says otherwise. Raises SpecError.

    ``enabled_by_default``: whether it is wanted where ``spec.enabled`` does not say; None: others say, as a bundle does.
    """
    try:
        name = find_str(obj, "metadata", "name")
        identity = ModuleId(name, find_str(obj, "spec", "namespace", default=SYSTEM_NAMESPACE))
        package = find_str(obj, "spec", "packageName", default=name)
        enabled = enabled_by_default if _default(obj) is None else None
        if find(obj, "spec", "enabled") is not None:
            enabled = _flag(obj, "spec", "enabled", default=False)
        return _read_package(obj, identity, package=package, enabled=enabled)
    except FormatError as error:
        raise SpecError(f"{error}; correct the Module's spec") from error


def is_object_name(text: str) -> bool:
    """Whether an object may be called so (RFC 1123, a DNS subdomain)."""
    return _OBJECT_NAME.match(text) is not None


def is_deleting(obj: JsonObject) -> bool:
    """A deletion was asked for; finalizers hold the object."""
    return find(obj, "metadata", "deletionTimestamp") is not None


def ignores_dependents(obj: JsonObject) -> bool:
    """Whether its annotation says that those who need it do not matter; also of a resource whose spec cannot be read.

    Raises SpecError where it says neither true nor false.
    """
    return _yes_or_no(obj, IGNORE_DEPENDENTS) is True


def _yes_or_no(obj: JsonObject, annotation: str) -> bool | None:
    """What an annotation says; None where it is not there. Raises SpecError."""
    annotations = find(obj, "metadata", "annotations")
    said = annotations.get(annotation) if isinstance(annotations, dict) else None
    if said not in (None, "", "false", "true"):
        raise SpecError(f"metadata.annotations: {annotation}: {said!r:.80} is neither true nor false; correct it")
    return said == "true" if said else None


def _default(obj: JsonObject) -> bool | None:
    return _yes_or_no(obj, ENABLED_BY_DEFAULT)


def finalizers_of(obj: JsonObject) -> tuple[str, ...]:
    """``metadata.finalizers``; entries that are no strings are left out."""
    return tuple(entry for entry in find_list(obj, "metadata", "finalizers") if isinstance(entry, str))


def _read_package(obj: JsonObject, identity: PackageId, *, package: str, enabled: bool | None) -> PackageSpec:
    return PackageSpec(
        id=identity,
        generation=find_int(obj, "metadata", "generation"),
        package=package,
        version=_required(obj, "packageVersion"),
        repository=find_str(obj, "spec", "packageRepositoryName", default=DEFAULT_REPOSITORY),
        settings=find_object(obj, "spec", "settings"),
        settings_from=_settings_sources(obj, identity.namespace),
        status=find_object(obj, "status"),
        enabled=enabled,
        directives=_directives(obj, identity),
    )


def _directives(obj: JsonObject, identity: PackageId) -> Directives:
    annotations = find_object(obj, "metadata", "annotations")
    return Directives(
        requested=find_str(annotations, REQUESTED),
        forced=find_str(annotations, FORCED),
        reset=find_str(annotations, RESET),
        suspended=_flag(obj, "spec", "suspend", default=False),
        maintenance=_maintenance(obj),
        settings_version=_settings_version(obj),
        overrides=read_overrides(find(obj, "spec", "resourceRequests")),
        depends_on=read_depends_on(
            find(obj, "spec", "dependsOn"),
            own=identity.name,
            namespace=identity.namespace if isinstance(identity, AppId) else "",
        ),
        upkeep=read_upkeep(find_object(obj, "spec")),
        ignore_dependents=ignores_dependents(obj),
        default=_default(obj) if isinstance(identity, ModuleId) else None,
        static_values=read_static_values(obj) if isinstance(identity, ModuleId) else None,
    )


def _maintenance(obj: JsonObject) -> str:
    mode = find_str(obj, "spec", "maintenance")
    if mode not in ("", NO_RECONCILIATION):
        raise SpecError(f"spec.maintenance: {mode!r} is not {NO_RECONCILIATION}; correct it or leave it out")
    return mode


def _settings_version(obj: JsonObject) -> int:
    version = find_int(obj, "spec", "settingsVersion")
    if version < 0:
        raise SpecError(f"spec.settingsVersion: {version} is not the number of a version; 1 is the first")
    return version


def _settings_sources(obj: JsonObject, namespace: str) -> tuple[SettingsSource, ...]:
    entries = find_list(obj, "spec", "settingsFrom")
    if len(entries) > MAX_SETTINGS_SOURCES:
        raise SpecError(f"spec.settingsFrom: expected at most {MAX_SETTINGS_SOURCES} entries, found {len(entries)}")
    return tuple(_settings_source(entry, namespace, f"spec.settingsFrom[{at}]") for at, entry in enumerate(entries))


def _settings_source(entry: JsonValue, namespace: str, where: str) -> SettingsSource:
    kind, name = find_str(entry, "kind"), find_str(entry, "name")
    if kind not in _SOURCE_KINDS:
        raise SpecError(f"{where}.kind: {kind!r} is neither Secret nor ConfigMap")
    if not name:
        raise SpecError(f"{where}.name: required")
    path = find_str(entry, "path")
    parts = tuple(path.split(".")) if path else ()
    if not all(parts):
        raise SpecError(f"{where}.path: {path!r} is not a path of names such as database.password")
    key = find_str(entry, "key", default="" if parts else DEFAULT_SETTINGS_KEY)
    if not key:
        raise SpecError(f"{where}.key: required where a path is given")
    source = ObjectKey(_SOURCE_KINDS[kind], namespace, name)
    return SettingsSource(source, key, parts, _flag(entry, "optional", default=False))


def _flag(obj: JsonValue, *path: str, default: bool) -> bool:
    found = find(obj, *path)
    if found is None:
        return default
    if not isinstance(found, bool):
        raise ShapeError(f"{'.'.join(path)}: expected true or false, found {type_name(found)}")
    return found


def _required(obj: JsonObject, field: str) -> str:
    if not find_str(obj, "spec", field):
        raise SpecError(f"spec.{field}: required")
    return need_str(obj, "spec", field)
