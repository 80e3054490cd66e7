"""``package.yaml``, and ``module.yaml`` of older packages: what a package says about itself.

Every key is known, and one that is not is refused with the key it was probably meant to be: a misspelt ``requirements`` that is
skipped would install a package where it must not be. The rules are those of spec runtime §10.2, in both of its spellings.

``module.yaml`` has rules of its own: it is always a Module's, and may carry keys that are for catalogues and other tools; these
are known by name and left alone.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import JsonObject, JsonValue, ShapeError, type_name
from wharfinger.formats.version_constraint import parse_version
from wharfinger.formats.yaml_reader import YamlLimits, read_yaml
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.requirements import Requirements, is_package_name, read_requirements
from wharfinger.packages.strict_fields import at, closed_object, flag, items, number, open_object, text

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
    "licensing",
    "disable",
    "weight",
    "critical",
    "exclusiveGroup",
)
_ONLY_MODULES: Final = ("weight", "critical", "exclusiveGroup")
_LEGACY_KEYS: Final = ("name", "version", "weight", "stage", "critical", "descriptions", "requirements")
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
    """Which kind of resource installs a package."""

    APPLICATION = "Application"
    MODULE = "Module"


@dataclass(frozen=True, slots=True)
class PackageFile:
    """What the file says; "" and None where it does not. ``weight`` is only ever a Module's."""

    type: PackageType
    name: str
    version: str
    description: str
    stage: str
    requirements: Requirements
    weight: int | None
    critical: bool


def read_package_file(data: bytes, *, what: str = PACKAGE_FILE) -> PackageFile:
    """Read a ``package.yaml``. Raises ArtifactError naming ``what``, the field, and what is wrong with it."""
    try:
        entry = closed_object(_document(data, what), "", _KEYS)
        kind = _type(text(entry, "type", ""))
        if kind is PackageType.APPLICATION:
            _refuse_module_keys(entry)
        text(entry, "apiVersion", "")
        text(entry, "exclusiveGroup", "")
        _check_licensing(entry.get("licensing"))
        _check_disable(entry.get("disable"))
        return PackageFile(
            type=kind,
            name=_name(entry),
            version=_version(entry),
            description=_description(entry),
            stage=text(entry, "stage", ""),
            requirements=read_requirements(entry.get("requirements"), "requirements"),
            weight=number(entry, "weight", "", most=MAX_WEIGHT),
            critical=flag(entry, "critical", ""),
        )
    except FormatError as error:
        raise _refusal(what, error) from error


def read_module_file(data: bytes, *, what: str = MODULE_FILE) -> PackageFile:
    """Read a ``module.yaml``. Raises ArtifactError naming ``what``, the field, and what is wrong with it."""
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
            raise ShapeError(f"{key}: only a Module has it; remove it, or say type: Module")


def _name(entry: JsonObject) -> str:
    name = text(entry, "name", "")
    if name and not is_package_name(name):
        raise ShapeError(
            f"name: {name[:80]!r} cannot be a name: lower-case letters, digits and '-', at most 63 of them"
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
    """The English one, else the first."""
    told = _texts(entry.get("descriptions"), "descriptions")
    return told.get("en") or next((each for each in told.values() if each), "")


def _texts(value: JsonValue, where: str) -> dict[str, str]:
    found = open_object(value, where)
    return {key: text(found, key, where) for key in found}


def _check_licensing(value: JsonValue) -> None:
    licensing = closed_object(value, "licensing", ("editions",))
    editions = open_object(licensing.get("editions"), "licensing.editions")
    for name, edition in editions.items():
        where = at("licensing.editions", name)
        entry = closed_object(edition, where, ("available", "enabledInBundles"))
        flag(entry, "available", where)
        for index, bundle in enumerate(items(entry, "enabledInBundles", where)):
            if not isinstance(bundle, str):
                path = at(f"{where}.enabledInBundles", index)
                raise ShapeError(f"{path}: expected a string, found {type_name(bundle)}")


def _check_disable(value: JsonValue) -> None:
    entry = closed_object(value, "disable", ("confirmation", "messages", "message"))
    flag(entry, "confirmation", "disable")
    text(entry, "message", "disable")
    _texts(entry.get("messages"), "disable.messages")


def _refusal(what: str, error: FormatError) -> ArtifactError:
    message = str(error)
    return ArtifactError(message if message.startswith(f"{what}:") else f"{what}: {message}")
