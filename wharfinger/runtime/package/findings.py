"""The findings about one package: the facts that tasks and controllers report.

A finding is an event that changes the package's state, but not the package's status, and has no effects. A task returns a
finding as its result, or reports it while the task runs (:class:`~wharfinger.runtime.package.instance.Host`). The facts that the
state machine itself records are in :mod:`~wharfinger.runtime.package.facts`.

Each fact about a part of the package's state is a subclass of the base class for that part, so that one ``isinstance`` finds the
part.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from wharfinger.formats.json.value import JsonObject
from wharfinger.hooks.running.discovery import Hook
from wharfinger.hooks.running.package_hooks import PackageHooks
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.definition.definition import Definition
from wharfinger.packages.registry.registry import Manifest
from wharfinger.packages.rendering.chart_use import ChartUse
from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.package.enabled_vote import KeptVote
from wharfinger.runtime.package.state import Brought
from wharfinger.runtime.resources.identity import PackageId
from wharfinger.runtime.resources.release_policy import DeletionPolicy
from wharfinger.runtime.resources.resources import Directives
from wharfinger.runtime.resources.settings import ResolvedSettings


class DesiredBase:
    """The base of all facts about the desired state."""

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


class AttemptBase:
    """The base of all facts about the attempt to reach the state that the resource asks for."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Renamed:
    """The package has the identity ``id`` from now on. Its name has not changed."""

    id: PackageId


# --- the desired state ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AccountGiven(DesiredBase):
    """The service account with which a removal acts is known; if ``account`` is empty, the removal acts as the daemon itself."""

    account: str


@dataclass(frozen=True, slots=True)
class FoundInstalled(DesiredBase):
    """An earlier process installed this version of the package; no other part of the desired state is known."""

    package: str
    version: str
    directives: Directives | None = None


# --- the files -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Downloaded(FilesBase):
    """The version is on the disk. ``asked`` is True if the registry was asked for the version's digest."""

    manifest: Manifest
    asked: bool


@dataclass(frozen=True, slots=True)
class Unpacked(FilesBase):
    """The downloaded version is unpacked."""

    tree: Path


@dataclass(frozen=True, slots=True)
class FoundStored(FilesBase):
    """The installed version was found on the disk, so no download was needed."""

    manifest: Manifest
    tree: Path


@dataclass(frozen=True, slots=True)
class PackageRead(FilesBase):
    """The files of the package were read: its definition, and the configuration of its hooks."""

    definition: Definition
    hooks: tuple[Hook, ...]


@dataclass(frozen=True, slots=True)
class HooksUnusable(FilesBase):
    """The hooks cannot be run, so the package is removed without running them."""


@dataclass(frozen=True, slots=True)
class ChartSearched(FilesBase):
    """The chart with this digest was searched for the inputs that it may use."""

    digest: str
    use: ChartUse


@dataclass(frozen=True, slots=True)
class WebhooksSearched(FilesBase):
    """The content with this digest was searched for conversion webhooks."""

    digest: str
    mentioned: bool


# --- the enabled script ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScriptAsked(ScriptBase):
    """The enabled script is about to be asked for its vote. ``before`` lists the Modules that are on and come before the
    package.
    """

    before: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScriptAnswered(ScriptBase):
    """The enabled script has run without a failure and returned a vote, or the package has no such script."""

    kept: KeptVote


@dataclass(frozen=True, slots=True)
class VoteReported(ScriptBase):
    """The vote of the script for the settings with the checksum ``about``, or the failure of the script, was reported."""

    about: str


# --- the configuration -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SettingsConverted(ConfigurationBase):
    """The wanted settings were converted to the newest version of the schema."""

    newest: ResolvedSettings


@dataclass(frozen=True, slots=True)
class Configured(ConfigurationBase):
    """The settings were checked with the schemas of the definition ``by``, and are in force."""

    by: Definition
    newest: ResolvedSettings
    settings: JsonObject
    values: JsonObject


@dataclass(frozen=True, slots=True)
class AdoptedForRemoval(ConfigurationBase):
    """The package is being removed, and its hooks get these settings and values. The settings were not checked."""

    newest: ResolvedSettings
    values: JsonObject


@dataclass(frozen=True, slots=True)
class ValuesPatched(ConfigurationBase):
    """A hook changed the values."""

    values: JsonObject


# --- the release -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ObjectsKnown(ReleaseBase):
    """The objects of the package's release are known: ``objects``."""

    objects: tuple[ObjectKey, ...]


@dataclass(frozen=True, slots=True)
class ChartApplied(ReleaseBase):
    """The chart was applied, or was found applied. ``brought`` has the fingerprints of the applied release; it is None if the
    next run must render and apply the chart again.

    ``inputs`` is a fingerprint of the inputs from which the chart was rendered.
    """

    objects: tuple[ObjectKey, ...]
    inputs: str
    brought: Brought | None


@dataclass(frozen=True, slots=True)
class OverridesMatched(ReleaseBase):
    """The overrides in ``spec.resourceRequests`` were matched with a render that is about to be applied. ``unmatched`` names
    the overrides that fit no workload or container of the chart.
    """

    unmatched: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ValuesRead(ReleaseBase):
    """A run is about to read the values. If the values change later, another run is needed."""


@dataclass(frozen=True, slots=True)
class Verified(ReleaseBase):
    """This process knows whether the release is as wanted: it has applied the package, has found it applied, or has found that
    it must be applied again because the global values changed.
    """


# --- the hooks -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HooksStarting(HooksBase):
    """The hooks are about to be started. Their runs belong to this scope, and are cancelled with it."""

    scope: WorkScope


@dataclass(frozen=True, slots=True)
class HooksStarted(HooksBase):
    """The hooks have started: the objects and schedules of their bindings are watched."""

    hooks: PackageHooks


@dataclass(frozen=True, slots=True)
class HooksStopped(HooksBase):
    """The hooks are stopped."""


@dataclass(frozen=True, slots=True)
class StartupHookDone(HooksBase):
    """An onStartup hook ran."""

    hook: str


# --- CRDs ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CrdsEstablished(CrdsBase):
    """The CRDs of the package are established; ``kinds`` are their kinds."""

    kinds: tuple[str, ...]


# --- the removal -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeletionChosen(RemovalBase):
    """This deletion policy applies to all deletions of objects from now on."""

    deletion: DeletionPolicy


Finding: TypeAlias = (
    Renamed
    | AccountGiven
    | FoundInstalled
    | Downloaded
    | Unpacked
    | FoundStored
    | PackageRead
    | HooksUnusable
    | ChartSearched
    | WebhooksSearched
    | ScriptAsked
    | ScriptAnswered
    | VoteReported
    | SettingsConverted
    | Configured
    | AdoptedForRemoval
    | ValuesPatched
    | ObjectsKnown
    | ChartApplied
    | OverridesMatched
    | ValuesRead
    | Verified
    | HooksStarting
    | HooksStarted
    | HooksStopped
    | StartupHookDone
    | CrdsEstablished
    | DeletionChosen
)
