"""The rules that decide whether a change of a package is held, and why. Pure.

A change of a package (a removal, a disable or another version) is *held* if it would turn off other packages that are to stay
on, or if other packages must be removed first. The guard (:mod:`wharfinger.runtime.controllers.guard`) finds these packages.
From them, this module decides whether the change is held. It also reads what a package's resource says about holds: an
annotation, and fields of the status.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find, find_list, find_str
from wharfinger.formats.listing import listed
from wharfinger.formats.version_constraint import parse_version
from wharfinger.runtime.resources.resources import SpecError, ignores_dependents
from wharfinger.runtime.scheduler.events import Decided
from wharfinger.runtime.scheduler.graph import Node, Verdict
from wharfinger.runtime.scheduler.rules import Facts
from wharfinger.runtime.scheduler.scheduler import Broken
from wharfinger.runtime.status.reasons import HELD, Reason

MOST_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Standing:
    """The parts of a package's state that a hold on another package may depend on."""

    node: Node | None
    decision: Decided | None
    going: bool
    """True if a removal or a Disable of the package is under way."""
    asked: bool
    """True if the package's resource asks to remove or switch off the package."""


@dataclass(frozen=True, slots=True)
class Hold:
    """The reason why a change is not begun now.

    ``waits`` are the packages that have to be removed first. ``seen`` has the packages whose change may end the hold, each with
    its state at the time of the decision.
    """

    reason: Reason
    message: str
    waits: frozenset[str] = frozenset()
    seen: Mapping[str, Standing] = field(default_factory=dict)
    off: bool = False
    """True if the held change turns a Module off, by its resource's ``spec.enabled`` or by default."""
    unknown: bool = False
    """True if it is not known yet which packages the change would break."""


def judge(what: str, broken: Iterable[Broken], waits: Collection[str], direct: Collection[str] = ()) -> Hold | None:
    """Return the hold on a change; None if the change may begin. ``what`` names the change, for example ``the removal``.

    ``broken`` are the packages that are kept, and that the change would break. ``waits`` are the packages that must be removed
    first. The message explains the first broken package. A package in ``direct`` comes first, because the change breaks it
    directly, and not through another broken package.
    """
    staying = sorted(broken, key=lambda each: (each.name not in direct, each.name))
    if staying:
        first = staying[0]
        names = listed(sorted(each.name for each in staying), MOST_NAMED)
        message = f"{what} would break {names} ({first.name}: {first.message})"
        return Hold(Reason.WOULD_BREAK_DEPENDENTS, message, frozenset(waits))
    if waits:
        verb = "is" if len(waits) == 1 else "are"
        message = f"{what} waits for {listed(sorted(waits), MOST_NAMED)}, which {verb} uninstalled first"
        return Hold(Reason.WAITING_FOR_DEPENDENTS, message, frozenset(waits))
    return None


def judge_unknown(what: str, unknown: Collection[str]) -> Hold:
    """Return a hold on ``what`` until the requirements of the ``unknown`` packages are known."""
    names = listed(sorted(unknown), MOST_NAMED)
    verb = "is" if len(unknown) == 1 else "are"
    message = f"{what} waits until the requirements of all packages are known: {names} {verb} not loaded yet"
    return Hold(Reason.WAITING_FOR_DEPENDENTS, message, unknown=True)


def needs(node: Node | None) -> frozenset[str]:
    """Return the packages that a node needs or may use: mandatory and conditional requirements, and members of its any-of
    groups.
    """
    if node is None:
        return frozenset()
    wanted = node.requirements
    members = (each.name for group in wanted.any_of for each in group.members)
    return frozenset((*(each.name for each in (*wanted.mandatory, *wanted.conditional)), *members)) - {node.name}


def reaches(waits: Mapping[str, Collection[str]], start: str, end: str) -> bool:
    """Return whether ``start`` waits for ``end``, directly or through others."""
    seen, to_see = {start}, [start]
    while to_see:
        name = to_see.pop()
        if name == end:
            return True
        new = [each for each in waits.get(name, ()) if each not in seen]
        seen.update(new)
        to_see += new
    return False


def is_version(text: str) -> bool:
    """Return whether a text is a version that can be compared with constraints."""
    try:
        parse_version(text)
    except FormatError:
        return False
    return True


def is_ignoring(obj: JsonObject) -> bool:
    """Return whether an annotation of the resource asks for changes even if they break dependents; False if the annotation is
    invalid.
    """
    try:
        return ignores_dependents(obj)
    except SpecError:
        return False


def is_off_by_default(node: Node | None, facts: Facts) -> bool:
    """Return whether a Module without ``spec.enabled`` is off, because the daemon has a bundle that does not contain the
    Module.

    Return False for a Module without a node.
    """
    if node is None or node.floor is not Verdict.DISABLE or not facts.bundle:
        return False
    return (facts.edition, facts.bundle) not in node.bundles


def was_held(obj: JsonObject) -> bool:
    """Return whether the resource's status says that its change was held because of other packages."""
    ready = (each for each in find_list(obj, "status", "conditions") if find(each, "type") == "Ready")
    return any(find(each, "reason") in HELD for each in ready)


def is_installed(obj: JsonObject) -> bool:
    """Return whether any part of the package was in the cluster when its status was last written."""
    return bool(find_str(obj, "status", "currentVersion", "version"))


def was_being_removed(obj: JsonObject) -> bool:
    """Return whether the resource's status says that its removal had begun."""
    return find_str(obj, "status", "summary", "state") == "Removing" and not was_held(obj)
