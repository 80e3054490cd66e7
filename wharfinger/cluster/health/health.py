"""The health of a release: its objects that are not as wanted, with the reasons; and the fact about one object.

Pure. Only a small `Fact` is kept of each live object. States of one object have two sources: the watch, and the answers to
applies. For some time after an apply the watch may still report the state before the apply. Such states are recognized by their
resourceVersion (comparable within a kind, KEP-5504) and ignored, so that a wait which begins after an apply never ends because
of the state before the apply.
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
    """The health of a release in one word."""

    UNKNOWN = "Unknown"
    """The release has no objects, or some objects were not looked up yet."""
    CURRENT = "Current"
    """All objects are as wanted."""
    RECONCILING = "Reconciling"
    """Some objects are in progress."""
    DEGRADED = "Degraded"
    """An object has failed, or has stalled."""


@dataclass(frozen=True, slots=True)
class Health:
    """The health of a release. ``laggards`` are the objects that are not Current, sorted; ``known`` is False until every
    object was looked up once.

    ``stalled``: laggards that have been in progress for too long (:mod:`~wharfinger.cluster.health.stall`).
    """

    ready: tuple[ObjectKey, ...] = ()
    laggards: Laggards = field(default_factory=lambda: MappingProxyType({}))
    known: bool = True
    stalled: frozenset[ObjectKey] = frozenset()

    @property
    def state(self) -> HealthState:
        """Return the state in one word."""
        if not self.known or not (self.ready or self.laggards):
            return HealthState.UNKNOWN
        if self.stalled or any(isinstance(state, Failed) for state in self.laggards.values()):
            return HealthState.DEGRADED
        return HealthState.RECONCILING if self.laggards else HealthState.CURRENT

    def differs(self, other: "Health | None") -> bool:
        """Return whether a listener that was last notified of ``other`` has to be notified of this health."""
        return other is None or (self.state, self.laggards, self.stalled) != (
            other.state,
            other.laggards,
            other.stalled,
        )


def health_of(
    states: Mapping[ObjectKey, Readiness], unknown: Iterable[ObjectKey] = (), stalled: Iterable[ObjectKey] = ()
) -> Health:
    """Return the health of a release from the states of its objects. ``unknown`` are the objects that were not looked up yet.
    ``stalled`` are the objects that have stalled; an object that is ready does not count as stalled.
    """
    laggards = {key: state for key, state in sorted(states.items()) if not isinstance(state, Current)}
    ready = tuple(sorted(key for key, state in states.items() if isinstance(state, Current)))
    late = frozenset(key for key in stalled if key in laggards)
    return Health(ready, MappingProxyType(laggards), known=not any(True for _ in unknown), stalled=late)


@dataclass(frozen=True, slots=True)
class Sighting:
    """The observed version of an object. ``version`` is its resourceVersion, -1 if that is not a number."""

    uid: str
    version: int

    def is_before(self, other: "Sighting") -> bool:
        """Return whether this is an older state than ``other``: an earlier state of the same object, or a state of an earlier
        object with the same name.
        """
        return 0 <= self.version < other.version


def sighting(obj: JsonObject) -> Sighting:
    """Return the object's uid and its resourceVersion as a number (-1 if it is not a number). Raises ShapeError."""
    version = find_str(obj, "metadata", "resourceVersion")
    number = int(version) if version.isascii() and version.isdigit() and len(version) <= 20 else -1
    return Sighting(find_str(obj, "metadata", "uid"), number)


@dataclass(frozen=True, slots=True)
class Fact:
    """The fact about one live object: the state seen last, and its readiness.

    ``open`` is True while the readiness is being determined anew; ``state`` is then the former state. ``until`` is the end of a
    grace time (trio's clock), after which the object is Current. ``rule`` is the rule by which the object was judged. If the
    state comes from the answer to an apply, the watch may still deliver older states; they are ignored until the time
    ``guarded``.
    """

    seen: Sighting
    state: Readiness
    open: bool = False
    until: float | None = None
    rule: HealthRule | None = None
    guarded: float = -inf

    def at(self, now: float) -> Readiness:
        """Return the readiness at the time ``now``: Current after the end of the grace time, otherwise the last determined
        readiness.
        """
        return Current() if self.until is not None and now >= self.until else self.state

    def certain_at(self, now: float) -> Readiness:
        """Return the readiness if it belongs to the newest known state, so that a wait may end on it; else InProgress."""
        return InProgress("its health is being determined") if self.open else self.at(now)
