"""The state of one package in the runtime: frozen records, each with the fields of one subject.

Nothing here changes. :func:`~wharfinger.runtime.package.transitions.applied` returns the state after an event, and the
package's :class:`~wharfinger.runtime.package.instance.Instance` keeps it. Untouched records are shared between states, and
those of a new package between all packages, because there may be ten thousand. The records are msgspec structs, because each
event replaces two of them, and to replace a frozen dataclass of twelve fields takes ten times as long.
"""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

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
from wharfinger.runtime.resources.identity import PackageId
from wharfinger.runtime.resources.release_policy import DeletionPolicy
from wharfinger.runtime.resources.resources import Directives
from wharfinger.runtime.resources.settings import ResolvedSettings
from wharfinger.runtime.scheduler.events import ScriptVoted
from wharfinger.runtime.status.failures import Failure
from wharfinger.runtime.status.package_status import PackageStatus

NO_SETTINGS: Final = ResolvedSettings({})
NO_DIRECTIVES: Final = Directives()
NO_WARNINGS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({})
NO_FAILURES: Final[Mapping[tuple[str, str], str]] = MappingProxyType({})


class Brought(msgspec.Struct, frozen=True):
    """The last applied state: the inputs that it was rendered from, and the release engine's fingerprint of it."""

    inputs: str
    fingerprint: str


class HookHistory(msgspec.Struct, frozen=True):
    """The history of one hook's runs in this process."""

    runs: int = 0
    last_run: datetime | None = None
    last_error: str = ""


NO_HISTORY: Final[Mapping[str, HookHistory]] = MappingProxyType({})


class Attempt(msgspec.Struct, frozen=True):
    """The attempt to reach the desired state of the resource. It ends when the package is Ready with that state."""

    asked: str = ""
    """The checksum of what the resource asks for; empty: no desired state was adopted."""
    since: datetime | None = None
    changed: bool = False
    """True if this process has adopted another desired state before, so that this attempt is an upgrade."""
    failures: int = 0
    """The number of times that a stage failed."""
    failure: Failure | None = None
    """The last failure; a permanent one is kept."""
    settled: bool = False
    """True if the package was Ready with what the resource asks for."""


NO_ATTEMPT: Final = Attempt()


class Wish(msgspec.Struct, frozen=True):
    """The desired state of a package, and the request to fetch it."""

    package: str = ""
    version: str = ""
    source: Source | None = None
    """The registry or folder that has the package; None if this process has not adopted a desired state."""
    settings: ResolvedSettings = NO_SETTINGS
    directives: Directives = NO_DIRECTIVES
    begun: datetime | None = None
    """The time at which the latest update was begun."""
    refresh: bool = False
    """True if the next download must ask the registry, even if the digest is recorded."""
    attempt: Attempt = NO_ATTEMPT
    account: str | None = None
    """The service account that a removal acts as; None: that of the directives. It is not in the directives, because a recording
    replaces directives by a number, and so the machine must not make directives of its own.
    """


class Files(msgspec.Struct, frozen=True):
    """The version that was downloaded, unpacked and read."""

    manifest: Manifest | None = None
    tree: Path | None = None
    definition: Definition | None = None
    hooks: tuple[Hook, ...] = ()
    loaded_once: bool = False
    """True if this process has loaded the package."""
    chart_use: tuple[str, ChartUse] | None = None
    """A digest, and the inputs that the chart of that digest can depend on. The chart of each digest is searched once."""
    mentions_webhooks: tuple[str, bool] | None = None
    """A digest, and whether the content of that digest mentions conversion webhooks. The content of each digest is searched
    once.
    """


class Node(msgspec.Struct, frozen=True):
    """The package in the scheduler: the definition that its node is made of, and the orders that the package carries out."""

    joined: Definition | None = None
    """The definition that the scheduler's node is made of."""
    refused: Failure | None = None
    """The reason why the loaded version is not the node.

    The node is still the earlier version, which is installed and keeps running.
    """
    run: int = 0
    """The scheduler's number of the reconciliation that runs."""
    disabling: tuple[str, bool] | None = None
    """The reason of the Disable that is under way, and whether it uninstalls."""
    missed_disable: tuple[str, bool] | None = None
    """The Disable that the scheduler ordered while the package was suspended: the reason, and whether to uninstall."""


class Vote(msgspec.Struct, frozen=True):
    """The enabled script of a package: the question that it was last asked, and its answer."""

    saw: tuple[str, ...] = ()
    """The Modules before this one that were on when the script was last asked."""
    voting: WorkScope | None = None
    """The scope of a run that only asks the script, while it waits or runs."""
    reason: str = ""
    """The change of the specification that caused this run; empty if only a change of the Modules in ``saw`` caused it."""
    asked_about: str = ""
    """The checksum of the settings that the script was last asked about."""
    kept: KeptVote | None = None
    """The script's last answer."""
    cast: ScriptVoted | None = None
    """The vote as the scheduler gets it; None until a script was asked, or was found missing."""


class Configuration(msgspec.Struct, frozen=True):
    """The settings and values of a package."""

    newest: ResolvedSettings = NO_SETTINGS
    """The settings that were wanted at the last check, converted to the newest version of the package's schema."""
    configured: ResolvedSettings = NO_SETTINGS
    """The settings that the package was last configured with; hooks see these."""
    configured_by: Definition | None = None
    """The definition with which the configured settings and values were made and checked; None: they were not checked."""
    settings: JsonObject = msgspec.field(default_factory=dict)
    """The effective settings, with the defaults of the schema."""
    values: JsonObject = msgspec.field(default_factory=dict)


class Applied(msgspec.Struct, frozen=True):
    """The release of a package in the cluster."""

    objects: tuple[ObjectKey, ...] = ()
    brought: Brought | None = None
    """The state that this process applied last; None if it has applied nothing."""
    verified: bool = False
    """True if this process has applied the package, or found it applied."""
    dirty: bool = False
    """True if a hook changed the values while they were being applied."""
    unmatched: tuple[str, ...] = ()
    """The overrides that name something that the chart does not have."""
    drift: tuple[str, ...] = ()
    """The fields of applied objects that have drifted, with the managers that set them."""
    fought: tuple[str, ...] = ()
    """The drifted fields that another manager sets again and again."""


class HookState(msgspec.Struct, frozen=True):
    """The hooks of a package while they are started, and the results of their runs."""

    started: PackageHooks | None = None
    scope: WorkScope | None = None
    """The scope of all hook runs since the hooks were started."""
    startup_done: frozenset[str] = frozenset()
    """The onStartup hooks that have run since the hooks were started."""
    failing: Mapping[tuple[str, str], str] = msgspec.field(default_factory=lambda: NO_FAILURES)
    """The errors of event hooks whose last run in a lane failed, by hook and lane."""
    history: Mapping[str, HookHistory] = msgspec.field(default_factory=lambda: NO_HISTORY)


class Crds(msgspec.Struct, frozen=True):
    """The custom resource definitions of a package."""

    established: tuple[str, ...] | None = ()
    """The established definitions, as ``group/version/Kind``; None while they are not established."""
    scope: WorkScope | None = None
    """The scope of the task that ensures them."""


class Removal(msgspec.Struct, frozen=True):
    """The way in which the package is removed, or its release uninstalled."""

    deletion: DeletionPolicy = DeletionPolicy.DELETE
    """The policy for objects at the removal; set when that begins."""
    skip_delete_hooks: bool = False
    """True if a user wants the package removed without its delete hooks."""
    disowned: bool = False
    """True if the package is being removed while the release of its name belongs to another package; that release is kept."""
    moved: bool = False
    """True if another daemon keeps the package: it is forgotten here, and nothing is removed from the cluster."""


NO_WISH: Final = Wish()
NO_FILES: Final = Files()
NO_NODE: Final = Node()
NO_VOTE: Final = Vote()
NO_CONFIGURATION: Final = Configuration()
NOT_APPLIED: Final = Applied()
NO_HOOKS: Final = HookState()
NO_CRDS: Final = Crds()
NO_REMOVAL: Final = Removal()


class Package(msgspec.Struct, frozen=True):
    """The whole state of a package, except its operations, which the lifecycle store keeps."""

    id: PackageId
    status: PackageStatus
    wish: Wish = NO_WISH
    files: Files = NO_FILES
    node: Node = NO_NODE
    vote: Vote = NO_VOTE
    configuration: Configuration = NO_CONFIGURATION
    applied: Applied = NOT_APPLIED
    hooks: HookState = NO_HOOKS
    crds: Crds = NO_CRDS
    removal: Removal = NO_REMOVAL
    warnings: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=lambda: NO_WARNINGS)
    """The warnings by subject."""
