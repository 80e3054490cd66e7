"""``package.yaml``, and ``module.yaml`` of older packages: the package's description of itself.

An unknown key is refused, and the error suggests the key that was probably meant: if a misspelled ``requirements`` were
skipped, a package could be installed although its requirements are not met. The rules are those of spec runtime §10.2.

``module.yaml`` has rules of its own: it always belongs to a Module, and may have keys for catalogs and other tools; these are
known by name and ignored.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, type_name
from wharfinger.formats.version_constraint import parse_version
from wharfinger.formats.yaml.reader import YamlLimits, read_yaml
from wharfinger.packages.definition.module_folder import HOOKS_FOLDER
from wharfinger.packages.definition.requirements import Requirements, is_instance_name, is_package_name, package_of
from wharfinger.packages.definition.requirements_reader import MAX_ENTRIES, read_requirements
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.files.strict_fields import at, closed_object, flag, items, number, open_object, text

PACKAGE_FILE: Final = "package.yaml"
MODULE_FILE: Final = "module.yaml"
MAX_BYTES: Final = 1024 * 1024
MAX_WEIGHT: Final = 1_000_000

_LIMITS: Final = YamlLimits(max_bytes=MAX_BYTES, max_depth=32, max_nodes=50_000, max_characters=2 * MAX_BYTES)
_KEYS: Final = (
    "apiVersion",
    "type",
    "name",
    "version",
    "stage",
    "descriptions",
    "requirements",
    "subscriptions",
    "licensing",
    "disable",
    "weight",
    "critical",
    "exclusiveGroup",
    "batchHooks",
)
_ONLY_MODULES: Final = ("weight", "critical", "exclusiveGroup")
_LEGACY_KEYS: Final = ("name", "version", "weight", "stage", "critical", "descriptions", "requirements", "batchHooks")
_LEGACY_LEFT_ALONE: Final = (
    "accessibility",
    "description",
    "disable",
    "exclusiveGroup",
    "namespace",
    "subsystems",
    "tags",
    "update",
)


class PackageType(StrEnum):
    """The kind of resource that installs a package."""

    APPLICATION = "Application"
    MODULE = "Module"


@dataclass(frozen=True, slots=True)
class PackageFile:
    """The content of a ``package.yaml`` or ``module.yaml``; missing fields are "" or None. Only a Module has a ``weight``.

    ``subscriptions`` are packages by their names in the scheduler. ``bundles`` are the pairs (edition, bundle) in which the
    package is on by default. ``batch_hooks`` are executables that contain several hooks, relative to the package.
    """

    type: PackageType
    name: str
    version: str
    description: str
    stage: str
    requirements: Requirements
    weight: int | None
    critical: bool
    subscriptions: tuple[str, ...] = ()
    bundles: frozenset[tuple[str, str]] = frozenset()
    batch_hooks: tuple[str, ...] = ()
    exclusive_group: str = ""


def read_package_file(data: bytes, *, what: str = PACKAGE_FILE) -> PackageFile:
    """Read a ``package.yaml``. Raises ArtifactError naming ``what``, the field, and its problem."""
    try:
        entry = closed_object(_document(data, what), "", _KEYS)
        kind = _type(text(entry, "type", ""))
        if kind is PackageType.APPLICATION:
            _refuse_module_keys(entry)
        text(entry, "apiVersion", "")
        _check_disable(entry.get("disable"))
        return PackageFile(
            type=kind,
            name=_name(entry),
            version=_version(entry),
            description=_description(entry),
            stage=text(entry, "stage", ""),
            requirements=read_requirements(
                entry.get("requirements"), "requirements", of_module=kind is PackageType.MODULE
            ),
            weight=number(entry, "weight", "", most=MAX_WEIGHT),
            critical=flag(entry, "critical", ""),
            subscriptions=_subscriptions(entry),
            bundles=_bundles(entry.get("licensing")),
            batch_hooks=_batch_hooks(entry),
            exclusive_group=text(entry, "exclusiveGroup", ""),
        )
    except FormatError as error:
        raise _refusal(what, error) from error


def read_module_file(data: bytes, *, what: str = MODULE_FILE) -> PackageFile:
    """Read a ``module.yaml``. Raises ArtifactError naming ``what``, the field, and its problem."""
    try:
        entry = closed_object(_document(data, what), "", (*_LEGACY_KEYS, *_LEGACY_LEFT_ALONE))
        return PackageFile(
            type=PackageType.MODULE,
            name=_name(entry),
            version=_version(entry),
            description=_description(entry),
            stage=text(entry, "stage", ""),
            requirements=read_requirements(entry.get("requirements"), "requirements", legacy=True),
            weight=number(entry, "weight", "", most=MAX_WEIGHT),
            critical=flag(entry, "critical", ""),
            batch_hooks=_batch_hooks(entry),
        )
    except FormatError as error:
        raise _refusal(what, error) from error


def _document(data: bytes, what: str) -> JsonObject:
    document = read_yaml(data, what=what, limits=_LIMITS)
    if not isinstance(document, dict):
        raise ShapeError(f"expected an object, found {type_name(document)}")
    return document


def _type(written: str) -> PackageType:
    if not written:
        return PackageType.MODULE
    try:
        return PackageType(written)
    except ValueError as error:
        raise ShapeError(f"type: {written[:80]!r} is neither Application nor Module") from error


def _refuse_module_keys(entry: JsonObject) -> None:
    for key in _ONLY_MODULES:
        if entry.get(key) not in (None, False, ""):
            raise ShapeError(f"{key}: only a Module can have this field; remove it, or set type: Module")


def _name(entry: JsonObject) -> str:
    name = text(entry, "name", "")
    if name and not is_package_name(name):
        raise ShapeError(
            f"name: {name[:80]!r} cannot be a name: expected at most 63 lower-case letters, digits and '-'"
        )
    return name


def _version(entry: JsonObject) -> str:
    version = text(entry, "version", "")
    if version:
        try:
            parse_version(version)
        except FormatError as error:
            raise ShapeError(f"version: {error}") from error
    return version


def _description(entry: JsonObject) -> str:
    """Return the English description, or else the first description."""
    told = _texts(entry.get("descriptions"), "descriptions")
    return told.get("en") or next((each for each in told.values() if each), "")


def _texts(value: JsonValue, where: str) -> dict[str, str]:
    found = open_object(value, where)
    return {key: text(found, key, where) for key in found}


def _subscriptions(entry: JsonObject) -> tuple[str, ...]:
    """Return the scheduler's names of the packages that ``subscriptions`` lists. No package may be listed twice.

    A Module is listed by its name, and an Application as ``namespace/instance``.
    """
    found: dict[str, None] = {}
    written = items(entry, "subscriptions", "")
    if len(written) > MAX_ENTRIES:
        raise ShapeError(f"subscriptions: more than {MAX_ENTRIES} entries")
    for index, name in enumerate(written):
        where = at("subscriptions", index)
        if not isinstance(name, str):
            raise ShapeError(f"{where}: expected a string, found {type_name(name)}")
        namespace, slash, instance = name.rpartition("/")
        application = is_package_name(namespace) and is_instance_name(instance)
        if not (application if slash else is_package_name(name)):
            raise ShapeError(
                f"{where}: {name[:130]!r} cannot be a package; write the name of a Module, or an Application's namespace/instance"
            )
        package = package_of(name, "") if slash else name
        if package in found:
            raise ShapeError(f"{where}: {name} is listed twice; keep one of them")
        found[package] = None
    return tuple(found)


def _batch_hooks(entry: JsonObject) -> tuple[str, ...]:
    """Return the paths that ``batchHooks`` lists. All must lie below ``hooks``, and no path may be listed twice."""
    written = items(entry, "batchHooks", "")
    if len(written) > MAX_ENTRIES:
        raise ShapeError(f"batchHooks: more than {MAX_ENTRIES} entries")
    for index, path in enumerate(written):
        where = at("batchHooks", index)
        if not isinstance(path, str):
            raise ShapeError(f"{where}: expected a string, found {type_name(path)}")
        first, *steps = path.split("/")
        if first != HOOKS_FOLDER or not steps or not {"", ".", ".."}.isdisjoint(steps) or not path.isprintable():
            raise ShapeError(
                f"{where}: {path[:130]!r} is not the path of a hook; write a path such as {HOOKS_FOLDER}/main"
            )
        if path in written[:index]:
            raise ShapeError(f"{where}: {path} is listed twice; keep one of them")
    return tuple(str(path) for path in written)


def _bundles(value: JsonValue) -> frozenset[tuple[str, str]]:
    """Return the pairs (edition, bundle) in which the package is on by default. Editions without the package are skipped."""
    licensing = closed_object(value, "licensing", ("editions",))
    editions = open_object(licensing.get("editions"), "licensing.editions")
    if len(editions) > MAX_ENTRIES:
        raise ShapeError(f"licensing.editions: more than {MAX_ENTRIES} entries")
    found: set[tuple[str, str]] = set()
    for name, edition in editions.items():
        where = at("licensing.editions", name)
        if not name.strip():
            raise ShapeError(f"{where}: expected the name of an edition, found none")
        entry = closed_object(edition, where, ("available", "enabledInBundles"))
        bundles = _bundle_names(entry, where)
        if flag(entry, "available", where):
            found |= {(name.strip(), bundle) for bundle in bundles}
    return frozenset(found)


def _bundle_names(edition: JsonObject, where: str) -> tuple[str, ...]:
    found: list[str] = []
    written, where = items(edition, "enabledInBundles", where), at(where, "enabledInBundles")
    if len(written) > MAX_ENTRIES:
        raise ShapeError(f"{where}: more than {MAX_ENTRIES} entries")
    for index, bundle in enumerate(written):
        if not isinstance(bundle, str):
            raise ShapeError(f"{at(where, index)}: expected a string, found {type_name(bundle)}")
        if not bundle.strip():
            raise ShapeError(f"{at(where, index)}: expected the name of a bundle, found none")
        found.append(bundle.strip())
    return tuple(found)


def _check_disable(value: JsonValue) -> None:
    entry = closed_object(value, "disable", ("confirmation", "messages", "message"))
    flag(entry, "confirmation", "disable")
    text(entry, "message", "disable")
    _texts(entry.get("messages"), "disable.messages")


def _refusal(what: str, error: FormatError) -> ArtifactError:
    message = str(error)
    return ArtifactError(message if message.startswith(f"{what}:") else f"{what}: {message}")
