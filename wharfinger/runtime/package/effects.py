"""The effects that a step of a package's state machine returns (:mod:`~wharfinger.runtime.package.machine`).

The runtime carries them out after the step (:mod:`~wharfinger.runtime.core.packages`), and processes the outcome of an effect
as another event.
"""

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from wharfinger.packages.definition.definition import Definition
from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.scheduler.events import Disable, Schedule
from wharfinger.runtime.scheduler.events import Event as SchedulerEvent


class BeginBase:
    """The base of all effects that request an operation from the lifecycle store."""

    __slots__ = ()


class EnqueueBase:
    """The base of all effects that enqueue tasks."""

    __slots__ = ()


class Phase(Enum):
    """The work of a package for which other packages wait, but only for the first attempt: to ensure the CRDs, or to load the
    package.
    """

    CRDS = "crds"
    LOAD = "load"


class Simple(Enum):
    """The effects without parameters; the string value of each describes the action."""

    SUSPEND = "ask the lifecycle store for a suspension"
    CRDS = "ensure the package's CRDs, in a separate lane"
    UNPARK = "run parked tasks again, because a permanent failure may have been due to the settings"
    NEEDS_CHANGED = "offer the package's node to the scheduler again, because dependencies in the resource changed"
    UPDATE_COMPLETE = "notify the lifecycle store that the version is loaded"
    RUN_COMPLETE = "notify the lifecycle store that the version is applied"
    RESTART_REMOVAL = "interrupt the removal, and begin it again"
    RESTATE = "report the scheduler's present decision again"
    SETTLE = "ask the scheduler for its decision about the package's node"
    NOTIFY = "notify the controller of packages, which may have to act on this package"
    REST_RELEASE = "stop the correction of drift while the package is suspended"
    LOOK_AT_HEALTH = "report the health of the release, which was ignored while a task waited for readiness"
    ROUND_BEGINS = "begin a round of global hooks"
    ROUND_RAN = "continue the round of global hooks with the other packages"
    FLAGS_SEEN = "compare the enabled flags that global hooks have set with those in effect"
    ASK_PROVISIONAL = "run again the enabled scripts that ran before all installed packages were loaded"
    CLEAN = "delete the queue of the removed package, and forget the package, in a task outside of that queue"
    SEE_OTHERS = "run the enabled script again if the list of Modules that it gets has changed"


@dataclass(frozen=True, slots=True)
class Tell:
    """Pass an event to the scheduler."""

    event: SchedulerEvent


@dataclass(frozen=True, slots=True)
class Offer:
    """Offer a definition to the scheduler as the package's node. ``established`` has the CRDs that were established before the
    offer, and that count again if the scheduler refuses the offer; None if the CRDs of the earlier definition were not
    established yet.
    """

    definition: Definition
    fresh: bool
    stored: bool
    established: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Order:
    """Carry out an order of the scheduler (to run or to disable the package), after the effects of the scheduler's decision."""

    order: Schedule | Disable


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel everything that runs or waits in this scope."""

    scope: WorkScope
    cause: str


@dataclass(frozen=True, slots=True)
class Log:
    """Log a line about the package."""

    text: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Attempt:
    """Record the beginning or the end of the package's first attempt at the work ``phase``; other packages wait for its end."""

    phase: Phase
    begins: bool


@dataclass(frozen=True, slots=True)
class GiveWay:
    """Let packages of a higher order run although this package has failed: immediately (``at_once``) or after some attempts."""

    run: int
    at_once: bool


@dataclass(frozen=True, slots=True)
class CastVote:
    """Record the vote of the enabled script. If ``may_be_early`` is true and some installed packages are not loaded yet, the
    vote is provisional.
    """

    enabled: bool | None
    reason: str
    error: str
    may_be_early: bool


# --- operations to ask the lifecycle store for -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BeginUpdate(BeginBase):
    """Ask the lifecycle store for an update."""

    generation: int


@dataclass(frozen=True, slots=True)
class BeginReconciliation(BeginBase):
    """Ask the lifecycle store for a reconciliation."""

    run: int
    reason: str


@dataclass(frozen=True, slots=True)
class BeginDisable(BeginBase):
    """Ask the lifecycle store for a Disable."""

    reason: str
    uninstall: bool


@dataclass(frozen=True, slots=True)
class BeginVote(BeginBase):
    """Ask the lifecycle store for a vote, because the specification of the package has changed; ``reason`` names the change."""

    reason: str


@dataclass(frozen=True, slots=True)
class RepeatVote(BeginBase):
    """Ask the lifecycle store for another vote. The script gets the names in ``before``: the preceding Modules that are on.

    If this vote interrupts a run of the script that a changed specification caused, ``reason`` names the change; otherwise it
    is "".
    """

    before: tuple[str, ...]
    reason: str


# --- tasks to enqueue ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EnqueueUpdate(EnqueueBase):
    """Enqueue the tasks of an update."""

    scope: WorkScope


@dataclass(frozen=True, slots=True)
class EnqueueReconciliation(EnqueueBase):
    """Enqueue the tasks of a reconciliation."""

    scope: WorkScope
    run: int


@dataclass(frozen=True, slots=True)
class EnqueueDisable(EnqueueBase):
    """Enqueue the task of a Disable. With ``keep``, the objects in the cluster are kept."""

    scope: WorkScope
    keep: bool


@dataclass(frozen=True, slots=True)
class EnqueueSuspend(EnqueueBase):
    """Enqueue the task of a suspension."""

    scope: WorkScope


@dataclass(frozen=True, slots=True)
class EnqueueVote(EnqueueBase):
    """Enqueue a run of the enabled script. ``reason`` names the change of the specification because of which the script has to
    run. It is empty if the script has to run because other Modules are on now, or more packages are loaded.
    """

    scope: WorkScope
    reason: str


@dataclass(frozen=True, slots=True)
class EnqueueCrds(EnqueueBase):
    """Enqueue the task that ensures the CRDs."""

    scope: WorkScope


@dataclass(frozen=True, slots=True)
class EnqueueRemoval(EnqueueBase):
    """Enqueue the tasks of a removal."""

    scope: WorkScope


Begin: TypeAlias = BeginUpdate | BeginReconciliation | BeginDisable | BeginVote | RepeatVote
Enqueue: TypeAlias = (
    EnqueueUpdate | EnqueueReconciliation | EnqueueDisable | EnqueueSuspend | EnqueueVote | EnqueueCrds | EnqueueRemoval
)
Effect: TypeAlias = Simple | Tell | Offer | Order | Cancel | Log | Attempt | GiveWay | CastVote | Begin | Enqueue
