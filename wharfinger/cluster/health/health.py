"""How a release is: which of its objects are as wanted, and what keeps the others. What is known of one object, and no more.

Pure. A few words are kept of each live object, never the object. States of one object come from two sides: from the watch, and
from what an apply answered. For some time after an apply the watch may still tell what was before it; by their resourceVersion
(comparable within a kind, KEP-5504) such states are known and passed over, so that a wait which begins after an apply never ends
on the state before it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from types import MappingProxyType

from wharfinger.cluster.health.rules import HealthRule
from wharfinger.cluster.watch.object_waits import Laggards
from wharfinger.cluster.watch.readiness import Current, Failed, InProgress, Readiness
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey


class HealthState(StrEnum):
    """A release in one word (spec runtime §8.8)."""

    UNKNOWN = "Unknown"
    """It has no objects, or not all were looked up yet."""
    CURRENT = "Current"
    """All are as wanted."""
    RECONCILING = "Reconciling"
    """Some are on their way."""
    DEGRADED = "Degraded"
    """One has failed, or has stalled."""


@dataclass(frozen=True, slots=True)
class Health:
    """``laggards`` are sorted; ``known`` is False until everything was looked up once, and they may all be ready.

    ``stalled``: laggards that have been on their way for too long (:mod:`~wharfinger.cluster.health.stall`).
    """

    ready: tuple[ObjectKey, ...] = ()
    laggards: Laggards = field(default_factory=lambda: MappingProxyType({}))
    known: bool = True
    stalled: frozenset[ObjectKey] = frozenset()

    @property
    def state(self) -> HealthState:
        """In one word."""
        if not self.known or not (self.ready or self.laggards):
            return HealthState.UNKNOWN
        if self.stalled or any(isinstance(state, Failed) for state in self.laggards.values()):
            return HealthState.DEGRADED
        return HealthState.RECONCILING if self.laggards else HealthState.CURRENT

    def differs(self, other: "Health | None") -> bool:
        """Whether somebody who was told the other has something to learn."""
        return other is None or (self.state, self.laggards, self.stalled) != (
            other.state,
            other.laggards,
            other.stalled,
        )


def health_of(
    states: Mapping[ObjectKey, Readiness], unknown: Iterable[ObjectKey] = (), stalled: Iterable[ObjectKey] = ()
) -> Health:
    """The health of a release whose objects are in these states, all but the unknown ones."""
    laggards = {key: state for key, state in sorted(states.items()) if not isinstance(state, Current)}
    ready = tuple(sorted(key for key, state in states.items() if isinstance(state, Current)))
    late = frozenset(key for key in stalled if key in laggards)
    return Health(ready, MappingProxyType(laggards), known=not any(True for _ in unknown), stalled=late)


@dataclass(frozen=True, slots=True)
class Sighting:
    """Which state of an object was seen. ``version`` is its resourceVersion, -1 where that is no number."""

    uid: str
    version: int

    def is_before(self, other: "Sighting") -> bool:
        """Whether it is an older state, of this object or of one that had its name."""
        return 0 <= self.version < other.version


def sighting(obj: JsonObject) -> Sighting:
    """Of an object. Raises ShapeError."""
    version = find_str(obj, "metadata", "resourceVersion")
    number = int(version) if version.isascii() and version.isdigit() and len(version) <= 20 else -1
    return Sighting(find_str(obj, "metadata", "uid"), number)


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of one live object: the state seen last, and its readiness.

    ``open``: its readiness is being found out anew, and ``state`` is what it was. ``until``: a grace time ends then (trio's
    clock), and with it what the state waits for. ``rule`` is what it was judged by.
    ``guarded``: an apply answered with it, and until then no older state counts.
    """

    seen: Sighting
    state: Readiness
    open: bool = False
    until: float | None = None
    rule: HealthRule | None = None
    guarded: float = -inf

    def at(self, now: float) -> Readiness:
        """Its readiness, as far as it is known."""
        return Current() if self.until is not None and now >= self.until else self.state

    def certain_at(self, now: float) -> Readiness:
        """Its readiness as of the state that was seen last: what a wait may end on."""
        return InProgress("its health is being found out") if self.open else self.at(now)
