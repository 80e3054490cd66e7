"""One package as it lives in the runtime: what is wanted, what its tasks have made of it, and how it is.

The runtime writes what is wanted and the status; the tasks of the package's main lane write what they fetched, loaded,
configured and started, strictly one after the other, so no lock is needed. Hook runs, which have lanes of their own, change
nothing but ``values``, ``patches`` and ``failing``, each in one step between two awaits.
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
from wharfinger.packages.rendering.chart_use import ChartUse
from wharfinger.packages.rendering.renderer import Renderer
from wharfinger.packages.settings.cel_pool import Rules
from wharfinger.packages.store.store import Store
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.slots import Slots
from wharfinger.queue.task import Task
from wharfinger.runtime.lifecycle.journal import Journal
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
    """Opens the registry that has a package."""

    def __call__(self, source: Source, package: str, /) -> AbstractAsyncContextManager[tuple[Registry, str]]:
        """A context manager around an open Registry, and the package's repository in it."""
        ...


@dataclass(frozen=True, slots=True)
class Tools:
    """What the tasks work with; one of each for all packages. The limiters bound work of the whole daemon."""

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
    """Cancelled when the daemon stops: what only waits does not hold it up."""
    crd_phase: Tries = field(default_factory=Tries)
    """Whose definitions are being ensured."""
    load_phase: Tries = field(default_factory=Tries)
    """Who is being loaded."""
    metrics: HookMetrics = field(default_factory=HookMetrics)
    on_startup: Repeat = Repeat.LAYOUT
    synchronization: Repeat = Repeat.LAYOUT
    hook_credentials: CredentialsPolicy = CredentialsPolicy.MODULES
    """Whose hooks may act on the cluster as the daemon does."""


@dataclass(slots=True)
class Signal:
    """Wakes whoever waits when something changes, again and again. Next to nothing while nobody does: ten thousand rest."""

    _event: trio.Event | None = None

    def tell(self) -> None:
        """Wake all who wait."""
        if self._event is not None:
            self._event.set()
            self._event = None

    async def wait(self) -> None:
        """Return when it is told the next time."""
        if self._event is None:
            self._event = trio.Event()
        await self._event.wait()


NO_SETTINGS: Final = ResolvedSettings({})
"""One for all: ten thousand packages have theirs in it."""


@dataclass(frozen=True, slots=True)
class Brought:
    """What was applied: of which inputs it was rendered, and what the release engine knows it by."""

    inputs: str
    fingerprint: str


@dataclass(slots=True)
class HookHistory:
    """What is known of one hook's runs in this process."""

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
    """What of it outlives the process; None until it was read."""
    manifest: Manifest | None = None
    tree: Path | None = None
    definition: Definition | None = None
    saw: tuple[str, ...] = ()
    """The Modules before it that were on when its enabled script was asked last."""
    voting: WorkScope | None = None
    """Of that, while it is asked again."""
    joined: Definition | None = None
    """What the scheduler's node is made of."""
    refused: Failure | None = None
    """Why what is loaded is not that: the node is still of the version before, which is installed and runs on."""
    hooks: tuple[Hook, ...] = ()
    started: PackageHooks | None = None
    hook_scope: WorkScope | None = None
    """Of all hook runs since the hooks were started."""
    newest: ResolvedSettings = NO_SETTINGS
    """What was wanted when it was last looked at, as of the newest version of the package's schema."""
    configured: ResolvedSettings = NO_SETTINGS
    """The settings that Configure took over; hooks see these."""
    configured_by: Definition | None = None
    """What the configured settings and the values were made and checked with; None: they were not."""
    settings: JsonObject = field(default_factory=dict)
    """Effective: with the defaults of the schema."""
    values: JsonObject = field(default_factory=dict)
    values_lock: trio.Lock = field(default_factory=trio.Lock)
    objects: tuple[ObjectKey, ...] = ()
    brought: Brought | None = None
    """What this process applied last; None: nothing."""
    begun: datetime | None = None
    """When its latest update was begun."""
    refresh: bool = False
    """The next download asks the registry, whatever is recorded."""
    run: int = 0
    """The scheduler's number of the reconciliation that runs."""
    log_budgets: dict[str, LogBudget] = field(default_factory=dict)
    """How much each of its hooks may still log."""
    failing: dict[tuple[str, str], str] = field(default_factory=dict)
    """Event hooks whose last run in a lane failed, and why."""
    dirty: bool = False
    """A hook changed the values while they were being applied."""
    voted_for: str = ""
    """Checksum of the settings that the enabled script was last asked about."""
    vote: KeptVote | None = None
    """What it answered last."""
    deletion: DeletionPolicy = DeletionPolicy.DELETE
    """What its removal takes along; said when that begins."""
    skip_delete_hooks: bool = False
    """A person wants it gone without them."""
    disowned: bool = False
    """It is removed, and the release of its name is another package's: nothing of that release is touched."""
    history: dict[str, HookHistory] = field(default_factory=dict)
    startup_done: frozenset[str] = frozenset()
    """onStartup hooks that are done since the hooks were started."""
    throttles: dict[str, Throttle] = field(default_factory=dict)
    """Of hooks that say how often they may run."""
    crds: tuple[str, ...] | None = ()
    """``group/version/Kind`` of the definitions that it brought, established; None while they are not."""
    chart_use: tuple[str, ChartUse] | None = None
    """What the chart of that digest can depend on; it is looked through once."""
    mentions_webhooks: tuple[str, bool] | None = None
    """Whether the content of that digest mentions conversion webhooks; it is looked through once."""
    crds_changed: Signal = field(default_factory=Signal)
    crd_scope: WorkScope | None = None
    disabling: tuple[str, bool] | None = None
    """The Disable that is under way: why, and whether it uninstalls."""
    missed_disable: tuple[str, bool] | None = None
    """What the scheduler ordered while it was suspended: why, and whether to uninstall."""
    warnings: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By subject."""
    unmatched: tuple[str, ...] = ()
    """Overrides that name what the chart does not have."""
    drift: tuple[str, ...] = ()
    """Fields of its objects that are not as applied, and who set them."""
    fought: tuple[str, ...] = ()
    """Those that somebody sets again and again."""
    steps: Steps | None = None
    """Those of the operation whose task runs in the main lane."""
    loaded_once: bool = False
    """By this process."""
    verified: bool = False
    """It was applied, or found applied, by this process."""
    secrets_of_all: Callable[[], tuple[str, ...]] = tuple
    """Texts of others that it is shown all the same, and must not show: those of the global values."""
    running_hooks: int = 0
    hooks_quiet: Signal = field(default_factory=Signal)

    def loaded(self) -> Definition:
        """What the package says of itself; only after Load."""
        if self.definition is None:
            raise AssertionError(f"{self.id}: it is not loaded")
        return self.definition

    def fetched(self) -> Manifest:
        """The manifest that was downloaded; only after Download."""
        if self.manifest is None:
            raise AssertionError(f"{self.id}: nothing was downloaded")
        return self.manifest

    @property
    def is_configured(self) -> bool:
        """Whether Configure has succeeded with what is loaded now."""
        return self.configured_by is not None and self.configured_by == self.definition

    def crds_ensured(self) -> None:
        """Its definitions are established: whoever waits for that goes on."""
        self.crds_changed.tell()

    def journalled(self) -> Steps:
        """The steps of the operation whose task this is called from."""
        if self.steps is None:
            raise AssertionError(f"{self.id}: no operation is at work")
        return self.steps

    async def recorded(self, client: ClusterClient) -> StateRecord:
        """Its record, read once. Raises ClusterError, or IdentityError where it can have none."""
        if self.record is None:
            record = state_record(client, self.id)
            await record.read()
            self.record = record
        return self.record

    @property
    def isolation(self) -> str | None:
        """The namespace its hooks are held in; None for a Module, which sees the cluster."""
        return self.id.namespace if isinstance(self.id, AppId) else None

    @property
    def patches(self) -> tuple[JsonValue, ...]:
        """What hooks have made of the values."""
        return self.record.state.patches if self.record is not None else ()

    @property
    def is_in_folder(self) -> bool:
        """Whether the package comes from a folder of packages on this machine, and not from a registry."""
        return isinstance(self.source, FolderSource)

    def masked(self, text: str) -> str:
        """A text as it may be shown."""
        return redact_text(text, self.secrets)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that must not be shown: settings from Secrets, and what the package's schemas call writeOnly; also global ones.

        Those of the settings before count until the new ones have been taken over.
        """
        known = (self.wanted_settings, self.newest, self.configured)
        found = {*self.secrets_of_all(), *(text for settings in known for text in settings.secrets)}
        for document in (*(settings.settings for settings in known), self.values):
            found |= texts_at(document, self._write_only(document))
        return tuple(sorted(found))

    @property
    def has_release(self) -> bool:
        """Return whether a release may be there that is this package's."""
        return has_release(self.id) and not self.disowned

    @property
    def hidden_paths(self) -> frozenset[tuple[str | int, ...]]:
        """Where in settings and values they are."""
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
    """Where tasks report to: the runtime, which keeps the status, asks the scheduler, and tells the controller."""

    def progressed(self, instance: Instance, stage: Stage, reason: str, message: str) -> None:
        """A stage is at work."""
        ...

    def succeeded(self, instance: Instance, stage: Stage) -> None:
        """A stage is done."""
        ...

    def failed(self, instance: Instance, stage: Stage, failure: Failure) -> None:
        """A stage failed."""
        ...

    def placed(self, instance: Instance) -> None:
        """From now on something of it may be in its namespace."""
        ...

    def released(self, instance: Instance, revision: int) -> None:
        """The version is applied as this revision of its release; 0 where it has none."""
        ...

    def tracked(self, instance: Instance, completed: Iterable[str], remaining: Iterable[str]) -> None:
        """How far the work on the cluster's objects is, by their names."""
        ...

    def reachable(self, instance: Instance, urls: Iterable[tuple[str, str]]) -> None:
        """Where it can be reached, each URL with what it is for; replaces what was said before."""
        ...

    def warned(self, instance: Instance, subject: str, warnings: tuple[str, ...]) -> None:
        """What works and should be changed all the same, about one subject; replaces what was said about it before."""
        ...

    def uninstalled(self, instance: Instance) -> None:
        """Nothing of it is in the cluster any more."""
        ...

    def removing(self, instance: Instance, reason: str, message: str) -> None:
        """What the removal waits for, or what went wrong with it."""
        ...

    def hook_ran(self, instance: Instance, hook: str, error: str) -> None:
        """A hook ran; ``error`` is empty if it succeeded."""
        ...

    def values_changed(self, instance: Instance, hook: str) -> None:
        """An event hook has changed the values: what was rendered from them is out of date."""
        ...

    def voted(self, instance: Instance, enabled: bool | None, reason: str, *, failed: bool) -> None:  # noqa: FBT001
        """What the enabled script says; None: there is none."""
        ...

    def run_later(self, instance: Instance, task: Task, lane: str) -> bool:
        """Put a hook's run into a lane of its own; False if it was not taken."""
        ...

    def tell_hook(self, hooks: PackageHooks, inbox: Inbox) -> None:
        """Have a hook told what waits in its inbox."""
        ...

    def event_hook_done(self, instance: Instance, hook: str, lane: str, error: str) -> None:
        """An event hook ran in a lane; ``error`` is empty if it succeeded."""
        ...

    def modules_before(self, instance: "Instance") -> tuple[str, ...]:
        """The Modules of a lower order that are on: what a module folder's enabled script sees of the others."""
        ...

    def global_values(self) -> JsonObject:
        """What every package sees under ``global``."""
        ...

    def global_settings(self) -> JsonObject:
        """What of that a user set."""
        ...


Work = Callable[[Instance, Tools, Reporter], Awaitable[None]]
"""What a task does."""
