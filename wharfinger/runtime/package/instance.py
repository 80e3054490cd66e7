"""One package as it lives in the runtime: the wanted state, the results of its tasks, and its status.

The runtime writes what is wanted and the status. The tasks of the package's main lane record their results strictly one
after the other, so no lock is needed. Hook runs, which have lanes of their own, change only ``values``, ``patches`` and
``failing``, each in one step between two awaits.
"""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.releases.engine import ReleaseEngine
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.redaction.redaction_text import redact_text
from wharfinger.hooks.containment.cluster_access import CredentialsPolicy
from wharfinger.hooks.metrics.hook_metrics import HookMetrics
from wharfinger.hooks.running.config_reader import ConfigReader
from wharfinger.hooks.running.discovery import Hook
from wharfinger.hooks.running.hook_services import HookServices
from wharfinger.hooks.running.inbox import Inbox
from wharfinger.hooks.running.log_budget import LogBudget
from wharfinger.hooks.running.package_hooks import PackageHooks
from wharfinger.hooks.running.runner import HookRunner
from wharfinger.hooks.watching.filters import Filters
from wharfinger.hooks.watching.throttle import Throttle
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.definition.definition import Definition
from wharfinger.packages.registry.registry import Manifest, Registry
from wharfinger.packages.registry.source import FolderSource, Source
from wharfinger.packages.rendering.chart_engine import ChartEngine
from wharfinger.packages.rendering.chart_use import ChartUse
from wharfinger.packages.rendering.renderer import Renderer
from wharfinger.packages.settings.cel_pool import Rules
from wharfinger.packages.store.store import Store
from wharfinger.pools.interpreters.warm_start import WarmStarts
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.slots import Slots
from wharfinger.queue.task import Task
from wharfinger.runtime.lifecycle.journal import Journal
from wharfinger.runtime.lifecycle.listed_states import ListedStates
from wharfinger.runtime.lifecycle.package_state import StateRecord, state_record
from wharfinger.runtime.lifecycle.restart_policy import Repeat
from wharfinger.runtime.lifecycle.steps import Steps
from wharfinger.runtime.package.enabled_vote import KeptVote
from wharfinger.runtime.package.first_attempts import Tries
from wharfinger.runtime.resources.identity import AppId, PackageId, has_release
from wharfinger.runtime.resources.release_policy import DeletionPolicy
from wharfinger.runtime.resources.resources import Directives
from wharfinger.runtime.resources.settings import ResolvedSettings, texts_at
from wharfinger.runtime.status.failures import Failure
from wharfinger.runtime.status.package_status import PackageStatus, Stage


class SourceOpener(Protocol):
    """The opener of the registry that has a package."""

    def __call__(self, source: Source, package: str, /) -> AbstractAsyncContextManager[tuple[Registry, str]]:
        """Return a context manager around an open Registry and the package's repository in it."""
        ...


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools of tasks, one of each for all packages. The limiters bound the work of the whole daemon."""

    open_source: SourceOpener
    store: Store
    renderer: Renderer
    cluster: ClusterClient
    releases: ReleaseEngine
    hook_runner: HookRunner
    config_reader: ConfigReader
    filters: Filters
    rules: Rules
    hook_services: HookServices
    journal: Journal
    slots: Slots
    stopping: WorkScope
    """The scope that is cancelled when the daemon stops, so that tasks that only wait do not delay the stop."""
    states: ListedStates = field(default_factory=ListedStates)
    crd_phase: Tries = field(default_factory=Tries)
    """The packages whose definitions are being ensured."""
    load_phase: Tries = field(default_factory=Tries)
    """The packages that are being loaded."""
    metrics: HookMetrics = field(default_factory=HookMetrics)
    on_startup: Repeat = Repeat.LAYOUT
    synchronization: Repeat = Repeat.LAYOUT
    hook_credentials: CredentialsPolicy = CredentialsPolicy.MODULES
    """The packages whose hooks may act on the cluster with the daemon's credentials."""
    engine: ChartEngine | None = None
    """The chart engine, for its counts; None: ``helm template`` renders."""
    warm: WarmStarts | None = None
    """The starts of Python hooks in interpreters that run already; None without that, and for metrics only."""


@dataclass(slots=True)
class Signal:
    """A repeatable event that wakes all waiters. It costs almost nothing while no task waits, so ten thousand packages can
    have one each.
    """

    _event: trio.Event | None = None

    def tell(self) -> None:
        """Wake all waiters."""
        if self._event is not None:
            self._event.set()
            self._event = None

    async def wait(self) -> None:
        """Wait for the next call of `tell`."""
        if self._event is None:
            self._event = trio.Event()
        await self._event.wait()


NO_SETTINGS: Final = ResolvedSettings({})
"""The shared empty settings, because ten thousand packages hold a reference."""


@dataclass(frozen=True, slots=True)
class Brought:
    """The last applied state: the inputs that it was rendered from, and the release engine's fingerprint of it."""

    inputs: str
    fingerprint: str


@dataclass(slots=True)
class HookHistory:
    """The history of one hook's runs in this process."""

    runs: int = 0
    last_run: datetime | None = None
    last_error: str = ""


@dataclass(slots=True)
class Instance:
    """One package."""

    id: PackageId
    status: PackageStatus
    package: str = ""
    version: str = ""
    source: Source | None = None
    wanted_settings: ResolvedSettings = NO_SETTINGS
    wanted: Directives = Directives()  # noqa: RUF009 - frozen
    record: StateRecord | None = None
    """The record that outlives the process; None until it was read."""
    manifest: Manifest | None = None
    tree: Path | None = None
    definition: Definition | None = None
    saw: tuple[str, ...] = ()
    """The Modules before this one that were on when its enabled script was last asked."""
    voting: WorkScope | None = None
    """The scope of the enabled script's run, while it is asked about ``saw`` again."""
    joined: Definition | None = None
    """The definition that the scheduler's node is made of."""
    refused: Failure | None = None
    """The reason why the loaded version is not the node.

    The node is still the earlier version, which is installed and keeps running.
    """
    hooks: tuple[Hook, ...] = ()
    started: PackageHooks | None = None
    hook_scope: WorkScope | None = None
    """The scope of all hook runs since the hooks were started."""
    newest: ResolvedSettings = NO_SETTINGS
    """The settings that were wanted at the last check, converted to the newest version of the package's schema."""
    configured: ResolvedSettings = NO_SETTINGS
    """The settings that Configure took over; hooks see these."""
    configured_by: Definition | None = None
    """The definition that the configured settings and values were made and checked with; None: they were not."""
    settings: JsonObject = field(default_factory=dict)
    """The effective settings, with the defaults of the schema."""
    values: JsonObject = field(default_factory=dict)
    values_lock: trio.Lock = field(default_factory=trio.Lock)
    objects: tuple[ObjectKey, ...] = ()
    brought: Brought | None = None
    """The state that this process applied last; None: nothing."""
    begun: datetime | None = None
    """The time at which the latest update was begun."""
    refresh: bool = False
    """True if the next download must ask the registry, whatever is recorded."""
    run: int = 0
    """The scheduler's number of the reconciliation that runs."""
    log_budgets: dict[str, LogBudget] = field(default_factory=dict)
    """The remaining log budget of each hook."""
    failing: dict[tuple[str, str], str] = field(default_factory=dict)
    """The errors of event hooks whose last run in a lane failed."""
    dirty: bool = False
    """True if a hook changed the values while they were being applied."""
    voted_for: str = ""
    """The checksum of the settings that the enabled script was last asked about."""
    vote: KeptVote | None = None
    """The enabled script's last answer."""
    deletion: DeletionPolicy = DeletionPolicy.DELETE
    """The policy for objects at the removal; set when that begins."""
    skip_delete_hooks: bool = False
    """True if a user wants the package removed without its delete hooks."""
    disowned: bool = False
    """True if the package is removed while the release of its name is another package's; that release is not touched."""
    history: dict[str, HookHistory] = field(default_factory=dict)
    startup_done: frozenset[str] = frozenset()
    """The onStartup hooks that have run since the hooks were started."""
    throttles: dict[str, Throttle] = field(default_factory=dict)
    """The throttles of hooks that limit how often they run."""
    crds: tuple[str, ...] | None = ()
    """The established definitions of the package, as ``group/version/Kind``; None while they are not established."""
    chart_use: tuple[str, ChartUse] | None = None
    """The inputs that the chart of that digest can depend on; it is searched once."""
    mentions_webhooks: tuple[str, bool] | None = None
    """True if the content of that digest mentions conversion webhooks; it is searched once."""
    crds_changed: Signal = field(default_factory=Signal)
    crd_scope: WorkScope | None = None
    disabling: tuple[str, bool] | None = None
    """The reason of the Disable that is under way, and whether it uninstalls."""
    missed_disable: tuple[str, bool] | None = None
    """The Disable that the scheduler ordered while the package was suspended: the reason, and whether to uninstall."""
    warnings: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The warnings by subject."""
    unmatched: tuple[str, ...] = ()
    """The overrides that name something that the chart does not have."""
    drift: tuple[str, ...] = ()
    """The fields of its objects that are not as applied, with the managers that set them."""
    fought: tuple[str, ...] = ()
    """The drifted fields that another manager sets again and again."""
    steps: Steps | None = None
    """The steps of the operation whose task runs in the main lane."""
    loaded_once: bool = False
    """True if this process has loaded the package."""
    verified: bool = False
    """True if this process has applied the package, or found it applied."""
    secrets_of_all: Callable[[], tuple[str, ...]] = tuple
    """The function that returns secret texts of the global values, which the package sees but must not show."""
    running_hooks: int = 0
    hooks_quiet: Signal = field(default_factory=Signal)

    def loaded(self) -> Definition:
        """Return the loaded definition; only after Load."""
        if self.definition is None:
            raise AssertionError(f"{self.id}: it is not loaded")
        return self.definition

    def fetched(self) -> Manifest:
        """Return the manifest that was downloaded; only after Download."""
        if self.manifest is None:
            raise AssertionError(f"{self.id}: nothing was downloaded")
        return self.manifest

    @property
    def is_configured(self) -> bool:
        """Return whether Configure has succeeded with the definition that is loaded now."""
        return self.configured_by is not None and self.configured_by == self.definition

    def crds_ensured(self) -> None:
        """Wake all tasks that wait for the package's definitions to be established."""
        self.crds_changed.tell()

    def journalled(self) -> Steps:
        """Return the steps of the operation whose task calls this."""
        if self.steps is None:
            raise AssertionError(f"{self.id}: no operation is at work")
        return self.steps

    async def recorded(self, tools: Tools) -> StateRecord:
        """Return the package's record, read once. Raises ClusterError, or IdentityError if it can have none."""
        if self.record is None:
            record = state_record(tools.cluster, self.id)
            if (listed := tools.states.take(record.key)) is not None:
                record.restore(listed)
            else:
                await record.read()
            self.record = record
        return self.record

    @property
    def isolation(self) -> str | None:
        """The namespace that its hooks are confined to; None for a Module, which sees the whole cluster."""
        return self.id.namespace if isinstance(self.id, AppId) else None

    @property
    def patches(self) -> tuple[JsonValue, ...]:
        """The patches that hooks have made to the values."""
        return self.record.state.patches if self.record is not None else ()

    @property
    def is_in_folder(self) -> bool:
        """True if the package comes from a folder of packages on this machine, not from a registry."""
        return isinstance(self.source, FolderSource)

    def masked(self, text: str) -> str:
        """Return a text with secrets masked."""
        return redact_text(text, self.secrets)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The texts that must not be shown: settings from Secrets and fields that schemas call writeOnly, global ones
        included.

        The secrets of earlier settings count until the new ones have been taken over.
        """
        known = (self.wanted_settings, self.newest, self.configured)
        found = {*self.secrets_of_all(), *(text for settings in known for text in settings.secrets)}
        for document in (*(settings.settings for settings in known), self.values):
            found |= texts_at(document, self._write_only(document))
        return tuple(sorted(found))

    @property
    def has_release(self) -> bool:
        """Return whether there may be a release that is this package's."""
        return has_release(self.id) and not self.disowned

    @property
    def hidden_paths(self) -> frozenset[tuple[str | int, ...]]:
        """The paths of secrets in settings and values."""
        known = (self.wanted_settings, self.newest, self.configured)
        found: set[tuple[str | int, ...]] = {path for settings in known for path in settings.hidden}
        for document in (self.wanted_settings.settings, self.values):
            found |= self._write_only(document)
        return frozenset(found)

    def _write_only(self, document: JsonObject) -> set[tuple[str | int, ...]]:
        if self.definition is None:
            return set()
        schemas = (self.definition.settings_schema, self.definition.values_schema)
        return {path for schema in schemas if schema is not None for path in schema.write_only_paths(document)}


class Reporter(Protocol):
    """The receiver of tasks' reports: the runtime, which keeps the status, asks the scheduler, and notifies the controller."""

    def progressed(self, instance: Instance, stage: Stage, reason: str, message: str) -> None:
        """Report that a stage is at work."""
        ...

    def succeeded(self, instance: Instance, stage: Stage) -> None:
        """Report that a stage is done."""
        ...

    def failed(self, instance: Instance, stage: Stage, failure: Failure) -> None:
        """Report that a stage failed."""
        ...

    def placed(self, instance: Instance) -> None:
        """Record that there may be objects of the package in its namespace from now on."""
        ...

    def released(self, instance: Instance, revision: int) -> None:
        """Report that the version is applied as this revision of its release; 0 if it has no release."""
        ...

    def tracked(self, instance: Instance, completed: Iterable[str], remaining: Iterable[str]) -> None:
        """Report the progress on the cluster's objects, by their names."""
        ...

    def reachable(self, instance: Instance, urls: Iterable[tuple[str, str]]) -> None:
        """Report the URLs of the package, each with its purpose; they replace those reported before."""
        ...

    def warned(self, instance: Instance, subject: str, warnings: tuple[str, ...]) -> None:
        """Report warnings about one subject: things that work but should be changed. They replace the earlier ones about it."""
        ...

    def uninstalled(self, instance: Instance) -> None:
        """Report that nothing of the package is in the cluster any more."""
        ...

    def removing(self, instance: Instance, reason: str, message: str) -> None:
        """Report what the removal waits for, or how it failed."""
        ...

    def hook_ran(self, instance: Instance, hook: str, error: str) -> None:
        """Record that a hook ran; ``error`` is empty if it succeeded."""
        ...

    def values_changed(self, instance: Instance, hook: str) -> None:
        """Record that an event hook has changed the values, so that the last render is out of date."""
        ...

    def voted(self, instance: Instance, enabled: bool | None, reason: str, *, failed: bool) -> None:  # noqa: FBT001
        """Record the vote of the enabled script; None: there is no script."""
        ...

    def run_later(self, instance: Instance, task: Task, lane: str) -> bool:
        """Put a hook's run into a lane of its own; return False if it was not taken."""
        ...

    def tell_hook(self, hooks: PackageHooks, inbox: Inbox) -> None:
        """Run a hook for the events that wait in its inbox."""
        ...

    def event_hook_done(self, instance: Instance, hook: str, lane: str, error: str) -> None:
        """Record that an event hook ran in a lane; ``error`` is empty if it succeeded."""
        ...

    def modules_before(self, instance: "Instance") -> tuple[str, ...]:
        """Return the Modules of a lower order that are on; the enabled script of a module folder sees only these."""
        ...

    def global_values(self) -> JsonObject:
        """Return what every package sees under ``global``."""
        ...

    def global_settings(self) -> JsonObject:
        """Return the part of the global values that a user set."""
        ...


Work = Callable[[Instance, Tools, Reporter], Awaitable[None]]
"""The function that does a task's work."""
