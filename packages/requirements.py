"""What a package needs to be there: versions of Kubernetes and of the platform, and other modules.

Two ways of writing it (spec runtime §10.2). The long one has a bucket for each kind of need::

    requirements:
      kubernetes: {constraint: ">=1.30"}
      platform:   {constraint: ">=1.60"}          # or `deckhouse`, as existing packages call it
      modules:
        mandatory:   [{name: ingress, constraint: ">=1.2"}]
        conditional: [{name: metrics, constraint: "^2"}]     # only if it is there
        anyOf:  [{name: storage, description: "a default storage class", modules: [{name: ceph}, {name: nfs}]}]
        noneOf: [{name: other-ingress, modules: [{name: haproxy}]}]

The short one, older, says ``kubernetes: ">=1.30"`` and ``modules: {ingress: ">=1.2", metrics: "^2 !optional"}``, where
``!optional`` makes a need conditional. Which of the two ``modules`` is follows from its values: texts are the short one.

A module must not be needed in two contradicting ways; what contradicts is refused here, so that the scheduler never has to
choose.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from wharfinger.formats.json_value import JsonObject, JsonValue, ShapeError
from wharfinger.formats.version_constraint import ConstraintError, VersionConstraint, parse_constraint
from wharfinger.packages.strict_fields import at, closed_object, items, open_object, text

MAX_ENTRIES: Final = 512
"""Of one list."""
OPTIONAL: Final = "!optional"

_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\Z")
_BUCKETS: Final = ("mandatory", "conditional", "anyOf", "noneOf")


@dataclass(frozen=True, slots=True)
class Dependency:
    """Another module, and which of its versions will do."""

    name: str
    constraint: VersionConstraint


@dataclass(frozen=True, slots=True)
class DependencyGroup:
    """Modules of which at least one must be there (any-of), or none may be (none-of)."""

    name: str
    description: str
    members: tuple[Dependency, ...]


@dataclass(frozen=True, slots=True)
class Requirements:
    """Everything a package needs; None: any version will do."""

    kubernetes: VersionConstraint | None = None
    platform: VersionConstraint | None = None
    mandatory: tuple[Dependency, ...] = ()
    conditional: tuple[Dependency, ...] = ()
    any_of: tuple[DependencyGroup, ...] = ()
    none_of: tuple[DependencyGroup, ...] = ()


NO_REQUIREMENTS: Final = Requirements()


def is_package_name(name: str) -> bool:
    """Whether it can be the name of a package: a DNS label."""
    return _NAME.match(name) is not None


def read_requirements(value: JsonValue, where: str, *, legacy: bool = False) -> Requirements:
    """Read ``requirements`` in either form; ``where`` is its path. ``legacy``: as ``module.yaml`` has it.

    Raises ShapeError or ConstraintError with the path of what is wrong.
    """
    known = ("kubernetes", "platform", "deckhouse", "modules", *(("bootstrapped",) if legacy else ()))
    entry = closed_object(value, where, known)
    if entry.get("platform") is not None and entry.get("deckhouse") is not None:
        raise ShapeError(f"{at(where, 'deckhouse')}: the same as platform, which is there too; keep one of them")
    modules = open_object(entry.get("modules"), at(where, "modules"))
    # A bucket is never a text; a module's constraint in the short form is nothing else.
    has_texts = any(isinstance(each, str) for each in modules.values())
    has_lists = any(isinstance(each, list | dict) for each in modules.values())
    short = not has_lists and (has_texts or modules.keys().isdisjoint(_BUCKETS))
    needs = _short_form if short else _long_form
    mandatory, conditional, any_of, none_of = needs(modules, at(where, "modules"))
    return Requirements(
        kubernetes=_version_of(entry, "kubernetes", where),
        platform=_version_of(entry, "platform", where) or _version_of(entry, "deckhouse", where),
        mandatory=mandatory,
        conditional=conditional,
        any_of=any_of,
        none_of=none_of,
    )


_Needs = tuple[tuple[Dependency, ...], tuple[Dependency, ...], tuple[DependencyGroup, ...], tuple[DependencyGroup, ...]]


def _short_form(modules: JsonObject, where: str) -> _Needs:
    mandatory: list[Dependency] = []
    conditional: list[Dependency] = []
    if len(modules) > MAX_ENTRIES:
        raise ShapeError(f"{where}: more than {MAX_ENTRIES} modules")
    for name in modules:
        path = at(where, name)
        _check_name(name, path)
        written = text(modules, name, where)
        stripped = written.removesuffix(OPTIONAL).strip()
        bucket = mandatory if stripped == written else conditional
        bucket.append(Dependency(name, _constraint(stripped, path)))
    return tuple(mandatory), tuple(conditional), (), ()


def _long_form(modules: JsonObject, where: str) -> _Needs:
    closed_object(modules, where, _BUCKETS)
    mandatory = _dependencies(modules, "mandatory", where)
    conditional = _dependencies(modules, "conditional", where)
    for number, each in enumerate(conditional):
        if not each.constraint.text:
            path = at(at(where, "conditional"), number)
            raise ShapeError(f"{path}.constraint: required for {each.name}: without one the need says nothing")
    any_of = _groups(modules, "anyOf", where)
    none_of = _groups(modules, "noneOf", where)
    places: dict[str, str] = {}
    for bucket, names in (
        ("mandatory", (each.name for each in mandatory)),
        ("conditional", (each.name for each in conditional)),
        ("anyOf", _members(any_of)),
        ("noneOf", _members(none_of)),
    ):
        for name in names:
            other = places.setdefault(name, bucket)
            if other != bucket:
                raise ShapeError(f"{at(where, bucket)}: {name} is in {other} too; a module is in one of them")
    return mandatory, conditional, any_of, none_of


def _members(groups: Iterable[DependencyGroup]) -> Iterable[str]:
    return (member.name for group in groups for member in group.members)


def _dependencies(entry: JsonObject, key: str, where: str) -> tuple[Dependency, ...]:
    """A list of ``{name, constraint?}``; each module once."""
    path = at(where, key)
    found: dict[str, Dependency] = {}
    for number, value in enumerate(_bounded(items(entry, key, where), path)):
        here = at(path, number)
        member = closed_object(value, here, ("name", "constraint"))
        name = text(member, "name", here)
        _check_name(name, f"{here}.name")
        if name in found:
            raise ShapeError(f"{here}.name: {name} is named twice; join its constraints with a comma")
        found[name] = Dependency(name, _constraint(text(member, "constraint", here), f"{here}.constraint"))
    return tuple(found.values())


def _groups(entry: JsonObject, key: str, where: str) -> tuple[DependencyGroup, ...]:
    path = at(where, key)
    found: dict[str, DependencyGroup] = {}
    for number, value in enumerate(_bounded(items(entry, key, where), path)):
        here = at(path, number)
        group = closed_object(value, here, ("name", "description", "modules"))
        name = text(group, "name", here)
        if not name:
            raise ShapeError(f"{here}.name: required; messages call the group by it")
        if name in found:
            raise ShapeError(f"{here}.name: a second group {name[:100]!r} in {key}; give each its own name")
        members = _dependencies(group, "modules", here)
        if not members:
            raise ShapeError(f"{here}.modules: at least one is needed")
        found[name] = DependencyGroup(name, text(group, "description", here), members)
    return tuple(found.values())


def _bounded(found: list[JsonValue], path: str) -> list[JsonValue]:
    if len(found) > MAX_ENTRIES:
        raise ShapeError(f"{path}: more than {MAX_ENTRIES} entries")
    return found


def _version_of(entry: JsonObject, key: str, where: str) -> VersionConstraint | None:
    """``key: ">=1.30"`` or ``key: {constraint: ">=1.30"}``."""
    path = at(where, key)
    value = entry.get(key)
    if isinstance(value, str | None):
        written = text(entry, key, where)
    else:
        written = text(closed_object(value, path, ("constraint",)), "constraint", path)
    return _constraint(written, path) if written else None


def _constraint(written: str, path: str) -> VersionConstraint:
    try:
        return parse_constraint(written)
    except ConstraintError as error:
        raise ConstraintError(f"{path}: {error}") from error


def _check_name(name: str, path: str) -> None:
    if not name:
        raise ShapeError(f"{path}: required")
    if not is_package_name(name):
        raise ShapeError(
            f"{path}: {name[:80]!r} cannot be a module: lower-case letters, digits and '-', at most 63 of them"
        )
