"""The state of one package in the runtime: frozen structs, each with the fields of one subject.

The structs are immutable. :func:`~wharfinger.runtime.package.transitions.applied` returns the state after an event, and the
package's :class:`~wharfinger.runtime.package.instance.Instance` has the current state. States share their unchanged structs,
and all packages share the initial structs, because there may be ten thousand packages. They are structs of msgspec, because
each event replaces two of them, and the replacement of a frozen dataclass with twelve fields takes about fifty times as long.
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
    """Two fingerprints of the release that was applied last: one of the inputs of its render, and one that the release engine
    has computed from the release itself.
    """

    inputs: str
    fingerprint: str


class HookHistory(msgspec.Struct, frozen=True):
    """The history of one hook's runs in this process."""

    runs: int = 0
    last_run: datetime | None = None
    last_error: str = ""


NO_HISTORY: Final[Mapping[str, HookHistory]] = MappingProxyType({})


class Attempt(msgspec.Struct, frozen=True):
    """The attempt to reach the desired state of the resource. The attempt ends when the package is Ready with that state."""

    asked: str = ""
    """The checksum of the state that the resource asks for; empty if no desired state was adopted."""
    since: datetime | None = None
    changed: bool = False
    """True if this process has adopted another desired state before this one, so that the attempt is an upgrade."""
    failures: int = 0
    """The number of times that a stage has failed in this attempt."""
    failure: Failure | None = None
    """The first permanent failure, or, if there is no permanent failure, the last failure. None if no stage failed."""
    settled: bool = False
    """True if the package was Ready with the state that the resource asks for."""


NO_ATTEMPT: Final = Attempt()


class DesiredPackage(msgspec.Struct, frozen=True):
    """The desired state of a package, and how its version is to be fetched."""

    package: str = ""
    version: str = ""
    source: Source | None = None
    """The registry or folder that has the package; None if this process has not adopted a desired state."""
    settings: ResolvedSettings = NO_SETTINGS
    directives: Directives = NO_DIRECTIVES
    begun: datetime | None = None
    """The time at which the latest update was begun."""
    refresh: bool = False
    """True if the next download must ask the registry, even if the version's digest is recorded."""
    attempt: Attempt = NO_ATTEMPT
    account: str | None = None
    """The service account that a removal acts as; None means the account in the directives. It is not stored in the directives,
    because the state machine must not make new directives: the flight recorder records directives only by a number
    (:mod:`~wharfinger.runtime.recording.marks`).
    """


class Files(msgspec.Struct, frozen=True):
    """The files of the package's version, as far as they are downloaded, unpacked and read."""

    manifest: Manifest | None = None
    tree: Path | None = None
    definition: Definition | None = None
    hooks: tuple[Hook, ...] = ()
    loaded_once: bool = False
    """True if this process has loaded the package."""
    chart_use: tuple[str, ChartUse] | None = None
    """The digest of the chart whose templates were examined last, and the inputs that these templates can use. While the digest
    is the same, the templates are not examined again.
    """
    mentions_webhooks: tuple[str, bool] | None = None
    """The digest of the package whose files were searched last, and whether the files mention conversion webhooks. While the
    digest is the same, the files are not searched again.
    """


class Node(msgspec.Struct, frozen=True):
    """The state of a package that concerns its node in the scheduler: the definition from which the node was made, and the
    orders of the scheduler that the package carries out.
    """

    joined: Definition | None = None
    """The definition from which the scheduler's node was made."""
    refused: Failure | None = None
    """The reason why the scheduler refused to make the package's node from the loaded version; None if there is no refusal.

    If an earlier version is installed, it keeps running, and the node is still made from that version.
    """
    run: int = 0
    """The number of the reconciliation that the scheduler has ordered most recently."""
    disabling: tuple[str, bool] | None = None
    """The reason for the Disable that is under way, and whether it uninstalls the package."""
    missed_disable: tuple[str, bool] | None = None
    """A Disable that could not begin when the scheduler ordered it, or that a suspension interrupted. The tuple has the reason
    for the Disable, and whether the Disable uninstalls the package.
    """


class Vote(msgspec.Struct, frozen=True):
    """The state of a package's enabled script: the input of its last run, its vote, and its run that is under way."""

    saw: tuple[str, ...] = ()
    """The Modules that precede this package in the order and were on when its enabled script last ran."""
    voting: WorkScope | None = None
    """The scope of a run of the enabled script outside of an update, while the run waits or is under way."""
    reason: str = ""
    """The change of the specification that caused the run with the scope ``voting``; empty if the only cause is a change of
    the Modules in ``saw``.
    """
    asked_about: str = ""
    """The checksum of the settings with which the enabled script last ran."""
    kept: KeptVote | None = None
    """The script's last answer."""
    cast: ScriptVoted | None = None
    """The vote in the form for the scheduler; None until the script has run, or until it is known that there is no script."""


class Configuration(msgspec.Struct, frozen=True):
    """The settings and values of a package."""

    newest: ResolvedSettings = NO_SETTINGS
    """The settings that the resource requested at the last check, converted to the newest version of the schema."""
    configured: ResolvedSettings = NO_SETTINGS
    """The settings with which the package was last configured; hooks get these settings."""
    configured_by: Definition | None = None
    """The definition with which the configured settings and values were made and checked; None if they were not checked."""
    settings: JsonObject = msgspec.field(default_factory=dict)
    """The configured settings, with the defaults of the schema filled in."""
    values: JsonObject = msgspec.field(default_factory=dict)


class Applied(msgspec.Struct, frozen=True):
    """The facts about the release of a package in the cluster: its objects, and how they differ from what was applied."""

    objects: tuple[ObjectKey, ...] = ()
    brought: Brought | None = None
    """The fingerprints of the release that this process applied last; None if it has applied nothing, or if the next run must
    render and apply the chart again.
    """
    verified: bool = False
    """True if this process knows whether the package is applied: it has applied the package, has found that it is applied, or
    has found that it must be applied again because the global values changed.
    """
    dirty: bool = False
    """True if a hook changed the values while the chart was being applied with the earlier values."""
    unmatched: tuple[str, ...] = ()
    """The overrides in ``spec.resourceRequests`` for which the chart has no workload or container."""
    drift: tuple[str, ...] = ()
    """The fields of applied objects that differ from what was applied, with the managers that set them."""
    fought: tuple[str, ...] = ()
    """The drifted fields that another manager sets again and again."""


class HookState(msgspec.Struct, frozen=True):
    """The hooks of a package from their start to their stop, and the results of their runs."""

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
    """The scope of the task that creates or updates the definitions in the cluster; None if there is no such task."""


class Removal(msgspec.Struct, frozen=True):
    """The options of the removal of the package, or of the uninstallation of its release."""

    deletion: DeletionPolicy = DeletionPolicy.DELETE
    """The deletion policy for objects, which is set when the removal begins."""
    skip_delete_hooks: bool = False
    """True if a user has requested that the package is removed without its delete hooks."""
    disowned: bool = False
    """True if the release with the package's name belongs to another package, so that the removal does not touch the release."""
    moved: bool = False
    """True if another daemon manages the package from now on: this daemon forgets the package, and removes nothing from the
    cluster.
    """


NOTHING_DESIRED: Final = DesiredPackage()
NO_FILES: Final = Files()
NO_NODE: Final = Node()
NO_VOTE: Final = Vote()
NO_CONFIGURATION: Final = Configuration()
NOT_APPLIED: Final = Applied()
NO_HOOKS: Final = HookState()
NO_CRDS: Final = Crds()
NO_REMOVAL: Final = Removal()


class Package(msgspec.Struct, frozen=True):
    """The whole state of a package, except for its operations, which are in the lifecycle store."""

    id: PackageId
    status: PackageStatus
    desired: DesiredPackage = NOTHING_DESIRED
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
