"""The findings about one package: the facts that its tasks, its resource and the controllers make known.

A finding is an event that only changes records of the package: it does not change the status, and has no effects. A task returns
the finding that resulted from it, or reports it while it runs (:class:`~wharfinger.runtime.package.instance.Host`). The facts
that the machine itself records are in :mod:`~wharfinger.runtime.package.facts`.

The bases name the record that a fact changes, so that one check recognizes it.
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


class AttemptBase:
    """The base of all facts about the attempt to reach what the resource asks for."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Renamed:
    """From now on, the package has another identity with the same name."""

    id: PackageId


# --- the wish ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AccountGiven(WishBase):
    """The service account of a removal became known; an empty name stands for the daemon itself."""

    account: str


@dataclass(frozen=True, slots=True)
class FoundInstalled(WishBase):
    """An earlier process installed this version; the rest of its desired state is not known."""

    package: str
    version: str
    directives: Directives | None = None


# --- the files -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Downloaded(FilesBase):
    """The version is on the disk; ``asked``: the registry was asked for the version."""

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
class ChartSearched(FilesBase):
    """The inputs of the chart with this digest are known."""

    digest: str
    use: ChartUse


@dataclass(frozen=True, slots=True)
class WebhooksSearched(FilesBase):
    """It is known whether the content of this digest mentions conversion webhooks."""

    digest: str
    mentioned: bool


# --- the enabled script ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScriptAsked(ScriptBase):
    """The script is asked, with these Modules on."""

    before: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScriptAnswered(ScriptBase):
    """The script answered. A failure is not an answer."""

    kept: KeptVote


@dataclass(frozen=True, slots=True)
class VoteReported(ScriptBase):
    """The vote for settings with this checksum was reported, or the script's failure."""

    about: str


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
    """The objects of the release are known."""

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
    """The overrides were applied to the render that is about to be applied; the listed ones name something that the chart does
    not have.
    """

    unmatched: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ValuesRead(ReleaseBase):
    """A run reads the values now; changes after this need another run."""


@dataclass(frozen=True, slots=True)
class Verified(ReleaseBase):
    """The package was applied by this process, or found applied, or has to be applied anew because the global values changed."""


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


# --- CRDs ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CrdsEstablished(CrdsBase):
    """These definitions are established."""

    kinds: tuple[str, ...]


# --- the removal -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeletionChosen(RemovalBase):
    """This policy for objects applies to all deletions from now on."""

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
