"""Whether a change of a package is held because of others, and why (:mod:`wharfinger.runtime.controllers.guard` asks).

A package is *held* by those that stay and would be off without it, or by those that go themselves, and go first. Here is what
follows from knowing them, and what a resource says of itself that matters for it; the guard finds out who they are. Pure.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find, find_list, find_str
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
    """How a package stands, as far as others may be held for it."""

    node: Node | None
    decision: Decided | None
    going: bool
    """Its removal, or its Disable, is under way."""
    asked: bool
    """It is to go."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Why nothing is begun now. ``waits`` are those that go first; ``seen`` is how those stood whose change may end it."""

    reason: Reason
    message: str
    waits: frozenset[str] = frozenset()
    seen: Mapping[str, Standing] = field(default_factory=dict)
    off: bool = False
    """What is held is that it is off, by its resource's word or for the lack of one."""
    unknown: bool = False
    """It is not known yet who stands in the way."""


def judge(what: str, broken: Iterable[Broken], waits: Collection[str], direct: Collection[str] = ()) -> Hold | None:
    """Whether ``what`` (``the removal``) is held: ``broken`` are packages that stay, ``waits`` those that go first.

    What one of them lacks is told, by preference one that breaks for no other: ``direct``.
    """
    staying = sorted(broken, key=lambda each: (each.name not in direct, each.name))
    if staying:
        first = staying[0]
        names = listed(each.name for each in staying)
        message = f"{what} would break {names} ({first.name}: {first.message})"
        return Hold(Reason.WOULD_BREAK_DEPENDENTS, message, frozenset(waits))
    if waits:
        message = f"{what} waits for {listed(waits)}, which {'goes' if len(waits) == 1 else 'go'} first"
        return Hold(Reason.WAITING_FOR_DEPENDENTS, message, frozenset(waits))
    return None


def judge_unknown(what: str, unknown: Collection[str]) -> Hold:
    """``what`` is held because nobody knows yet what ``unknown`` require."""
    message = f"{what} waits until it is known what others need: {listed(unknown)} not loaded yet"
    return Hold(Reason.WAITING_FOR_DEPENDENTS, message, unknown=True)


def needs(node: Node | None) -> frozenset[str]:
    """Whom a package builds on: what it requires, also if only where it is there, and members of its any-of groups."""
    if node is None:
        return frozenset()
    wanted = node.requirements
    members = (each.name for group in wanted.any_of for each in group.members)
    return frozenset((*(each.name for each in (*wanted.mandatory, *wanted.conditional)), *members)) - {node.name}


def reaches(waits: Mapping[str, Collection[str]], start: str, end: str) -> bool:
    """Whether ``start`` waits for ``end``, at any remove."""
    seen, to_see = {start}, [start]
    while to_see:
        name = to_see.pop()
        if name == end:
            return True
        new = [each for each in waits.get(name, ()) if each not in seen]
        seen.update(new)
        to_see += new
    return False


def listed(names: Iterable[str]) -> str:
    """Names, sorted, as a message has them: of many the first five."""
    every = sorted(names)
    more = len(every) - MOST_NAMED
    return ", ".join(every[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def is_version(text: str) -> bool:
    """Whether it can be compared with what others ask for."""
    try:
        parse_version(text)
    except FormatError:
        return False
    return True


def is_ignoring(obj: JsonObject) -> bool:
    """Whether a person wants it done, whoever breaks; not where the annotation says what it must not."""
    try:
        return ignores_dependents(obj)
    except SpecError:
        return False


def is_off_by_default(node: Node | None, facts: Facts) -> bool:
    """Whether a Module that does not say is off: with a bundle, where it is not part of it. What is not known is not off."""
    if node is None or node.floor is not Verdict.DISABLE or not facts.bundle:
        return False
    return (facts.edition, facts.bundle) not in node.bundles


def was_held(obj: JsonObject) -> bool:
    """Whether what its resource asks for was refused or put off for others' sake, as its status says."""
    ready = (each for each in find_list(obj, "status", "conditions") if find(each, "type") == "Ready")
    return any(find(each, "reason") in HELD for each in ready)


def is_installed(obj: JsonObject) -> bool:
    """Whether something of it was in the cluster when its status was last written."""
    return bool(find_str(obj, "status", "currentVersion", "version"))


def was_being_removed(obj: JsonObject) -> bool:
    """Whether a removal of it had begun, as its status says."""
    return find_str(obj, "status", "summary", "state") == "Removing" and not was_held(obj)
