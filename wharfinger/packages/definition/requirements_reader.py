"""The reader of requirements in ``package.yaml`` and ``module.yaml``.

There are two forms (spec runtime §10.2). The long form has a bucket for each kind of requirement::

    requirements:
      kubernetes: {constraint: ">=1.30"}
      platform:   {constraint: ">=1.60"}          # or `deckhouse`, as existing packages call it
      modules:
        mandatory:   [{name: ingress, constraint: ">=1.2"}]
        conditional: [{name: metrics, constraint: "^2"}]     # if it is on, its version must match
        anyOf:  [{name: storage, description: "a default storage class", modules: [{name: ceph}, {name: nfs}]}]
        noneOf: [{name: other-ingress, modules: [{name: haproxy}]}]
      applications:                               # the same four buckets
        mandatory: [{name: database, constraint: "^3"}, {name: shared/mail}]
        anyOf: [{name: cache, applications: [{name: redis}, {name: shared/valkey}]}]

The short form is older. It is ``kubernetes: ">=1.30"`` and ``modules: {ingress: ">=1.2", metrics: "^2 !optional"}``, where
``!optional`` makes a requirement conditional. If the values of ``modules`` are strings, it is the short form. Applications
can only be written in the long form.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError
from wharfinger.formats.version_constraint import ConstraintError, VersionConstraint, parse_constraint
from wharfinger.packages.definition.requirements import (
    ApplicationNeeds,
    Dependency,
    DependencyGroup,
    Requirements,
    check_buckets,
    is_instance_name,
    is_package_name,
)
from wharfinger.packages.files.strict_fields import at, closed_object, items, open_object, text

MAX_ENTRIES: Final = 512
"""The maximum number of entries in one list of a package's requirements, such as the required modules."""
MAX_GROUP_NAME: Final = 100
MAX_DESCRIPTION: Final = 300
"""The largest number of characters in a group's description. Messages about other packages quote the description."""
OPTIONAL: Final = "!optional"

_BUCKETS: Final = ("mandatory", "conditional", "anyOf", "noneOf")


def read_requirements(value: JsonValue, where: str, *, legacy: bool = False, of_module: bool = False) -> Requirements:
    """Read ``requirements``, in which ``modules`` has the short or the long form; ``where`` is its path. With ``legacy``, read
    it by the rules of ``module.yaml``.

    ``of_module`` is True for requirements of a module: a Module has no namespace, so it must name applications with their
    namespaces. Raises ShapeError or ConstraintError with the path of the problem.
    """
    known = ("kubernetes", "platform", "deckhouse", "modules", "bootstrapped" if legacy else "applications")
    entry = closed_object(value, where, known)
    if entry.get("platform") is not None and entry.get("deckhouse") is not None:
        raise ShapeError(f"{at(where, 'deckhouse')}: means the same as platform, which is also set; keep one of them")
    modules = open_object(entry.get("modules"), at(where, "modules"))
    # A bucket is never a string; a module's constraint in the short form always is.
    has_texts = any(isinstance(each, str) for each in modules.values())
    has_lists = any(isinstance(each, list | dict) for each in modules.values())
    short = not has_lists and (has_texts or modules.keys().isdisjoint(_BUCKETS))
    path = at(where, "modules")
    needs = _short_form(modules, path) if short else _long_form(modules, path, _Members("modules", _check_name))
    mandatory, conditional, any_of, none_of = needs
    return Requirements(
        kubernetes=_version_of(entry, "kubernetes", where),
        platform=_version_of(entry, "platform", where) or _version_of(entry, "deckhouse", where),
        mandatory=mandatory,
        conditional=conditional,
        any_of=any_of,
        none_of=none_of,
        applications=_applications(entry, where, of_module=of_module),
    )


def _applications(entry: JsonObject, where: str, *, of_module: bool) -> ApplicationNeeds | None:
    path = at(where, "applications")
    applications = open_object(entry.get("applications"), path)
    members = _Members("applications", partial(_check_application, of_module=of_module))
    needs = ApplicationNeeds(*_long_form(applications, path, members))
    return needs if needs != ApplicationNeeds() else None


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
        bucket.append(Dependency(name, constraint_at(stripped, path)))
    return tuple(mandatory), tuple(conditional), (), ()


@dataclass(frozen=True, slots=True)
class _Members:
    """The two rules in which required modules differ from required applications. ``key`` is the key under which a group lists
    its members. ``check`` checks the name of a member; it gets the name and the path of the name.
    """

    key: str
    check: Callable[[str, str], None]


def _long_form(entry: JsonObject, where: str, members: _Members) -> _Needs:
    closed_object(entry, where, _BUCKETS)
    mandatory = _dependencies(entry, "mandatory", where, members)
    conditional = _dependencies(entry, "conditional", where, members)
    for number, each in enumerate(conditional):
        if not each.constraint.text:
            path = at(at(where, "conditional"), number)
            raise ShapeError(
                f"{path}.constraint: required for {each.name}, because a requirement without a constraint has no effect"
            )
    any_of = _groups(entry, "anyOf", where, members)
    none_of = _groups(entry, "noneOf", where, members)
    check_buckets(where, mandatory, conditional, any_of, none_of)
    return mandatory, conditional, any_of, none_of


def _dependencies(entry: JsonObject, key: str, where: str, members: _Members) -> tuple[Dependency, ...]:
    """Read a list of ``{name, constraint?}``; each package may appear once."""
    path = at(where, key)
    found: dict[str, Dependency] = {}
    for number, value in enumerate(_bounded(items(entry, key, where), path)):
        here = at(path, number)
        member = closed_object(value, here, ("name", "constraint"))
        name = text(member, "name", here)
        members.check(name, f"{here}.name")
        if name in found:
            raise ShapeError(f"{here}.name: {name} is named twice; join its constraints with a comma")
        found[name] = Dependency(name, constraint_at(text(member, "constraint", here), f"{here}.constraint"))
    return tuple(found.values())


def _groups(entry: JsonObject, key: str, where: str, members: _Members) -> tuple[DependencyGroup, ...]:
    path = at(where, key)
    found: dict[str, DependencyGroup] = {}
    for number, value in enumerate(_bounded(items(entry, key, where), path)):
        here = at(path, number)
        group = closed_object(value, here, ("name", "description", members.key))
        name = text(group, "name", here)
        if not name:
            raise ShapeError(f"{here}.name: required; messages name the group by it")
        _check_length(name, MAX_GROUP_NAME, f"{here}.name")
        description = text(group, "description", here)
        _check_length(description, MAX_DESCRIPTION, f"{here}.description")
        if name in found:
            raise ShapeError(f"{here}.name: a second group {name!r} in {key}; give each a different name")
        named = _dependencies(group, members.key, here, members)
        if not named:
            raise ShapeError(f"{here}.{members.key}: at least one is needed")
        found[name] = DependencyGroup(name, description, named)
    return tuple(found.values())


def _check_length(written: str, most: int, path: str) -> None:
    if len(written) > most:
        raise ShapeError(
            f"{path}: expected at most {most} characters, found {len(written)}; the text begins {written[:40]!r}"
        )


def _bounded(found: list[JsonValue], path: str) -> list[JsonValue]:
    if len(found) > MAX_ENTRIES:
        raise ShapeError(f"{path}: more than {MAX_ENTRIES} entries")
    return found


def _version_of(entry: JsonObject, key: str, where: str) -> VersionConstraint | None:
    """Read a constraint in the form ``key: ">=1.30"`` or ``key: {constraint: ">=1.30"}``; return None if there is no
    constraint.
    """
    path = at(where, key)
    value = entry.get(key)
    if isinstance(value, str | None):
        written = text(entry, key, where)
    else:
        written = text(closed_object(value, path, ("constraint",)), "constraint", path)
    return constraint_at(written, path) if written else None


def constraint_at(written: str, path: str) -> VersionConstraint:
    """Read a constraint that is written at ``path``; an empty one allows any version. Raises ConstraintError."""
    try:
        return parse_constraint(written)
    except ConstraintError as error:
        raise ConstraintError(f"{path}: {error}") from error


def _check_name(name: str, path: str) -> None:
    if not name:
        raise ShapeError(f"{path}: required")
    if not is_package_name(name):
        raise ShapeError(
            f"{path}: {name[:80]!r} cannot be a module: expected at most 63 lower-case letters, digits and '-'"
        )


def _check_application(name: str, path: str, *, of_module: bool) -> None:
    if not name:
        raise ShapeError(f"{path}: required")
    namespace, slash, instance = name.rpartition("/")
    if not is_instance_name(instance) or (slash and not is_package_name(namespace)):
        raise ShapeError(f"{path}: {name[:130]!r} cannot be an application; write instance, or namespace/instance")
    if of_module and not slash:
        raise ShapeError(
            f"{path}: {name}: a Module has no namespace, so it must name the namespace of the application; write namespace/{name}"
        )
