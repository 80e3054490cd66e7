"""The facts about one package: what its tasks, its hooks, its resource and its release made known.

A fact changes the records of the package and nothing else (:mod:`~wharfinger.runtime.package.transitions`). What also calls for
an action is an event (:mod:`~wharfinger.runtime.package.events`).
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from wharfinger.formats.json.value import JsonObject
from wharfinger.hooks.running.discovery import Hook
from wharfinger.hooks.running.package_hooks import PackageHooks
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.definition.definition import Definition
from wharfinger.packages.registry.registry import Manifest
from wharfinger.packages.rendering.chart_use import ChartUse
from wharfinger.packages.sources.source import Source
from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.package.enabled_vote import KeptVote
from wharfinger.runtime.package.state import Brought
from wharfinger.runtime.resources.identity import PackageId
from wharfinger.runtime.resources.release_policy import DeletionPolicy
from wharfinger.runtime.resources.resources import Directives
from wharfinger.runtime.resources.settings import ResolvedSettings
from wharfinger.runtime.scheduler.events import ScriptVoted
from wharfinger.runtime.status.failures import Failure
from wharfinger.runtime.status.package_status import PackageStatus


class WishBase:
    """The base of all facts about the wish."""

    __slots__ = ()


class FilesBase:
    """The base of all facts about the files."""

    __slots__ = ()


class NodeBase:
    """The base of all facts about the node."""

    __slots__ = ()


class ScriptBase:
    """The base of all facts about the enabled script."""

    __slots__ = ()


class ConfigurationBase:
    """The base of all facts about the configuration."""

    __slots__ = ()


class ReleaseBase:
    """The base of all facts about the release."""

    __slots__ = ()


class HooksBase:
    """The base of all facts about the hooks."""

    __slots__ = ()


class CrdsBase:
    """The base of all facts about the CRDs."""

    __slots__ = ()


class RemovalBase:
    """The base of all facts about the removal."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class StatusSet:
    """The status changed."""

    status: PackageStatus


@dataclass(frozen=True, slots=True)
class Warned:
    """There are warnings about one subject; they replace the earlier ones about it."""

    subject: str
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Renamed:
    """The package has another identity of the same name from now on."""

    id: PackageId


# --- the wish ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wished(WishBase):
    """The resource asks for this state; ``first``: the package was not known before."""

    package: str
    version: str
    source: Source
    settings: ResolvedSettings
    directives: Directives
    first: bool


@dataclass(frozen=True, slots=True)
class FoundInstalled(WishBase):
    """An earlier process installed this version; nothing else is known of what was wanted."""

    package: str
    version: str
    directives: Directives | None = None


@dataclass(frozen=True, slots=True)
class SettingsGiven(WishBase):
    """The settings for hooks that run during a removal are known; no desired state was adopted."""

    settings: ResolvedSettings


@dataclass(frozen=True, slots=True)
class AccountGiven(WishBase):
    """The service account that a removal acts as is known; empty: the daemon itself."""

    account: str


@dataclass(frozen=True, slots=True)
class RefreshWanted(WishBase):
    """The next download must ask the registry, because the content of the version may have changed."""


@dataclass(frozen=True, slots=True)
class UpdateBegun(WishBase):
    """An update of the package began."""

    at: datetime


# --- the files -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Downloaded(FilesBase):
    """The version is on the disk; ``asked``: the registry was asked for it."""

    manifest: Manifest
    asked: bool


@dataclass(frozen=True, slots=True)
class Unpacked(FilesBase):
    """The downloaded version is unpacked."""

    tree: Path


@dataclass(frozen=True, slots=True)
class FoundStored(FilesBase):
    """The installed version is on the disk, without any download."""

    manifest: Manifest
    tree: Path


@dataclass(frozen=True, slots=True)
class PackageRead(FilesBase):
    """The package on the disk was read."""

    definition: Definition
    hooks: tuple[Hook, ...]


@dataclass(frozen=True, slots=True)
class HooksUnusable(FilesBase):
    """The hooks cannot be run; the package is removed without them."""


@dataclass(frozen=True, slots=True)
class LoadCompleted(FilesBase):
    """The update is complete."""


@dataclass(frozen=True, slots=True)
class ChartSearched(FilesBase):
    """The inputs of the chart with this digest are known."""

    digest: str
    use: ChartUse


@dataclass(frozen=True, slots=True)
class WebhooksSearched(FilesBase):
    """It is known whether the content of this digest mentions conversion webhooks."""

    digest: str
    mentioned: bool


# --- the node ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Offered(NodeBase):
    """A definition is about to be offered to the scheduler; these of its CRDs are established (None: not yet)."""

    established: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Joined(NodeBase):
    """The scheduler accepted the definition as the package's node."""

    definition: Definition


@dataclass(frozen=True, slots=True)
class JoinRefused(NodeBase):
    """The scheduler refused a new definition; the CRDs in force are still those of the earlier one."""

    failure: Failure
    crds: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class ReconciliationOrdered(NodeBase):
    """The scheduler ordered a reconciliation with this number."""

    run: int


@dataclass(frozen=True, slots=True)
class ReconciliationBegun(NodeBase):
    """A reconciliation began, or nothing of the kind can run now; a Disable before it does not count any more."""


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
    """The scheduler ordered a Disable that cannot be carried out now."""

    reason: str
    uninstall: bool


@dataclass(frozen=True, slots=True)
class MissedDisableDropped(NodeBase):
    """The missed Disable does not apply any more, because it was decided anew."""


@dataclass(frozen=True, slots=True)
class SuspendBegun(NodeBase):
    """The package's work was interrupted; a Disable under way was missed."""


# --- the enabled script ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VoteCast(ScriptBase):
    """The vote of the script is known; the scheduler gets it at once, or together with the node that it is about."""

    vote: ScriptVoted


@dataclass(frozen=True, slots=True)
class ScriptAsked(ScriptBase):
    """The script is asked about these Modules that are on; ``scope`` is that of a run only for this, None for any other."""

    before: tuple[str, ...]
    scope: WorkScope | None = None


@dataclass(frozen=True, slots=True)
class ScriptAnswered(ScriptBase):
    """The script answered. A failure is not an answer."""

    kept: KeptVote


@dataclass(frozen=True, slots=True)
class VoteReported(ScriptBase):
    """The vote for settings with this checksum, or the failure of the script, was reported."""

    about: str


@dataclass(frozen=True, slots=True)
class ScriptDone(ScriptBase):
    """The run of the script that was begun only to ask it again is over."""


# --- the configuration -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SettingsConverted(ConfigurationBase):
    """The wanted settings were converted to the newest version of the schema."""

    newest: ResolvedSettings


@dataclass(frozen=True, slots=True)
class Configured(ConfigurationBase):
    """The settings were checked with a definition, and are in force."""

    by: Definition
    newest: ResolvedSettings
    settings: JsonObject
    values: JsonObject


@dataclass(frozen=True, slots=True)
class AdoptedForRemoval(ConfigurationBase):
    """Unchecked settings are in force for the hooks of a removal."""

    newest: ResolvedSettings
    values: JsonObject


@dataclass(frozen=True, slots=True)
class ValuesPatched(ConfigurationBase):
    """A hook changed the values."""

    values: JsonObject


# --- the release -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ObjectsKnown(ReleaseBase):
    """These objects are those of the release."""

    objects: tuple[ObjectKey, ...]


@dataclass(frozen=True, slots=True)
class ChartApplied(ReleaseBase):
    """The chart was applied; ``brought`` is None if the next run must apply it again.

    ``inputs`` are those of this render.
    """

    objects: tuple[ObjectKey, ...]
    inputs: str
    brought: Brought | None


@dataclass(frozen=True, slots=True)
class OverridesMatched(ReleaseBase):
    """The overrides were applied to a render; these name something that the chart does not have."""

    unmatched: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ValuesRead(ReleaseBase):
    """A run reads the values now; changes after this need another run."""


@dataclass(frozen=True, slots=True)
class ValuesOutdated(ReleaseBase):
    """A hook changed the values while they were being applied."""


@dataclass(frozen=True, slots=True)
class Verified(ReleaseBase):
    """The package was applied by this process, or found applied, or has to be applied anew because the global values changed."""


@dataclass(frozen=True, slots=True)
class DriftSeen(ReleaseBase):
    """These fields differ from what was applied, and these are fought for."""

    drift: tuple[str, ...]
    fought: tuple[str, ...]


# --- the hooks -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HooksStarting(HooksBase):
    """The hooks are being started, with this scope for their runs."""

    scope: WorkScope


@dataclass(frozen=True, slots=True)
class HooksStarted(HooksBase):
    """The hooks' bindings are watched."""

    hooks: PackageHooks


@dataclass(frozen=True, slots=True)
class HooksStopped(HooksBase):
    """The hooks are stopped."""


@dataclass(frozen=True, slots=True)
class StartupHookDone(HooksBase):
    """An onStartup hook ran."""

    hook: str


@dataclass(frozen=True, slots=True)
class HookRan(HooksBase):
    """A hook ran; ``error`` is empty if it succeeded."""

    hook: str
    error: str
    at: datetime


@dataclass(frozen=True, slots=True)
class LaneFailed(HooksBase):
    """An event hook failed in a lane."""

    hook: str
    lane: str
    error: str


@dataclass(frozen=True, slots=True)
class LaneRecovered(HooksBase):
    """An event hook ran in a lane without an error."""

    hook: str
    lane: str


# --- CRDs ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CrdsBegun(CrdsBase):
    """The task that ensures the definitions is enqueued, with this scope."""

    scope: WorkScope


@dataclass(frozen=True, slots=True)
class CrdsEnded(CrdsBase):
    """The task that ensures the definitions was interrupted."""


@dataclass(frozen=True, slots=True)
class CrdsEstablished(CrdsBase):
    """These definitions are established."""

    kinds: tuple[str, ...]


# --- the removal -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RemovalBegun(RemovalBase):
    """The removal began, with this policy for the objects.

    ``disowned``: the release of the package's name belongs to another package.
    """

    deletion: DeletionPolicy
    disowned: bool


@dataclass(frozen=True, slots=True)
class DeletionChosen(RemovalBase):
    """This policy for the objects applies to what is deleted from now on."""

    deletion: DeletionPolicy


@dataclass(frozen=True, slots=True)
class DeleteHooksSkipped(RemovalBase):
    """A user wants the package removed without its delete hooks."""


WishFact: TypeAlias = Wished | FoundInstalled | SettingsGiven | AccountGiven | RefreshWanted | UpdateBegun
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
ScriptFact: TypeAlias = VoteCast | ScriptAsked | ScriptAnswered | VoteReported | ScriptDone
ConfigurationFact: TypeAlias = SettingsConverted | Configured | AdoptedForRemoval | ValuesPatched
ReleaseFact: TypeAlias = (
    ObjectsKnown | ChartApplied | OverridesMatched | ValuesRead | ValuesOutdated | Verified | DriftSeen
)
HooksFact: TypeAlias = (
    HooksStarting | HooksStarted | HooksStopped | StartupHookDone | HookRan | LaneFailed | LaneRecovered
)
CrdsFact: TypeAlias = CrdsBegun | CrdsEnded | CrdsEstablished
RemovalFact: TypeAlias = RemovalBegun | DeletionChosen | DeleteHooksSkipped
Fact: TypeAlias = (
    StatusSet
    | Warned
    | Renamed
    | WishFact
    | FilesFact
    | NodeFact
    | ScriptFact
    | ConfigurationFact
    | ReleaseFact
    | HooksFact
    | CrdsFact
    | RemovalFact
)
