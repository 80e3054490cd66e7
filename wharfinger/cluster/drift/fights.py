"""Fights: another writer changes a field again each time that we correct it. Pure; the drift monitor performs the effects.

The first corrections are right. But continuing at that pace would only load the API server, hide that two controllers disagree,
and make everything that depends on the field flap. So after ``limit`` corrections of one object within ``window_s`` a fight
begins: it is reported with the other writer's name, and each further correction waits twice as long as the one before, up to
``max_delay_s``.

::

                    drifted, fewer than limit corrections in the window: Correct
                   ┌────┐
                   ▼    │      drifted once more: FightsChanged                   next_at: Correct, delay doubled
    (no bout) ──► calm ─┴─────────────────────────────────► fighting, waiting ◄──────────────┐
       ▲            │ a window without drift                   │         ▲                   │
       └────────────┴────────────────────────────────────  fighting, as wanted ──────────────┘
                      a window without drift: FightsChanged       drifted

A *bout* is the recent history of one object. Invariants: in a fight at most one correction is made per delay; a drift is
eventually corrected, however long the delay; a bout contains the times of at most ``limit`` corrections, and is discarded
``window_s`` after its last event.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias, assert_never

from rpds import HashTrieMap

from wharfinger.cluster.objects.desired import Identity

MAX_WRITERS: Final = 5
"""The largest number of other managers whose names a fight keeps."""


@dataclass(frozen=True, slots=True)
class FightRules:
    """The limits by which a fight begins and ends. Times in seconds."""

    limit: int = 5
    window_s: float = 600.0
    first_delay_s: float = 15.0
    max_delay_s: float = 600.0


@dataclass(frozen=True, slots=True)
class Fight:
    """A fight over one object: the other managers (empty if unknown), its start, and the present delay before a correction."""

    identity: Identity
    by: tuple[str, ...]
    since: float
    corrections: int
    delay_s: float

    def __str__(self) -> str:
        """Return a sentence about the fight.

        An example: ``Deployment.apps prod/web: changed again by kubectl after 5 corrections; corrected at most every 15 s``.
        """
        by = f" by {', '.join(self.by)}" if self.by else ""
        return (
            f"{self.identity}: changed again{by} after {self.corrections} corrections; "
            f"corrected at most every {self.delay_s:.0f} s"
        )


# -- events


@dataclass(frozen=True, slots=True)
class Drifted:
    """The object has drifted, and the last correction (if any) is over."""

    identity: Identity
    by: tuple[str, ...]
    at: float


@dataclass(frozen=True, slots=True)
class Settled:
    """The object is as wanted."""

    identity: Identity
    at: float


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The object is no longer ours, or the correction of its drift is paused."""

    identity: Identity


@dataclass(frozen=True, slots=True)
class Elapsed:
    """The time ``at`` has been reached, so corrections may have become due."""

    at: float


FightEvent: TypeAlias = Drifted | Settled | Forgotten | Elapsed


# -- effects


@dataclass(frozen=True, slots=True)
class Correct:
    """The effect: apply the object again now."""

    identity: Identity


@dataclass(frozen=True, slots=True)
class FightsChanged:
    """The report that a fight for this object began, changed, or is over."""

    identity: Identity


FightEffect: TypeAlias = Correct | FightsChanged


@dataclass(frozen=True, slots=True)
class Bout:
    """The history of one object: the times of its recent corrections (``corrections``) and of its last event (``last_at``).

    ``waits``: the object has drifted, and will be corrected at ``next_at``. ``fight`` is None if there is no fight over the
    object.
    """

    corrections: tuple[float, ...]
    last_at: float
    waits: bool = False
    next_at: float = 0.0
    fight: Fight | None = None


@dataclass(frozen=True, slots=True)
class Fights:
    """The state of the machine: the recent history (bout) of each object that has drifted, and the rules for fights."""

    rules: FightRules = field(default_factory=FightRules)
    bouts: "HashTrieMap[Identity, Bout]" = field(default_factory=HashTrieMap)

    def fight(self, identity: Identity) -> Fight | None:
        """Return the present fight over an object; None if there is none."""
        bout = self.bouts.get(identity)
        return bout.fight if bout is not None else None

    def due(self) -> float | None:
        """Return the time at which the event Elapsed is due next; None if no object has a history."""
        return min((_due(bout, self.rules) for bout in self.bouts.values()), default=None)


def step(state: Fights, event: FightEvent) -> tuple[Fights, tuple[FightEffect, ...]]:
    """Return the state after an event, and the effects to perform."""
    match event:
        case Drifted():
            bout, effects = _drifted(state.bouts.get(event.identity), event, state.rules)
            return replace(state, bouts=state.bouts.insert(event.identity, bout)), effects
        case Settled():
            settled = state.bouts.get(event.identity)
            if settled is None or not settled.waits:
                return state, ()
            calm = replace(settled, waits=False, last_at=event.at)
            return replace(state, bouts=state.bouts.insert(event.identity, calm)), ()
        case Forgotten():
            gone = state.bouts.get(event.identity)
            if gone is None:
                return state, ()
            told = (FightsChanged(event.identity),) if gone.fight is not None else ()
            return replace(state, bouts=state.bouts.remove(event.identity)), told
        case Elapsed():
            return _elapsed(state, event.at)
        case _:
            assert_never(event)


def _drifted(bout: Bout | None, event: Drifted, rules: FightRules) -> tuple[Bout, tuple[FightEffect, ...]]:
    recent = tuple(at for at in bout.corrections if at > event.at - rules.window_s) if bout is not None else ()
    if bout is None or bout.fight is None:
        if len(recent) < rules.limit:
            return Bout((*recent, event.at), event.at), (Correct(event.identity),)
        by = event.by[:MAX_WRITERS]
        fight = Fight(event.identity, by, event.at, len(recent), rules.first_delay_s)
        begun = Bout(recent, event.at, waits=True, next_at=event.at + rules.first_delay_s, fight=fight)
        return begun, (FightsChanged(event.identity),)
    by = tuple(dict.fromkeys((*event.by, *bout.fight.by)))[:MAX_WRITERS]
    told: tuple[FightEffect, ...] = (FightsChanged(event.identity),) if by != bout.fight.by else ()
    waiting = replace(bout, waits=True, last_at=event.at, fight=replace(bout.fight, by=by))
    if event.at < bout.next_at:
        return waiting, told
    return _corrected(waiting, waiting.fight or bout.fight, event.at, rules)


def _corrected(bout: Bout, fight: Fight, at: float, rules: FightRules) -> tuple[Bout, tuple[FightEffect, ...]]:
    delay = min(2 * fight.delay_s, rules.max_delay_s)
    fight = replace(fight, corrections=fight.corrections + 1, delay_s=delay)
    after = replace(bout, waits=False, last_at=at, next_at=at + delay, fight=fight)
    return after, (Correct(fight.identity), FightsChanged(fight.identity))


def _elapsed(state: Fights, at: float) -> tuple[Fights, tuple[FightEffect, ...]]:
    effects: list[FightEffect] = []
    bouts = state.bouts
    for identity, bout in _overdue(state, at):
        if bout.fight is not None and bout.waits:
            after, more = _corrected(bout, bout.fight, at, state.rules)
            bouts = bouts.insert(identity, after)
            effects += more
        else:
            bouts = bouts.remove(identity)
            effects += (FightsChanged(identity),) if bout.fight is not None else ()
    return replace(state, bouts=bouts), tuple(effects)


def _overdue(state: Fights, at: float) -> Iterator[tuple[Identity, Bout]]:
    """Yield the objects whose due time has passed, each with its history, sorted by identity.

    An object is due when it has to be corrected, or when its history can be forgotten.
    """
    found = [(identity, bout) for identity, bout in state.bouts.items() if _due(bout, state.rules) <= at]
    yield from sorted(found, key=lambda item: item[0])


def _due(bout: Bout, rules: FightRules) -> float:
    return bout.next_at if bout.fight is not None and bout.waits else bout.last_at + rules.window_s
