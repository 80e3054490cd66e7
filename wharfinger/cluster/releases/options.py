"""The options of a release engine, its listener, and its statistics."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from wharfinger.cluster.drift.comparison import Drift
from wharfinger.cluster.drift.fights import Fight
from wharfinger.cluster.drift.monitor import DriftStatistics
from wharfinger.cluster.health.health import Health
from wharfinger.cluster.health.monitor import HealthStatistics
from wharfinger.cluster.health.rules import Expressions
from wharfinger.cluster.health.stall import GRACE_S
from wharfinger.cluster.lease.fencing import Holder
from wharfinger.cluster.objects.accounts import Accounts, daemon_itself
from wharfinger.cluster.objects.live_objects import LiveStatistics
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.objects.scope import Confined, unconfined
from wharfinger.cluster.reconciler.options import ReconcilerOptions
from wharfinger.cluster.reconciler.statistics import ReconcilerStatistics
from wharfinger.cluster.records.release_store import HISTORY
from wharfinger.cluster.tables.statistics import TableStatistics
from wharfinger.kube.resource import ObjectKey


def utc_now() -> datetime:
    """Return the time of the wall clock."""
    return datetime.now(UTC)


def unattributed(_owner: Owner) -> AbstractContextManager[None]:
    """Return a context that attributes the operations of the engine to no package."""
    return nullcontext()


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """The options of an engine.

    ``holder`` is written into records. ``force`` takes fields from all other managers. ``history`` is the number of kept
    revisions. ``during`` returns a context in which an operation of a release runs; the context attributes the operation to a
    package. ``expressions`` evaluates packages' own health rules; without it, these rules are ignored. ``grace_s`` is the time
    for which an object of a healthy release may be unready without progress, ``full_s`` the time between two comparisons of all
    objects with their rows, ``prune_s`` the time between two prunes (0: on demand only). ``confined`` returns whether a release
    may hold objects of its own namespace only. ``account`` returns the service account that a release acts as.
    """

    field_manager: str = "wharfinger"
    now: Callable[[], datetime] = utc_now
    holder: Holder | str = "wharfinger"
    force: bool = False
    history: int = HISTORY
    during: Callable[[Owner], AbstractContextManager[None]] = unattributed
    expressions: Expressions | None = None
    grace_s: float = GRACE_S
    confined: Confined = unconfined
    account: Accounts = daemon_itself
    full_s: float = 600.0
    prune_s: float = 3600.0
    reconciler: ReconcilerOptions = field(default_factory=lambda: ReconcilerOptions(prune_limit_s=60.0))


class EngineListener(Protocol):
    """A listener for events of releases. Synchronous; must not block."""

    def drifted(self, owner: Owner, drifts: tuple[Drift, ...], fights: tuple[Fight, ...]) -> None:
        """Receive all drift and all fights of a release; both are empty once the release has neither."""

    def health_changed(self, owner: Owner, health: Health) -> None:
        """Receive a change of a release's health: of its state, or of the set of objects that are not ready."""

    def foreign_revision(self, owner: Owner, release_revision: int, by: str) -> None:
        """Receive a revision that another writer made or deleted; drift is not corrected until the next upgrade."""

    def pruned(self, owner: Owner, keys: tuple[ObjectKey, ...]) -> None:
        """Receive the objects that a prune deleted. They did not belong to the release any more, but no operation had deleted
        them.
        """

    def troubled(self, owner: Owner, troubles: tuple[str, ...]) -> None:
        """Receive the failures of actions that the engine takes without a request, such as corrections of drift, one sentence
        each; empty once nothing fails.
        """


@dataclass(frozen=True, slots=True)
class EngineStatistics:
    """The statistics of an engine. ``apply_health`` is the health of the reconciler, in a sentence.

    ``pruned`` is the number of objects that prunes deleted; ``whole`` the number of releases whose objects all have rows;
    ``left_alone`` the number of releases that another tool changed last; ``busy`` the number of operations under way or
    waiting; ``cached_records`` the number of revisions that are kept in memory, with their size.
    """

    table: TableStatistics
    reconciler: ReconcilerStatistics
    drift: DriftStatistics
    health: HealthStatistics
    live: LiveStatistics
    apply_health: str
    pruned: int
    whole: int
    left_alone: int
    busy: int
    cached_records: int
    cached_record_bytes: int
