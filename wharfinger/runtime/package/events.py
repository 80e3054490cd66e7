"""The events of one package.

:func:`~wharfinger.runtime.package.machine.step` computes the state of the package after an event, and the effects to carry out.
This module has three sections: the events that tasks and hooks report, the outcomes of effects, and the decisions of the
scheduler with the requests of users. Events that only change the state, and have no effects, are in
:mod:`~wharfinger.runtime.package.findings`.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

from wharfinger.packages.definition.definition import Definition
from wharfinger.queue.record import record
from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.lifecycle.desired_state import Decision
from wharfinger.runtime.package.facts import DesiredGiven
from wharfinger.runtime.package.findings import Finding
from wharfinger.runtime.resources.release_policy import DeletionPolicy
from wharfinger.runtime.resources.settings import ResolvedSettings
from wharfinger.runtime.scheduler.events import Decided, ScriptVoted
from wharfinger.runtime.status.failures import Failure
from wharfinger.runtime.status.package_status import PackageStatus, Stage


class ReportBase:
    """The base class of all reports, so that one ``isinstance`` recognizes them."""

    __slots__ = ()


class OutcomeBase:
    """The base class of all events that report the outcome of an effect."""

    __slots__ = ()


class RequestBase:
    """The base class of all events that are decisions of the scheduler or requests."""

    __slots__ = ()


# --- what tasks and hooks report -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Progressed(ReportBase):
    """The work of a stage has made progress, or waits for something. ``reason`` and ``message`` are shown in the status."""

    stage: Stage
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Succeeded(ReportBase):
    """A stage is done."""

    stage: Stage


@dataclass(frozen=True, slots=True)
class StageFailed(ReportBase):
    """A stage failed."""

    stage: Stage
    failure: Failure


@dataclass(frozen=True, slots=True)
class Placed(ReportBase):
    """There may be objects of the package in its namespace from now on."""


@dataclass(frozen=True, slots=True)
class Released(ReportBase):
    """The wanted version is applied. ``revision`` is the revision of the package's release; 0 if the package has no release."""

    revision: int


@dataclass(frozen=True, slots=True)
class Tracked(ReportBase):
    """The progress of an apply, or of the wait until the applied objects are ready. ``remaining`` has the names of the objects
    that are not done. ``completed`` has the names of the objects that are done; a name that is in both counts as not done.
    """

    completed: tuple[str, ...]
    remaining: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reachable(ReportBase):
    """The URLs of the package, each with its purpose. They replace the URLs that were reported before."""

    urls: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class WarnedOf(ReportBase):
    """There are warnings about one subject, which works but should be changed. The warnings replace earlier ones about the
    same subject.
    """

    subject: str
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Uninstalled(ReportBase):
    """Nothing of the package is in the cluster any more."""


@dataclass(frozen=True, slots=True)
class Removing(ReportBase):
    """A removal makes progress, waits, or has failed. ``reason`` is "Removing" unless the removal has failed."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Voted(ReportBase):
    """The enabled script voted or failed, or the package has no script. In the last two cases, ``enabled`` is None. ``reason``
    is the reason for the vote or for the failure.
    """

    enabled: bool | None
    reason: str = ""
    failed: bool = False


@record
class HookDone(ReportBase):
    """A hook ran; ``error`` is empty if it succeeded."""

    hook: str
    error: str


@dataclass(frozen=True, slots=True)
class EventHookDone(ReportBase):
    """An event hook (a hook that was run for changed objects or on a schedule) ran in a lane; ``error`` is empty if it
    succeeded. After a failure, the hook counts as failed in this lane until its next success there.
    """

    hook: str
    lane: str
    error: str


@dataclass(frozen=True, slots=True)
class ValuesChanged(ReportBase):
    """An event hook changed the values, so that the last render is out of date."""

    hook: str


@dataclass(frozen=True, slots=True)
class HealthSeen(ReportBase):
    """The readiness of the release's objects. At most one of three texts is set: ``failed`` lists failed objects; ``stalled``
    lists stalled objects, if none has failed; ``rolling`` lists the objects that are not ready, if none has failed or stalled.

    All three texts are empty if all objects are ready. ``any_stalled`` is True if any object is stalled, even if ``failed`` is
    the text that is set.
    """

    failed: str = ""
    stalled: str = ""
    rolling: str = ""
    any_stalled: bool = False


@dataclass(frozen=True, slots=True)
class DriftReported(ReportBase):
    """The fields of the release that differ from what was applied, and the fields that another writer sets again after each
    correction.
    """

    drift: tuple[str, ...]
    fought: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ForeignRevision(ReportBase):
    """Another writer made a revision of the release. The daemon does not undo this revision."""

    text: str


@dataclass(frozen=True, slots=True)
class Troubled(ReportBase):
    """Some objects of the package cannot be corrected or pruned, so a user has to act. Each text describes one object."""

    texts: tuple[str, ...]


Report: TypeAlias = (
    Progressed
    | Succeeded
    | StageFailed
    | Placed
    | Released
    | Tracked
    | Reachable
    | WarnedOf
    | Uninstalled
    | Removing
    | Voted
    | HookDone
    | EventHookDone
    | ValuesChanged
    | HealthSeen
    | DriftReported
    | ForeignRevision
    | Troubled
)

OF_EVERY_OPERATION: Final = (HookDone, EventHookDone, ValuesChanged)
"""The reports about runs of hooks. They are processed even if the operation that started the run was cancelled."""


# --- the outcomes of effects ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UpdateStarted(OutcomeBase):
    """An update was begun in the lifecycle store; its tasks are to run in ``scope``."""

    scope: WorkScope
    generation: int


@dataclass(frozen=True, slots=True)
class UpdateDone(OutcomeBase):
    """The last task of an update succeeded."""


@dataclass(frozen=True, slots=True)
class NodeAccepted(OutcomeBase):
    """The scheduler accepted the definition as the package's node.

    ``fresh`` is True if the definition differs from that of the previous node. ``stored`` is True if it is the definition of
    the installed version of a suspended package; then ``fresh`` is False.
    """

    definition: Definition
    fresh: bool
    stored: bool


@dataclass(frozen=True, slots=True)
class NodeRefused(OutcomeBase):
    """The scheduler refused the definition, because the package's dependencies would form a cycle. ``established`` has the CRDs
    that were established before the offer; they remain the package's established CRDs.
    """

    failure: Failure
    fresh: bool
    established: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class NodeSettled(OutcomeBase):
    """The scheduler has decided about the package, after a new definition and the vote of its enabled script were passed to the
    scheduler. ``enabled`` is True if the package is on; ``unwanted`` is True if the package is off and has to be uninstalled.
    """

    enabled: bool
    unwanted: bool


@dataclass(frozen=True, slots=True)
class VoteRecorded(OutcomeBase):
    """The vote of the enabled script, as the scheduler gets it. ``vote.provisional`` is True if the script ran before all
    installed packages were loaded.
    """

    vote: ScriptVoted


@dataclass(frozen=True, slots=True)
class VoteStarted(OutcomeBase):
    """A vote was begun in the lifecycle store; the enabled script is to run in ``scope``. ``reason`` names the change of the
    specification because of which the script runs; it is empty if there was no such change. If the script runs again because
    other Modules are on or more packages are loaded, ``before`` has the preceding Modules that are on; otherwise it is None.
    """

    scope: WorkScope
    reason: str
    before: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class VoteDone(OutcomeBase):
    """The enabled script ran because the specification changed; ``reason`` names the change."""

    reason: str


@dataclass(frozen=True, slots=True)
class VoteRepeated(OutcomeBase):
    """The enabled script ran again because the set of Modules that are on has changed."""


@dataclass(frozen=True, slots=True)
class ReconciliationStarted(OutcomeBase):
    """The lifecycle store was asked to begin a reconciliation. The tasks of the reconciliation run in ``scope``, which is None
    if the reconciliation cannot begin, because the package is suspended, being removed or unknown.
    """

    run: int
    scope: WorkScope | None


@dataclass(frozen=True, slots=True)
class RunDone(OutcomeBase):
    """The task Run of the reconciliation with this number succeeded."""

    run: int


@dataclass(frozen=True, slots=True)
class DisableStarted(OutcomeBase):
    """A Disable was begun in the lifecycle store; its task is to run in ``scope``. ``updating`` is True if the Disable has
    interrupted an update.
    """

    reason: str
    uninstall: bool
    scope: WorkScope
    updating: bool


@dataclass(frozen=True, slots=True)
class DisableDone(OutcomeBase):
    """The task of a Disable succeeded."""


@dataclass(frozen=True, slots=True)
class SuspendStarted(OutcomeBase):
    """A suspension was begun in the lifecycle store; its task is to run in ``scope``."""

    scope: WorkScope


@dataclass(frozen=True, slots=True)
class StoredLoaded(OutcomeBase):
    """The task of a suspension succeeded. It has read the installed version of the package, if its files are on the disk."""


@dataclass(frozen=True, slots=True)
class CrdsStarted(OutcomeBase):
    """The CRDs of the package have to be applied; the task that does this is to run in ``scope``."""

    scope: WorkScope


@dataclass(frozen=True, slots=True)
class RemovalStarted(OutcomeBase):
    """A removal was begun in the lifecycle store; its tasks are to run in ``scope``.

    ``settings`` are the settings for the package's hooks, ``deletion`` is the policy for its objects; each is None if it is not
    known. ``disowned`` is True if the release with the package's name belongs to another package. ``moved`` is True if another
    daemon manages the package from now on, so that nothing is removed from the cluster.
    """

    scope: WorkScope
    settings: ResolvedSettings | None
    deletion: DeletionPolicy | None
    disowned: bool
    moved: bool = False


@dataclass(frozen=True, slots=True)
class RemovalDone(OutcomeBase):
    """The last task of a removal succeeded."""


# --- decisions and requests ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DesiredAdopted(RequestBase):
    """The lifecycle store adopted a desired state, and decided what work it requires.

    ``scope`` is the scope of the required update; None if no update is required. ``new_login`` is True if the source of the
    package, which includes the login, has changed while an update runs. ``needs_changed`` is True if the dependencies that the
    resource states, or the default of the package (on or off), have changed.
    """

    given: DesiredGiven
    decision: Decision
    generation: int
    scope: WorkScope | None
    new_login: bool
    needs_changed: bool


@dataclass(frozen=True, slots=True)
class UpdateWanted(RequestBase):
    """The wanted version has to be fetched and loaded again, because its content may have changed."""

    generation: int


@dataclass(frozen=True, slots=True)
class NeedsChanged(RequestBase):
    """The package's resource names other dependencies than before, or the package's default (on or off) has changed."""


@dataclass(frozen=True, slots=True)
class OthersTurned(RequestBase):
    """The set of Modules that are on may have changed. ``before`` has the names of the Modules that are on and precede this
    package.
    """

    before: tuple[str, ...]
    forced: bool
    """True if the enabled script must run again even if ``before`` has not changed since its last run."""


@dataclass(frozen=True, slots=True)
class DecisionReported(RequestBase):
    """The scheduler's decision is to be shown in the package's status."""

    decided: Decided


@dataclass(frozen=True, slots=True)
class DecisionMade(RequestBase):
    """The scheduler decided whether the package may be on."""

    allowed: bool


@dataclass(frozen=True, slots=True)
class RunOrdered(RequestBase):
    """The scheduler ordered a run with this number, for this reason."""

    run: int
    reason: str


@dataclass(frozen=True, slots=True)
class DisableOrdered(RequestBase):
    """The scheduler ordered to disable the package for this reason."""

    reason: str
    uninstall: bool


@dataclass(frozen=True, slots=True)
class DeletionChanged(RequestBase):
    """The deletion policy was changed while the package is being removed."""

    deletion: DeletionPolicy


@dataclass(frozen=True, slots=True)
class RemovalAccountChanged(RequestBase):
    """The service account of a package that is being removed was changed. If ``account`` is empty, the removal acts as the
    daemon itself.
    """

    account: str


@dataclass(frozen=True, slots=True)
class SkipDeleteHooks(RequestBase):
    """A user wants the removal to continue without the package's own delete hooks."""


@dataclass(frozen=True, slots=True)
class Changed(RequestBase):
    """The status changes to ``status``, which was computed from the old status alone."""

    status: PackageStatus


Outcome: TypeAlias = (
    UpdateStarted
    | UpdateDone
    | NodeAccepted
    | NodeRefused
    | NodeSettled
    | VoteRecorded
    | VoteStarted
    | VoteDone
    | VoteRepeated
    | ReconciliationStarted
    | RunDone
    | DisableStarted
    | DisableDone
    | SuspendStarted
    | StoredLoaded
    | CrdsStarted
    | RemovalStarted
    | RemovalDone
)
Request: TypeAlias = (
    DesiredAdopted
    | UpdateWanted
    | NeedsChanged
    | OthersTurned
    | DecisionReported
    | DecisionMade
    | RunOrdered
    | DisableOrdered
    | DeletionChanged
    | RemovalAccountChanged
    | SkipDeleteHooks
    | Changed
)
Event: TypeAlias = Report | Outcome | Request | Finding
