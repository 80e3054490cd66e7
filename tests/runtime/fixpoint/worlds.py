"""Declared worlds (`oracle.py`) for the fixpoint engine. Hypothesis generates the worlds. Their bodies do what is declared.

`Bodies` returns the outcome of every part as spec/schedulers §A.2 prescribes it for each level. Bodies see ids and results
through a `Look`. This is either the engine itself, or a `Store`. Bodies write to the `Store` before they report, like bodies
that store their results in a database. The engine has to reach the same results with both.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from hypothesis import strategies as st

from tests.runtime.fixpoint.oracle import (
    CRASHED,
    DATA,
    DEPENDENCY,
    FAILED,
    NOT_READY,
    READY,
    UNRESOLVED,
    Part,
    World,
)
from wharfinger.runtime.fixpoint.model import (
    Arrived,
    Blocked,
    Crashed,
    DependencyFailed,
    Emission,
    Id,
    Level,
    Noop,
    Outcome,
    Outside,
    Removed,
    Terminal,
)

GHOST: Final = Id("Node", "", "ghost")
"""An id that no part ever emits."""
FIRST: Final = "1"
"""The digest of everything that is emitted inside a world."""


def node(name: str) -> Id:
    """Return the id of a node with that name."""
    return Id("Node", "", name)


def datum(name: str) -> Id:
    """Return the id of a piece of data with that name."""
    return Id(DATA, "", name)


def world(*parts: Part, seeds: Iterable[Id] | None = None) -> World:
    """Return a world of these parts, all of which are seeded by default."""
    return World({part.id: part for part in parts}, tuple(part.id for part in parts) if seeds is None else tuple(seeds))


def emission(made: Id, digest: str = FIRST) -> Emission:
    """Return an emission of the id ``made`` with this digest."""
    return Emission(made, digest, runnable=made.kind != DATA)


def verdict(result: str | None) -> str:
    """Return the oracle's verdict that corresponds to a result."""
    if result is None:
        return "none"
    kind = result.partition(":")[0]
    return kind if kind in {READY, FAILED, CRASHED, DEPENDENCY, NOT_READY, UNRESOLVED} else result


class Look(Protocol):
    """The view that a body has of other nodes: whether an id exists, and the result of a node. The engine's state is such a
    view.
    """

    def present(self, id: Id) -> bool:  # noqa: A002
        """Return whether an id exists."""
        ...

    def result(self, id: Id) -> str | None:  # noqa: A002
        """Return the known result of an id."""
        ...


@dataclass(slots=True)
class Store:
    """Results that bodies wrote. Other bodies see them before the writers report."""

    there: set[Id] = field(default_factory=set)
    results: dict[Id, str] = field(default_factory=dict)

    def present(self, id: Id) -> bool:  # noqa: A002
        return id in self.there

    def result(self, id: Id) -> str | None:  # noqa: A002
        return self.results.get(id)

    def write(self, one: Id, outcome: Outcome) -> None:
        """Write the results of a body, as part of its run."""
        match outcome:
            case Terminal(result=result) | DependencyFailed(result=result):
                self.results[one] = result
            case Crashed():
                self.results[one] = CRASHED
            case Noop() | Blocked() | Outside():
                pass
        if isinstance(outcome, Terminal):
            self.there |= {made.id for made in outcome.emissions}


@dataclass(slots=True)
class Bodies:
    """The bodies of all parts (declared nodes) of a world, with the last outcome of each."""

    parts: dict[Id, Part]
    thorough: bool = True
    """True if a failure names and reads everything that is not ready, and false if only the ids that caused it."""
    noops: bool = False
    """True if a body that has the same outcome twice in a row reports a Noop the second time."""
    answered: dict[Id, int] = field(default_factory=dict)
    last: dict[Id, Outcome] = field(default_factory=dict)

    def answer(self, look: Look, one: Id, level: Level) -> Outcome:
        """Return the outcome of a part's body if it sees these ids and results."""
        outcome = self._judge(look, self.parts[one], level)
        before, self.last[one] = self.last.get(one), outcome
        same = outcome == before and isinstance(outcome, Terminal | DependencyFailed)
        return Noop() if self.noops and same else outcome

    def sweeps(self, one: Id) -> bool:
        """Return whether the part requests sweeps."""
        return self.parts[one].selects

    def _judge(self, look: Look, part: Part, level: Level) -> Outcome:
        states = {need: self._state(look, part, need) for need in part.needs}
        unmet = {need: state for need, state in states.items() if state != READY}
        if unmet and self._still_on_cycle(part.id, unmet):
            return self.last[part.id]
        bad = {need for need, state in unmet.items() if _is_bad(state, level)}
        undecided = [one for one in part.tolerates if _waits(self._state(look, part, one), level)]
        if bad and not part.stubborn:
            return self._failed(unmet, bad)
        if unmet or undecided:
            return Blocked((*unmet, *undecided))
        return self._passed(look, part)

    def _state(self, look: Look, part: Part, one: Id) -> str:
        """Return the state of a dependency: ``ready``, ``absent``, ``pending``, ``failed``, or ``false`` if it is ready but an
        expression about it is never true.
        """
        if one == part.id:
            return "pending"
        if not look.present(one):
            return "absent"
        result = READY if one.kind == DATA else verdict(look.result(one))
        if result == READY:
            return "false" if one in part.never_true else READY
        return "pending" if result == "none" else "failed"

    def _still_on_cycle(self, one: Id, unmet: Mapping[Id, str]) -> bool:
        """Return whether this part was forced to end at its last run, and everything that it still lacks was already missing
        then.
        """
        last = self.last.get(one)
        told = isinstance(last, DependencyFailed) and verdict(last.result) == NOT_READY
        return told and isinstance(last, DependencyFailed) and set(unmet) <= set(last.failed)

    def _failed(self, unmet: Mapping[Id, str], bad: set[Id]) -> Outcome:
        named = sorted(unmet if self.thorough else bad)
        only_pending = all(unmet[one] == "pending" for one in bad)
        words = ", ".join(f"{one.name} {unmet[one]}" for one in named)
        return DependencyFailed(tuple(named), f"{NOT_READY if only_pending else DEPENDENCY}: {words}")

    def _passed(self, look: Look, part: Part) -> Outcome:
        reads = (*part.needs, *part.tolerates)
        if self.answered.get(part.id, 0) < part.outside:
            return Outside(reads)
        if part.crashes:
            return Crashed("as declared")
        made = [*part.emits]
        made += [one for tolerated, one in part.emits_with if self._state(look, part, tolerated) == READY]
        seen: list[Id] = []
        if part.selects:
            found = [Id("Made", "", name) for name in DATA_NAMES if look.present(datum(name))]
            seen = [one for one in found if one in self.parts]
        result = FAILED if part.fails else READY + (f": {' '.join(one.name for one in seen)}" if part.selects else "")
        return Terminal(result, reads, tuple(emission(one) for one in dict.fromkeys([*made, *seen])))


def _is_bad(state: str, level: Level) -> bool:
    match state:
        case "failed":
            return True
        case "absent" | "false":
            return level >= Level.CASCADE
        case _:
            return level >= Level.FORCE


def _waits(state: str, level: Level) -> bool:
    return (state == "absent" and level < Level.CASCADE) or (state == "pending" and level < Level.FORCE)


# --- strategies of Hypothesis ---------------------------------------------------------------------------------------------

DATA_NAMES: Final = ("x", "y", "z")
NAMES: Final = ("a", "b", "c", "d", "e", "f", "g", "h")


@dataclass(frozen=True, slots=True)
class Change:
    """An event from the world outside. ``part``, if it is given, is the new declaration of the node that the event is about."""

    event: Arrived | Removed
    part: Part | None = None


@dataclass(frozen=True, slots=True)
class Story:
    """A world and its changes. ``last`` is the world after all of them."""

    first: World
    changes: tuple[Change, ...]
    last: World


Some = tuple[Id, ...]


def _few(ids: list[Id], most: int = 3) -> st.SearchStrategy[Some]:
    if not ids:
        return st.just(())
    return st.lists(st.sampled_from(ids), max_size=most, unique=True).map(tuple)


@st.composite
def worlds(draw: st.DrawFn, *, plain: bool = False, tolerant: bool = True, cycles: bool = True) -> World:
    """Generate a world of up to eight parts, or of up to eleven parts if parts may select.

    If ``plain``, no part emits, selects, or waits for the world outside. If ``tolerant``, parts may tolerate dependencies. If
    ``cycles`` is false, no part needs or tolerates a later part.
    """
    ids = draw(st.permutations([node(name) for name in NAMES[: draw(st.integers(1, 8))]]))
    selecting = not plain and draw(st.booleans())
    ids = [*ids, *(Id("Made", "", name) for name in DATA_NAMES)] if selecting else ids
    data = [datum(name) for name in DATA_NAMES]
    flag = st.integers(0, 7).map(lambda number: number == 7)
    parts: dict[Id, Part] = {}
    for at, one in enumerate(ids):
        near = [*(ids if cycles else ids[:at]), *data, GHOST]
        sound = draw(st.booleans())
        needs = draw(_few(near[:-1] if sound else near))
        tolerates = draw(_few(near, 2)) if tolerant and not draw(st.booleans()) else ()
        stubborn = not tolerates and draw(flag)
        parts[one] = Part(
            one,
            needs=needs,
            tolerates=tuple(other for other in tolerates if other not in needs and other != one),
            never_true=frozenset(draw(_few(list(needs), 1))) if draw(flag) else frozenset(),
            fails=draw(flag),
            stubborn=stubborn,
        )
        if not plain:
            parts[one] = draw(_lively(parts[one], [*ids, *data], selecting=selecting))
    brought = draw(_few(data))
    seeds = tuple(ids) if plain else draw(st.lists(st.sampled_from(ids), min_size=1, max_size=len(ids), unique=True))
    return World(parts, tuple(seeds), frozenset(brought))


@st.composite
def _lively(draw: st.DrawFn, part: Part, anything: list[Id], *, selecting: bool) -> Part:
    tolerated = [one for one in part.tolerates if one.kind != DATA]
    with_: tuple[tuple[Id, Id], ...] = ()
    if draw(st.booleans()) and tolerated:
        with_ = (draw(st.tuples(st.sampled_from(tolerated), st.sampled_from(anything))),)
    return Part(
        part.id,
        part.needs,
        part.tolerates,
        part.never_true,
        emits=draw(_few(anything, 2)),
        emits_with=with_,
        selects=selecting and draw(st.booleans()),
        fails=part.fails,
        crashes=draw(st.integers(0, 9)) == 9,
        stubborn=part.stubborn,
        outside=draw(st.sampled_from((0, 0, 0, 1, 2))),
    )


@st.composite
def growing_stories(draw: st.DrawFn) -> Story:
    """Generate a world to which ids are only added. The order of these additions does not change the result."""
    last = draw(worlds())
    late = draw(st.permutations(sorted(last.brought)))
    more = draw(_few(sorted(last.parts), 2))
    changes = [Change(Arrived(emission(one))) for one in (*late, *more)]
    return Story(
        World(last.parts, last.seeds), tuple(changes), World(last.parts, last.seeds, frozenset((*late, *more)))
    )


@st.composite
def turning_stories(draw: st.DrawFn) -> Story:
    """Generate a world of seeded parts, without emissions and cycles. Declarations change, and data is added and removed."""
    first = draw(worlds(plain=True, cycles=False, tolerant=draw(st.booleans())))
    now, changes, data = first, [], set(first.brought)
    for version in range(draw(st.integers(1, 5))):
        name = draw(st.sampled_from([*sorted(now.parts), *(datum(name) for name in DATA_NAMES)]))
        if name.kind != DATA:
            old = now.parts[name]
            needs = tuple(one for one in old.needs if draw(st.booleans()))
            part = Part(name, needs, old.tolerates, fails=draw(st.booleans()), stubborn=old.stubborn)
            now = now.with_part(part)
            changes.append(Change(Arrived(emission(name, f"declared {version}")), part))
        elif name in data:
            data.discard(name)
            changes.append(Change(Removed(name)))
        else:
            data.add(name)
            changes.append(Change(Arrived(emission(name, f"brought {version}"))))
    return Story(first, tuple(changes), World(now.parts, now.seeds, frozenset(data)))


tapes: Final = st.binary(max_size=160)
"""A tape of choices, byte after byte; it starts again at its end."""
