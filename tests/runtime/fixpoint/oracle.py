"""The expected results of the fixpoint engine. The oracle finds them without the engine: it evaluates until nothing changes.

A `World` declares what each part needs, tolerates and emits, and how it ends. A part *tolerates* another one if it waits until
the other one has a verdict, whichever it is. The oracle has no notion of time: it does not know events, dispatches, wakes or
versions. It applies these rules to the declarations, in this order, each until it changes nothing more. Rule 2 is applied again
after each application of rule 3 or 4:

1. A part becomes ready, and emits, if everything that it needs is ready. A tolerated dependency only delays, so it has no rule.
2. A part fails if something that it needs has failed.
3. A part fails if something that it needs is absent, or if an expression about it stays false. This is certain only now,
   because nothing more can arrive.
4. Of the remaining parts, each strongly connected component that waits for nothing outside itself is forced: the part with the
   lowest id has to end.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from wharfinger.runtime.fixpoint.model import Id, Level

READY: Final = "ready"
FAILED: Final = "failed"
CRASHED: Final = "crashed"
DEPENDENCY: Final = "dependency"
"""A needed part failed, or is absent."""
NOT_READY: Final = "not ready"
"""The verdict of the member of a cycle that was forced to end."""
UNRESOLVED: Final = "unresolved"
DATA: Final = "Data"
"""Ids of this kind are data: ready once they exist."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a world: the declaration of one node, which determines what its body does."""

    id: Id
    needs: tuple[Id, ...] = ()
    tolerates: tuple[Id, ...] = ()
    """Parts that this part waits for until they have a verdict, whichever it is."""
    never_true: frozenset[Id] = frozenset()
    """Members of ``needs`` about which an expression stays false even if they are ready."""
    emits: tuple[Id, ...] = ()
    """Ids that are emitted once all needs are ready, even if the part then fails."""
    emits_with: tuple[tuple[Id, Id], ...] = ()
    """Pairs of (tolerated, emitted): emitted only if the tolerated part is ready."""
    selects: bool = False
    """True if the part emits, for each piece of data, the node of kind ``Made`` with the same name, if it is declared."""
    fails: bool = False
    crashes: bool = False
    stubborn: bool = False
    """True if the part blocks on everything that is not ready, at every level."""
    outside: int = 0
    """The number of times that the part waits for the world outside before it is done."""


@dataclass(frozen=True, slots=True)
class World:
    """The parts by id, and the ids that exist without being emitted: the seeds, and data from the world outside."""

    parts: Mapping[Id, Part]
    seeds: tuple[Id, ...]
    brought: frozenset[Id] = frozenset()
    """Data that the world outside has added by the end."""
    struck: frozenset[Id] = frozenset()
    """Parts whose last run ended in an error."""

    def made_from(self, datum: Id) -> Id | None:
        """Return the node that a part with ``selects`` emits for a piece of data; None if the node is not declared."""
        made = Id("Made", datum.namespace, datum.name)
        return made if made in self.parts else None

    def with_part(self, part: Part) -> "World":
        """Return a copy of this world with ``part`` in place of the part with the same id."""
        return replace(self, parts={**self.parts, part.id: part})


@dataclass(slots=True)
class Expected:
    """The expected results of an engine: the verdict of every existing node, and the highest level."""

    verdicts: dict[Id, str] = field(default_factory=dict)
    present: set[Id] = field(default_factory=set)
    level: Level = Level.NONE


def expected(world: World) -> Expected:
    """Return the expected results for a world. If a part of the world tolerates another part, the engine may reach another
    level than the ``level`` of the result.
    """
    found = Expected(present={*world.seeds, *world.brought})
    _close(world, found)
    _propagate(world, found)
    if _undecided(world, found):
        found.level = Level.CASCADE
        _judge_absent(world, found)
    while _undecided(world, found):
        found.level = Level.FORCE
        for component in _bottom_components(world, found):
            lowest = min(component)
            found.verdicts[lowest] = UNRESOLVED if world.parts[lowest].stubborn else NOT_READY
        _propagate(world, found)
    return found


def decided_unjudged(world: World) -> bool:
    """Return whether rules 1 and 2 of this module give all parts a verdict, even if each part waits for the parts that it
    tolerates.
    """
    found = Expected(present={*world.seeds, *world.brought})
    while True:
        before = len(found.verdicts), len(found.present)
        _close(world, found, strict=True)
        _propagate(world, found)
        if before == (len(found.verdicts), len(found.present)):
            return not _undecided(world, found)


def _in_place(found: Expected, one: Id) -> bool:
    return one in found.present and (one.kind == DATA or found.verdicts.get(one) == READY)


def _undecided(world: World, found: Expected) -> list[Id]:
    return sorted(one for one in found.present if one in world.parts and one not in found.verdicts)


def _close(world: World, found: Expected, *, strict: bool = False) -> None:
    """Apply rule 1 (a part becomes ready if everything that it needs is ready) until it changes nothing more. If ``strict``,
    each part also waits for the parts that it tolerates.
    """
    found.verdicts |= dict.fromkeys(world.struck, CRASHED)
    moved = True
    while moved:
        moved = False
        for part in [world.parts[one] for one in sorted(found.present) if one in world.parts]:
            if part.id in world.struck or not all(
                _in_place(found, need) and need not in part.never_true for need in part.needs
            ):
                continue
            if strict and not all(_over(found, one) for one in part.tolerates):
                continue
            made = set(_made(world, found, part))
            moved |= part.id not in found.verdicts or not made <= found.present
            found.verdicts[part.id] = CRASHED if part.crashes else FAILED if part.fails else READY
            found.present |= made


def _over(found: Expected, one: Id) -> bool:
    return one in found.verdicts or (one.kind == DATA and one in found.present)


def _made(world: World, found: Expected, part: Part) -> Iterable[Id]:
    if part.crashes:
        return
    yield from part.emits
    yield from (made for tolerated, made in part.emits_with if _in_place(found, tolerated))
    if part.selects:
        data = [one for one in found.present if one.kind == DATA]
        yield from (made for made in map(world.made_from, data) if made is not None)


def _propagate(world: World, found: Expected) -> None:
    """Apply rule 2 (a part fails if something that it needs has failed) until it changes nothing more."""
    moved = True
    while moved:
        moved = False
        for one in _undecided(world, found):
            part = world.parts[one]
            if not part.stubborn and any(found.verdicts.get(need, READY) != READY for need in part.needs):
                found.verdicts[one] = DEPENDENCY
                moved = True


def _judge_absent(world: World, found: Expected) -> None:
    """Apply rule 3 (a part fails if something that it needs is absent), and then rule 2."""
    for one in _undecided(world, found):
        part = world.parts[one]
        lost = (
            need not in found.present or (need in part.never_true and _in_place(found, need)) for need in part.needs
        )
        if not part.stubborn and any(lost):
            found.verdicts[one] = DEPENDENCY
    _propagate(world, found)


def _bottom_components(world: World, found: Expected) -> list[set[Id]]:
    """Return the strongly connected components of the nodes without a verdict from which no path leads to another component."""
    undecided = _undecided(world, found)
    reach = {one: {need for need in world.parts[one].needs if need in undecided} for one in undecided}
    for middle in undecided:
        for one in undecided:
            if middle in reach[one]:
                reach[one] |= reach[middle]
    components = [{one} | {other for other in reach[one] if one in reach[other]} for one in undecided]
    bottoms = [component for one, component in zip(undecided, components, strict=True) if reach[one] <= component]
    return [component for at, component in enumerate(bottoms) if component not in bottoms[:at]]
