"""The requirements in the resource of a package (``spec.dependsOn``), in addition to those in the package's files.

::

    dependsOn:
      - {kind: Application, name: database, version: "^3"}      # of the same namespace
      - {kind: Application, namespace: shared, name: mail}
      - {kind: Module, name: ingress, version: ">=1.2"}

A Module has no namespace, so a Module that depends on an Application must name the Application's namespace. All entries
are mandatory; other kinds of requirements can only be written in the files of a package.
"""

from collections.abc import Sequence
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, checksum, type_name
from wharfinger.formats.listing import with_article
from wharfinger.packages.definition.requirements import DependsOn, is_instance_name, is_package_name
from wharfinger.packages.definition.requirements_reader import constraint_at
from wharfinger.packages.files.strict_fields import at, closed_object, text

FIELD: Final = "spec.dependsOn"
MAX_DEPENDS_ON: Final = 64

_KINDS: Final = ("Application", "Module")
_KEYS: Final = ("kind", "name", "namespace", "version")


def read_depends_on(value: JsonValue, *, own: str, namespace: str, where: str = FIELD) -> tuple[DependsOn, ...]:
    """Read ``spec.dependsOn``; null and an empty list give ().

    ``own`` is the scheduler's name of the package that has the list, ``namespace`` its namespace ("" for a Module). Raises
    ShapeError or ConstraintError naming the field and the expected value.
    """
    entries = [] if value is None else value
    if not isinstance(entries, list):
        raise ShapeError(f"{where}: expected a list, found {type_name(entries)}")
    if len(entries) > MAX_DEPENDS_ON:
        raise ShapeError(f"{where}: expected at most {MAX_DEPENDS_ON} entries, found {len(entries)}")
    found: dict[str, DependsOn] = {}
    for index, entry in enumerate(entries):
        here = at(where, index)
        one = _read_one(closed_object(entry, here, _KEYS), namespace, here)
        if one.package == own:
            raise ShapeError(f"{here}: this names the {one.kind} itself; a package cannot depend on itself")
        if one.package in found:
            raise ShapeError(f"{here}: {one} is listed twice; join its versions with a comma")
        found[one.package] = one
    return tuple(found.values())


def depends_on_checksum(depends_on: Sequence[DependsOn]) -> str:
    """Return a canonical checksum, in which the order of entries does not matter; "" without entries."""
    entries: list[JsonValue] = [
        [each.package, each.constraint.text] for each in sorted(depends_on, key=lambda each: each.package)
    ]
    return checksum(entries) if entries else ""


def _read_one(entry: JsonObject, namespace: str, where: str) -> DependsOn:
    kind, name, given = text(entry, "kind", where), text(entry, "name", where), text(entry, "namespace", where)
    if kind not in _KINDS:
        raise ShapeError(f"{where}.kind: {kind[:80]!r} is neither Application nor Module")
    if not name:
        raise ShapeError(f"{where}.name: required")
    if not (is_instance_name(name) if kind == "Application" else is_package_name(name)):
        raise ShapeError(f"{where}.name: {name[:80]!r} cannot be the name of {with_article(kind)}")
    if kind == "Module":
        if given:
            raise ShapeError(f"{where}.namespace: a Module has no namespace; leave it out")
        namespace = ""
    elif not (namespace := given or namespace):
        raise ShapeError(f"{where}.namespace: required, since a Module has no namespace of its own")
    elif not is_package_name(namespace):
        raise ShapeError(f"{where}.namespace: {namespace[:80]!r} cannot be a namespace")
    return DependsOn(kind, namespace, name, constraint_at(text(entry, "version", where), f"{where}.version"))
