"""The requirements of a package: versions of Kubernetes and of the platform, modules, and applications.

:mod:`~wharfinger.packages.definition.requirements_reader` reads them as they are written. An application that is named without a
namespace is in the namespace in which the package is installed. Only the caller that installs the package knows that namespace,
so the reader keeps names as they are written, and `resolved` turns them into the scheduler's names: the name of a module, or
``<namespace>.<instance>`` for an application. Then `with_depends_on` adds the requirements of the resource itself,
``spec.dependsOn``.

If the files of a package contain contradictory requirements on the same package, they are refused, so that the scheduler never
has to choose.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from wharfinger.formats.json.value import ShapeError
from wharfinger.formats.version_constraint import VersionConstraint, combine_constraints
from wharfinger.kube.names import is_label, is_subdomain
from wharfinger.packages.files.strict_fields import at

MAX_INSTANCE: Final = 53
"""The largest number of characters in the name of an application's instance, which is also its release's name."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """A required package, and the accepted versions.

    ``name`` is a module's name. For an application it is ``instance`` or ``namespace/instance`` as it is written, and
    ``<namespace>.<instance>`` once it is `resolved`.
    """

    name: str
    constraint: VersionConstraint


@dataclass(frozen=True, slots=True)
class DependencyGroup:
    """A group of packages. Of the packages in it whose version matches, at least one must be on (any-of), or none may be on
    (none-of).
    """

    name: str
    description: str
    members: tuple[Dependency, ...]


@dataclass(frozen=True, slots=True)
class ApplicationNeeds:
    """The applications that a package needs, by the names that the package uses for them."""

    mandatory: tuple[Dependency, ...] = ()
    conditional: tuple[Dependency, ...] = ()
    any_of: tuple[DependencyGroup, ...] = ()
    none_of: tuple[DependencyGroup, ...] = ()


@dataclass(frozen=True, slots=True)
class Requirements:
    """All requirements of a package. A version of None means that any version is accepted.

    The four lists have only modules; in `resolved` requirements they have applications, too.
    """

    kubernetes: VersionConstraint | None = None
    platform: VersionConstraint | None = None
    mandatory: tuple[Dependency, ...] = ()
    conditional: tuple[Dependency, ...] = ()
    any_of: tuple[DependencyGroup, ...] = ()
    none_of: tuple[DependencyGroup, ...] = ()
    applications: ApplicationNeeds | None = None
    """The required applications; None if there are none. In `resolved` requirements, they are in the four lists instead."""


@dataclass(frozen=True, slots=True)
class DependsOn:
    """A requirement of the resource itself; ``namespace`` is "" for a Module."""

    kind: str
    namespace: str
    name: str
    constraint: VersionConstraint

    @property
    def package(self) -> str:
        """The scheduler's name of the required package."""
        return f"{self.namespace}.{self.name}" if self.namespace else self.name

    def __str__(self) -> str:
        """Return a text such as ``Application prod/web`` or ``Module ingress``."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


NO_REQUIREMENTS: Final = Requirements()


def is_package_name(name: str) -> bool:
    """Return whether the name can be that of a package or of a namespace: a DNS label."""
    return is_label(name)


def is_instance_name(name: str) -> bool:
    """Return whether the name can be that of an application's instance: DNS labels with dots between them."""
    return is_subdomain(name, MAX_INSTANCE)


def package_of(name: str, namespace: str) -> str:
    """Return the scheduler's name of the application ``instance`` or ``namespace/instance``.

    ``namespace`` is used if ``name`` does not contain a namespace.
    """
    given, _, instance = name.rpartition("/")
    return f"{given or namespace}.{instance}"


def resolved(requirements: Requirements, namespace: str) -> Requirements:
    """Return the requirements with the scheduler's names, for a package installed in ``namespace``.

    A group of applications that has the name of another group is renamed. Raises ShapeError if one application is named twice
    in a list, or in several lists, for example as ``db`` and as ``prod/db``.
    """
    needs = requirements.applications
    if needs is None:
        return requirements
    mandatory = tuple(_placed(each, namespace) for each in needs.mandatory)
    conditional = tuple(_placed(each, namespace) for each in needs.conditional)
    any_of = tuple(_placed_group(each, namespace) for each in needs.any_of)
    none_of = tuple(_placed_group(each, namespace) for each in needs.none_of)
    where = f"requirements.applications, in namespace {namespace}"
    _check_once(where, ("mandatory", mandatory), ("conditional", conditional))
    _check_once(
        where,
        *(
            (f"{bucket} {group.name}", group.members)
            for bucket, groups in (("anyOf", any_of), ("noneOf", none_of))
            for group in groups
        ),
    )
    check_buckets(where, mandatory, conditional, any_of, none_of)
    return replace(
        requirements,
        mandatory=(*requirements.mandatory, *mandatory),
        conditional=(*requirements.conditional, *conditional),
        any_of=_joined(requirements.any_of, any_of),
        none_of=_joined(requirements.none_of, none_of),
        applications=None,
    )


def with_depends_on(requirements: Requirements, depends_on: Iterable[DependsOn]) -> Requirements:
    """Return `resolved` requirements with the resource's requirements added as mandatory ones.

    If the package and its resource require the same package, both constraints apply. If the resource requires a package that
    the package itself excludes, the requirement is never met, and the gates report the reason.
    """
    if requirements.applications is not None:
        raise AssertionError("expected resolved requirements before those of a resource are added")
    wanted = {each.package: each.constraint for each in depends_on}
    if not wanted:
        return requirements
    for each in (*requirements.mandatory, *requirements.conditional):
        if each.name in wanted:
            wanted[each.name] = combine_constraints(each.constraint, wanted[each.name])
    mandatory = [Dependency(each.name, wanted.pop(each.name, each.constraint)) for each in requirements.mandatory]
    return replace(
        requirements,
        mandatory=(*mandatory, *(Dependency(name, constraint) for name, constraint in wanted.items())),
        conditional=tuple(each for each in requirements.conditional if each.name not in wanted),
    )


def check_buckets(
    where: str,
    mandatory: Iterable[Dependency],
    conditional: Iterable[Dependency],
    any_of: Iterable[DependencyGroup],
    none_of: Iterable[DependencyGroup],
) -> None:
    """Raise ShapeError if a package is in several buckets (mandatory, conditional, any-of, none-of).

    Within one bucket, a package may be in several groups.
    """
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
                raise ShapeError(f"{at(where, bucket)}: {name} is also in {other}; keep it in one of the two")


def _check_once(where: str, *lists: tuple[str, Iterable[Dependency]]) -> None:
    for what, members in lists:
        names: set[str] = set()
        for member in members:
            if member.name in names:
                raise ShapeError(f"{where}: {what}: {member.name} is named twice; join its constraints with a comma")
            names.add(member.name)


def _placed(member: Dependency, namespace: str) -> Dependency:
    return replace(member, name=package_of(member.name, namespace))


def _placed_group(group: DependencyGroup, namespace: str) -> DependencyGroup:
    return replace(group, members=tuple(_placed(member, namespace) for member in group.members))


def _joined(first: tuple[DependencyGroup, ...], second: tuple[DependencyGroup, ...]) -> tuple[DependencyGroup, ...]:
    """Return the groups of both lists, with unique names, because messages and dumps identify a group by its name."""
    names = {group.name for group in (*first, *second)}
    taken = {group.name for group in first}
    joined = list(first)
    for group in second:
        name = group.name
        while name in taken or (name != group.name and name in names):
            name = f"{name} (applications)"
        joined.append(replace(group, name=name))
        taken.add(name)
    return tuple(joined)


def _members(groups: Iterable[DependencyGroup]) -> Iterable[str]:
    return (member.name for group in groups for member in group.members)
