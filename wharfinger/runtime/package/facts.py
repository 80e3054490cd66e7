"""The facts about one package that its state machine records, and the union of all facts.

A fact only changes the package's state (:mod:`~wharfinger.runtime.package.transitions`). The state machine records the facts of
this module when it handles other events; tasks never report them. The facts that tasks and controllers report are in
:mod:`~wharfinger.runtime.package.findings`.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from wharfinger.packages.definition.definition import Definition
from wharfinger.packages.sources.source import Source
from wharfinger.queue.record import record
from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.package.findings import (
    AccountGiven,
    AdoptedForRemoval,
    AttemptBase,
    ChartApplied,
    ChartSearched,
    Configured,
    CrdsBase,
    CrdsEstablished,
    DeletionChosen,
    DesiredBase,
    Downloaded,
    FilesBase,
    FoundInstalled,
    FoundStored,
    HooksBase,
    HooksStarted,
    HooksStarting,
    HooksStopped,
    HooksUnusable,
    NodeBase,
    ObjectsKnown,
    OverridesMatched,
    PackageRead,
    ReleaseBase,
    RemovalBase,
    Renamed,
    ScriptAnswered,
    ScriptAsked,
    ScriptBase,
    SettingsConverted,
    StartupHookDone,
    Unpacked,
    ValuesPatched,
    ValuesRead,
    Verified,
    VoteReported,
    WebhooksSearched,
)
from wharfinger.runtime.resources.release_policy import DeletionPolicy
from wharfinger.runtime.resources.resources import Directives
from wharfinger.runtime.resources.settings import ResolvedSettings
from wharfinger.runtime.scheduler.events import ScriptVoted
from wharfinger.runtime.status.failures import Failure
from wharfinger.runtime.status.package_status import PackageStatus


@dataclass(frozen=True, slots=True)
class StatusSet:
    """The status of the package changed."""

    status: PackageStatus


@dataclass(frozen=True, slots=True)
class Warned:
    """There are warnings about one subject; they replace earlier warnings about this subject."""

    subject: str
    warnings: tuple[str, ...]


# --- the desired state ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DesiredGiven(DesiredBase):
    """The package's resource states this desired state. ``first`` is True if the package was not known before."""

    package: str
    version: str
    source: Source
    settings: ResolvedSettings
    directives: Directives
    first: bool


@dataclass(frozen=True, slots=True)
class SettingsGiven(DesiredBase):
    """The settings for the delete hooks are known. This fact is recorded at the removal of a package if this process has never
    adopted a desired state of the package.
    """

    settings: ResolvedSettings


@dataclass(frozen=True, slots=True)
class RefreshWanted(DesiredBase):
    """The next download must ask the registry, because the content of the version may have changed."""


@dataclass(frozen=True, slots=True)
class UpdateBegun(DesiredBase):
    """An update of the package began."""

    at: datetime


# --- the files -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LoadCompleted(FilesBase):
    """The update that loaded the package is complete."""


# --- the node ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Offered(NodeBase):
    """A definition is about to be offered to the scheduler. ``established`` has the package's CRDs if all CRDs of this
    definition are established; otherwise it is None.
    """

    established: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Joined(NodeBase):
    """The scheduler accepted the definition as the package's node."""

    definition: Definition


@dataclass(frozen=True, slots=True)
class JoinRefused(NodeBase):
    """The scheduler refused a new definition; the established CRDs are still those of the earlier definition."""

    failure: Failure
    crds: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class ReconciliationOrdered(NodeBase):
    """The scheduler ordered a reconciliation with this number."""

    run: int


@dataclass(frozen=True, slots=True)
class ReconciliationBegun(NodeBase):
    """The lifecycle store was asked for a reconciliation. An earlier Disable no longer counts, even if the lifecycle store
    refused the reconciliation.
    """


@dataclass(frozen=True, slots=True)
class DisableBegun(NodeBase):
    """A Disable began."""

    reason: str
    uninstall: bool


@dataclass(frozen=True, slots=True)
class DisableEnded(NodeBase):
    """The Disable is complete."""


@dataclass(frozen=True, slots=True)
class DisableMissed(NodeBase):
    """The scheduler ordered a Disable that cannot be carried out now. ``uninstall`` is True if it would have uninstalled the
    package, and ``reason`` is the scheduler's reason for the Disable.
    """

    reason: str
    uninstall: bool


@dataclass(frozen=True, slots=True)
class MissedDisableDropped(NodeBase):
    """The Disable that was missed (`DisableMissed`) is not to be carried out any more, because the scheduler decided again."""


@dataclass(frozen=True, slots=True)
class SuspendBegun(NodeBase):
    """The package was suspended, and its work was interrupted. A Disable that was under way is recorded as missed, so that it
    can be carried out after the package is resumed.
    """


# --- the enabled script ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VoteCast(ScriptBase):
    """The vote of the script is known. The scheduler gets the vote immediately, or together with the package's node."""

    vote: ScriptVoted


@dataclass(frozen=True, slots=True)
class VoteBegun(ScriptBase):
    """A run of the enabled script outside of an update began, with this scope. ``reason`` is the change of the specification
    that caused the run; it is empty if no such change caused it. If a change of the Modules that are on and precede the package
    caused the run, ``before`` has these Modules; otherwise it is None.
    """

    scope: WorkScope
    reason: str
    before: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class ScriptDone(ScriptBase):
    """A run of the enabled script outside of an update has ended."""


# --- the release -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ValuesOutdated(ReleaseBase):
    """A hook changed the values while a reconciliation was applying them."""


@dataclass(frozen=True, slots=True)
class DriftSeen(ReleaseBase):
    """The release engine has reported which fields of applied objects differ from what was applied, and which fields another
    writer sets again after each correction.
    """

    drift: tuple[str, ...]
    fought: tuple[str, ...]


# --- the hooks -------------------------------------------------------------------------------------------------------------


@record
class HookRan(HooksBase):
    """A hook ran; ``error`` is empty if it succeeded."""

    hook: str
    error: str
    at: datetime


@dataclass(frozen=True, slots=True)
class LaneFailed(HooksBase):
    """A run of a hook for events failed in a lane."""

    hook: str
    lane: str
    error: str


@dataclass(frozen=True, slots=True)
class LaneRecovered(HooksBase):
    """A run of a hook for events succeeded in a lane, so an earlier failure in this lane does not count any more."""

    hook: str
    lane: str


# --- CRDs ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CrdsBegun(CrdsBase):
    """The task that ensures the CRDs is about to be enqueued, with this scope."""

    scope: WorkScope


@dataclass(frozen=True, slots=True)
class CrdsEnded(CrdsBase):
    """The last task that ensures the CRDs has ended or was cancelled, and its scope is forgotten."""


# --- the removal -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RemovalBegun(RemovalBase):
    """The removal of the package began. ``deletion`` is the policy for the objects of its release. ``disowned`` is True if the
    release with the package's name belongs to another package, and ``moved`` if another daemon manages the package.
    """

    deletion: DeletionPolicy
    disowned: bool
    moved: bool = False


@dataclass(frozen=True, slots=True)
class DeleteHooksSkipped(RemovalBase):
    """A user has requested that the package is removed without its delete hooks."""


# --- the attempt -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AttemptBegun(AttemptBase):
    """The resource asks for the state with this checksum, and the attempt to reach the state begins."""

    asked: str
    at: datetime


@dataclass(frozen=True, slots=True)
class AttemptFailed(AttemptBase):
    """A stage failed during the attempt to reach the state that the resource asks for."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class AttemptSettled(AttemptBase):
    """The package is Ready with the state that its resource asks for."""


DesiredFact: TypeAlias = DesiredGiven | FoundInstalled | SettingsGiven | AccountGiven | RefreshWanted | UpdateBegun
FilesFact: TypeAlias = (
    Downloaded | Unpacked | FoundStored | PackageRead | HooksUnusable | LoadCompleted | ChartSearched | WebhooksSearched
)
NodeFact: TypeAlias = (
    Offered
    | Joined
    | JoinRefused
    | ReconciliationOrdered
    | ReconciliationBegun
    | DisableBegun
    | DisableEnded
    | DisableMissed
    | MissedDisableDropped
    | SuspendBegun
)
ScriptFact: TypeAlias = VoteCast | VoteBegun | ScriptAsked | ScriptAnswered | VoteReported | ScriptDone
ConfigurationFact: TypeAlias = SettingsConverted | Configured | AdoptedForRemoval | ValuesPatched
ReleaseFact: TypeAlias = (
    ObjectsKnown | ChartApplied | OverridesMatched | ValuesRead | ValuesOutdated | Verified | DriftSeen
)
HooksFact: TypeAlias = (
    HooksStarting | HooksStarted | HooksStopped | StartupHookDone | HookRan | LaneFailed | LaneRecovered
)
CrdsFact: TypeAlias = CrdsBegun | CrdsEnded | CrdsEstablished
AttemptFact: TypeAlias = AttemptBegun | AttemptFailed | AttemptSettled
RemovalFact: TypeAlias = RemovalBegun | DeletionChosen | DeleteHooksSkipped
Fact: TypeAlias = (
    StatusSet
    | Warned
    | Renamed
    | DesiredFact
    | FilesFact
    | NodeFact
    | ScriptFact
    | ConfigurationFact
    | ReleaseFact
    | HooksFact
    | CrdsFact
    | RemovalFact
    | AttemptFact
)
