"""The state that the operations and the monitors of a release engine share: the state of each release, and the listeners of the
engine.
"""

from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import trio

from wharfinger.cluster.drift.comparison import SHOWN, Drift
from wharfinger.cluster.drift.fights import Fight
from wharfinger.cluster.drift.monitor import Corrected
from wharfinger.cluster.health.health import Health
from wharfinger.cluster.objects.desired import Identity
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.releases.options import EngineListener
from wharfinger.cluster.releases.request import ReleaseResult
from wharfinger.formats.listing import listed
from wharfinger.kube.resource import ObjectKey
from wharfinger.kube.service_account import ServiceAccount


@dataclass(frozen=True, slots=True)
class Known:
    """The last applied state of a release. It is discarded when the next operation on the release begins, or when another
    writer changes the release."""

    fingerprint: str
    result: ReleaseResult
    groups: tuple[Hashable, ...]
    confined: bool = False
    """True if the release was allowed to have objects in its own namespace only."""
    account: ServiceAccount | None = None
    """The service account with whose rights the release was applied; None: the rights of the daemon."""


@dataclass(slots=True)
class _Turn:
    lock: trio.Lock = field(default_factory=trio.Lock)
    waiting: int = 0


@dataclass(slots=True)
class ReleaseRegistry:
    """The releases of an engine.

    ``known``: the last applied state of each release. ``whole``: releases whose objects all have rows. ``restored``: releases
    that were restored from their records and not upgraded since, each with its revision, or 0 if objects in its record have no
    row. ``left_alone``: releases that another tool changed last. ``suspended``: releases that are suspended. ``turns``: releases
    with an operation under way.
    """

    listeners: tuple[EngineListener, ...] = ()
    correction_listeners: tuple[Corrected, ...] = ()
    known: dict[Owner, Known] = field(default_factory=dict)
    whole: set[Owner] = field(default_factory=set)
    restored: dict[Owner, int] = field(default_factory=dict)
    left_alone: set[Owner] = field(default_factory=set)
    suspended: set[Owner] = field(default_factory=set)
    turns: dict[Owner, _Turn] = field(default_factory=dict)
    accounts: dict[Owner, ServiceAccount | None] = field(default_factory=dict)
    """The account that the last successful upgrade of each release acted as; None: the daemon itself."""
    drifted: dict[Owner, tuple[tuple[Drift, ...], tuple[Fight, ...]]] = field(default_factory=dict)
    """The last reported drift and fights of each release; releases without drift and fights are missing."""
    missing: dict[Owner, tuple[Drift, ...]] = field(default_factory=dict)
    """The definitions that each release applied, and that are gone from the cluster."""

    def forget(self, owner: Owner) -> None:
        """Discard the last applied state of this release, and the records that all its rows are known and that it was
        restored.
        """
        self.known.pop(owner, None)
        self.whole.discard(owner)
        self.restored.pop(owner, None)

    def corrections_paused(self, owner: Owner) -> bool:
        """Return whether drift of this release is reported but not corrected: the release is suspended, or another tool
        changed it last.
        """
        return owner in self.suspended or owner in self.left_alone

    def may_prune(self, owner: Owner) -> bool:
        """Return whether a prune may delete objects that have the label of the release but no row: all rows of the release must
        be known, and its drift must be corrected.
        """
        return owner in self.whole and not self.corrections_paused(owner)

    def report_drift(self, owner: Owner, drifts: tuple[Drift, ...], fights: tuple[Fight, ...]) -> None:
        """Report the drift of a release to the listeners (see EngineListener). Each of its CRDs that is missing in the cluster
        counts as drift, too.
        """
        _put(self.drifted, owner, (drifts, fights) if drifts or fights else None)
        for listener in self.listeners:
            listener.drifted(owner, (*drifts, *self.missing.get(owner, ())), fights)

    def drifted_fields(self, owner: Owner, identity: Identity) -> str:
        """Return the fields of an object that differ from what was applied, with the managers that have them; "" if no such field
        is known.
        """
        drifts, _ = self.drifted.get(owner, ((), ()))
        found = next((drift for drift in drifts if drift.identity == identity), None)
        return listed(found.fields, SHOWN) if found is not None else ""

    def report_corrected(self, owner: Owner, drift: Drift) -> None:
        """Report the drift of an object that was corrected."""
        for corrected in self.correction_listeners:
            corrected(owner, drift)

    def report_missing(self, owner: Owner, missing: tuple[Drift, ...]) -> None:
        """Report to the listeners which CRDs of an owner are missing now; ``missing`` is empty once all of them exist again."""
        _put(self.missing, owner, missing or None)
        self.report_drift(owner, *self.drifted.get(owner, ((), ())))

    def report_health(self, owner: Owner, health: Health) -> None:
        """Report a change of health to the listeners (see EngineListener)."""
        for listener in self.listeners:
            listener.health_changed(owner, health)

    def report_foreign(self, owner: Owner, revision: int, by: str) -> None:
        """Report a revision of another writer to the listeners (see EngineListener)."""
        for listener in self.listeners:
            listener.foreign_revision(owner, revision, by)

    def report_pruned(self, owner: Owner, keys: tuple[ObjectKey, ...]) -> None:
        """Report pruned objects to the listeners (see EngineListener)."""
        for listener in self.listeners:
            listener.pruned(owner, keys)

    def report_troubles(self, owner: Owner, troubles: tuple[str, ...]) -> None:
        """Report troubles to the listeners (see EngineListener)."""
        for listener in self.listeners:
            listener.troubled(owner, troubles)

    def is_busy(self, owner: Owner) -> bool:
        """Return whether an operation of the release is under way or waiting."""
        return owner in self.turns

    @property
    def busy(self) -> int:
        """The number of operations under way or waiting."""
        return sum(turn.waiting for turn in self.turns.values())

    @asynccontextmanager
    async def turn(self, owner: Owner) -> AsyncIterator[None]:
        """Hold the release for the block, so that no other operation runs on it; wait for an operation that is under way."""
        turn = self.turns.setdefault(owner, _Turn())
        turn.waiting += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.waiting -= 1
            if not turn.waiting:
                del self.turns[owner]


Value = TypeVar("Value")


def _put(values: dict[Owner, Value], owner: Owner, value: Value | None) -> None:
    if value is None:
        values.pop(owner, None)
    else:
        values[owner] = value
