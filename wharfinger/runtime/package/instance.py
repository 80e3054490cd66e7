"""One package in the runtime: the instance, which has the package's state, and the tools that its tasks use.

The state is a frozen struct (:mod:`~wharfinger.runtime.package.state`). Only `Instance.take` replaces it, so every change of the
state is caused by an event. The loop of the runtime (:mod:`~wharfinger.runtime.core.packages`) calls `take` for one event after
the other. `take` does not await, so tasks in several lanes need no lock to read the state.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from operator import is_not
from typing import Protocol, TypeAlias

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.objects.accounts import NoAccountError
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.releases.engine import ReleaseEngine
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.redaction.redaction_text import redact_text
from wharfinger.hooks.containment.cluster_access import CredentialsPolicy
from wharfinger.hooks.metrics.hook_metrics import HookMetrics
from wharfinger.hooks.running.config_reader import ConfigReader
from wharfinger.hooks.running.hook_services import HookServices
from wharfinger.hooks.running.inbox import Inbox
from wharfinger.hooks.running.log_budget import LogBudget
from wharfinger.hooks.running.package_hooks import PackageHooks
from wharfinger.hooks.running.runner import HookRunner
from wharfinger.hooks.watching.filters import Filters
from wharfinger.hooks.watching.throttle import Throttle
from wharfinger.hooks.webhooks.bound_webhooks import BoundWebhooks
from wharfinger.kube.service_account import ServiceAccount
from wharfinger.packages.definition.definition import Definition
from wharfinger.packages.kustomizing.kustomize import KustomizeBuilder
from wharfinger.packages.registry.registry import Manifest, Registry
from wharfinger.packages.rendering.chart_engine import ChartEngine
from wharfinger.packages.rendering.renderer import Renderer
from wharfinger.packages.settings.cel_pool import Rules
from wharfinger.packages.sources.source import FolderSource, Source
from wharfinger.packages.store.store import Store
from wharfinger.pools.interpreters.warm_start import WarmStarts
from wharfinger.pools.persistent.programs import PersistentPrograms
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.slots import Slots
from wharfinger.queue.task import Task
from wharfinger.runtime.lifecycle.journal import Journal
from wharfinger.runtime.lifecycle.listed_states import ListedStates
from wharfinger.runtime.lifecycle.package_state import StateRecord
from wharfinger.runtime.lifecycle.restart_policy import Repeat
from wharfinger.runtime.lifecycle.steps import Steps
from wharfinger.runtime.package.around import Around
from wharfinger.runtime.package.contents import Contents
from wharfinger.runtime.package.effects import Effect
from wharfinger.runtime.package.events import Event, Report
from wharfinger.runtime.package.findings import Finding
from wharfinger.runtime.package.first_attempts import Tries
from wharfinger.runtime.package.machine import step
from wharfinger.runtime.package.state import (
    Applied,
    Configuration,
    Crds,
    DesiredPackage,
    Files,
    HookState,
    Node,
    Package,
    Removal,
    Vote,
)
from wharfinger.runtime.resources.identity import AppId, PackageId, has_release
from wharfinger.runtime.resources.settings import texts_at
from wharfinger.runtime.status.package_status import PackageStatus
from wharfinger.runtime.tracing.tracer import Tracer


class SourceOpener(Protocol):
    """A function that opens the registry of a package."""

    def __call__(self, source: Source, package: str, /) -> AbstractAsyncContextManager[tuple[Registry, str]]:
        """Return a context manager around an open Registry and the package's OCI repository in it."""
        ...


class Webhooks(Protocol):
    """The publisher of the objects in the cluster that tell API servers to call hooks."""

    async def publish(self, package: str, bound: BoundWebhooks) -> None:
        """Publish the webhooks of a package in place of its earlier webhooks. From now on, undo changes that other writers make
        to the published webhooks. Raises ClusterError and HookError.
        """
        ...

    async def withdraw(self, package: str, *, conversions: bool) -> None:
        """Remove a package's webhooks, but its conversion webhooks only if ``conversions`` is True. Raises ClusterError."""
        ...


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools of tasks, which all packages share. ``slots`` limits the work of the whole daemon."""

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
    contents: Contents = field(default_factory=Contents)
    """The cache of what was read from the files of packages. Packages with the same files share one copy."""
    crd_phase: Tries = field(default_factory=Tries)
    """The packages whose CRDs are being ensured for the first time."""
    load_phase: Tries = field(default_factory=Tries)
    """The packages that are being loaded for the first time."""
    metrics: HookMetrics = field(default_factory=HookMetrics)
    on_startup: Repeat = Repeat.LAYOUT
    synchronization: Repeat = Repeat.LAYOUT
    hook_credentials: CredentialsPolicy = CredentialsPolicy.MODULES
    """The policy that determines the packages whose hooks get the daemon's credentials for the cluster."""
    kustomize: KustomizeBuilder | None = None
    """The builder that applies `spec.patches`; None if patches are refused."""
    require_account: bool = False
    """True if no package may act without a service account."""
    engine: ChartEngine | None = None
    """The chart engine, whose counters are read for metrics; None if ``helm template`` renders the charts."""
    warm: WarmStarts | None = None
    """The pools of warm interpreters for Python hooks, kept here only for statistics and metrics; None if the daemon has none.
    """
    persistent: PersistentPrograms | None = None
    """The programs of hooks that keep running between runs, kept here only for statistics and metrics; None if the daemon has
    none.
    """
    tracer: Tracer | None = None
    """The tracer, which makes spans of hooks' runs; None if no traces are exported."""
    webhooks: Webhooks | None = None
    """The publisher of hooks' webhooks; None if the daemon has no admission server."""


@dataclass(slots=True)
class Signal:
    """An event that can occur repeatedly, and wakes all waiting tasks each time. It creates a trio.Event only when a task begins
    to wait, to save memory: there may be ten thousand packages, each with two signals.
    """

    _event: trio.Event | None = None

    def notify(self) -> None:
        """Wake all waiters."""
        if self._event is not None:
            self._event.set()
            self._event = None

    async def wait(self) -> None:
        """Wait for the next call of `notify`."""
        if self._event is None:
            self._event = trio.Event()
        await self._event.wait()


Observe: TypeAlias = Callable[[Package, Event, Around, Package, tuple[Effect, ...]], None]
"""A callback for each event. It gets the state before the event, the event, the facts outside of the state (`Around`), the
state after the event, and the effects.
"""


@dataclass(slots=True)
class Instance:
    """One package: its state, which only `take` replaces, and the objects that its tasks share."""

    state: Package
    record: StateRecord | None = None
    """The package's record in the cluster, which outlives the process; None until it was read."""
    secrets_of_all: Callable[[], tuple[str, ...]] = tuple
    """The function that returns the secret texts in the global values. The package gets these texts, but must not show them."""
    values_lock: trio.Lock = field(default_factory=trio.Lock)
    crds_changed: Signal = field(default_factory=Signal)
    steps: Steps | None = None
    """The steps, in the journal, of the operation whose task now runs in the main lane."""
    log_budgets: dict[str, LogBudget] = field(default_factory=dict)
    """The log budget that each hook has left."""
    throttles: dict[str, Throttle] = field(default_factory=dict)
    """The throttles, by hook. A throttle limits how often its hook runs."""
    running_hooks: int = 0
    hooks_quiet: Signal = field(default_factory=Signal)
    observe: Observe | None = None
    """The callback for each event, which the flight recorder provides."""
    _secrets: tuple[tuple[object, ...], tuple[str, ...]] = ((), ())
    """A cache for ``secrets``: the objects that were searched for secrets, and the secret texts that were found in them."""

    def take(self, event: Event, around: Around) -> tuple[Effect, ...]:
        """Process an event: replace the state by the next state, and return the effects to carry out."""
        before = self.state
        self.state, effects = step(before, event, around)
        if self.observe is not None:
            self.observe(before, event, around, self.state, effects)
        return effects

    @property
    def id(self) -> PackageId:
        """The identity of the package."""
        return self.state.id

    @property
    def status(self) -> PackageStatus:
        """The status of the package."""
        return self.state.status

    @property
    def desired(self) -> DesiredPackage:
        """The wanted state."""
        return self.state.desired

    @property
    def files(self) -> Files:
        """The facts about the version on the disk: its manifest, folder, definition and hooks."""
        return self.state.files

    @property
    def node(self) -> Node:
        """The part of the package's state that concerns its node in the scheduler."""
        return self.state.node

    @property
    def vote(self) -> Vote:
        """The enabled script's last run and vote."""
        return self.state.vote

    @property
    def configuration(self) -> Configuration:
        """The settings and values."""
        return self.state.configuration

    @property
    def applied(self) -> Applied:
        """The release in the cluster."""
        return self.state.applied

    @property
    def hooks(self) -> HookState:
        """The state of the hooks that are started, with the results of their runs."""
        return self.state.hooks

    @property
    def crds(self) -> Crds:
        """The custom resource definitions."""
        return self.state.crds

    @property
    def removal(self) -> Removal:
        """The options of the package's removal."""
        return self.state.removal

    @property
    def warnings(self) -> Mapping[str, tuple[str, ...]]:
        """The warnings by subject."""
        return self.state.warnings

    def forget_record(self) -> None:
        """Forget the recorded state, because the package has another identity now, which has a recorded state of its own."""
        self.record = None

    def know_record(self, record: StateRecord) -> None:
        """Set the package's recorded state, which was already read from the cluster."""
        self.record = record

    def begin_steps(self, steps: Steps) -> None:
        """Set the steps of the operation whose task begins now."""
        self.steps = steps

    def hook_begins(self) -> None:
        """Count a hook that begins to run."""
        self.running_hooks += 1

    def hook_ends(self) -> None:
        """Stop counting a hook that has ended. If no hook runs any more, wake the tasks that wait until no hook runs."""
        self.running_hooks -= 1
        if not self.running_hooks:
            self.hooks_quiet.notify()

    def loaded(self) -> Definition:
        """Return the loaded definition. Raises AssertionError if no definition is loaded."""
        if self.files.definition is None:
            raise AssertionError(f"{self.id}: it is not loaded")
        return self.files.definition

    def fetched(self) -> Manifest:
        """Return the manifest of the downloaded version. Raises AssertionError if nothing was downloaded."""
        if self.files.manifest is None:
            raise AssertionError(f"{self.id}: nothing was downloaded")
        return self.files.manifest

    @property
    def is_configured(self) -> bool:
        """Return whether Configure has succeeded with the definition that is loaded now."""
        return (
            self.configuration.configured_by is not None and self.configuration.configured_by == self.files.definition
        )

    def crds_ensured(self) -> None:
        """Wake all tasks that wait until the package's CRDs are ensured."""
        self.crds_changed.notify()

    def journalled(self) -> Steps:
        """Return the journal of the operation that is running. Call this only from a task of this operation."""
        if self.steps is None:
            raise AssertionError(f"{self.id}: no operation is running")
        return self.steps

    async def recorded(self, tools: Tools) -> StateRecord:
        """Return the package's recorded state, which is read only once. Raises ClusterError, or IdentityError if no record can
        exist for the name.
        """
        if self.record is None:
            self.record = await tools.states.record(tools.cluster, self.id)
        return self.record

    @property
    def account(self) -> ServiceAccount | None:
        """Return the service account that the package acts as; None for the daemon itself."""
        given = self.desired.account
        name = self.desired.directives.account if given is None else given
        return ServiceAccount(self.id.namespace, name) if name else None

    def acting(self, tools: Tools, *, comment: str = "") -> ClusterClient:
        """Return the cluster client for requests about objects of the package and of its hooks. The client acts as the package's
        service account, if there is one. ``comment`` is a text for the API server's audit log.

        Raises NoAccountError.
        """
        if self.account is not None:
            return tools.cluster.acting_as(self.account, comment=comment)
        if tools.require_account:
            raise NoAccountError(Owner(self.id.name, self.id.namespace))
        return tools.cluster

    @property
    def isolation(self) -> str | None:
        """Return the namespace to which the package's hooks are confined; None for a Module, whose hooks may read the whole
        cluster.
        """
        return self.id.namespace if isinstance(self.id, AppId) else None

    @property
    def patches(self) -> tuple[JsonValue, ...]:
        """Return the patches that hooks have made to the values."""
        return self.record.state.patches if self.record is not None else ()

    @property
    def is_in_folder(self) -> bool:
        """True if the package comes from a folder of packages on this machine, not from a registry."""
        return isinstance(self.desired.source, FolderSource)

    def masked(self, text: str) -> str:
        """Return a text in which the secrets of this package are masked."""
        return redact_text(text, self.secrets)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The texts that must not be shown: settings from Secrets, and fields that a schema marks as writeOnly, including
        those of the global settings.

        Secrets of earlier settings are included until the package is configured with the new settings.
        """
        configuration = self.configuration
        known = (self.desired.settings, configuration.newest, configuration.configured)
        searched = (*known, configuration.values, self.files.definition)
        before, own = self._secrets
        if not before or any(map(is_not, before, searched)):  # each of these objects is replaced when it changes
            found = {text for settings in known for text in settings.secrets}
            for document in (*(settings.settings for settings in known), configuration.values):
                found |= texts_at(document, self._write_only(document))
            own = tuple(sorted(found))
            self._secrets = searched, own
        others = self.secrets_of_all()
        return tuple(sorted({*others, *own})) if others else own

    @property
    def has_release(self) -> bool:
        """Return whether the package may have a release."""
        return has_release(self.id) and not self.removal.disowned

    @property
    def hidden_paths(self) -> frozenset[tuple[str | int, ...]]:
        """The paths of secrets in settings and values."""
        known = (self.desired.settings, self.configuration.newest, self.configuration.configured)
        found: set[tuple[str | int, ...]] = {path for settings in known for path in settings.hidden}
        for document in (self.desired.settings.settings, self.configuration.values):
            found |= self._write_only(document)
        return frozenset(found)

    def _write_only(self, document: JsonObject) -> set[tuple[str | int, ...]]:
        if self.files.definition is None:
            return set()
        schemas = (self.files.definition.settings_schema, self.files.definition.values_schema)
        return {path for schema in schemas if schema is not None for path in schema.write_only_paths(document)}


class Host(Protocol):
    """The part of the runtime that tasks use: it processes their reports and findings, runs hooks in other lanes, and knows the
    other packages.
    """

    def emit(self, instance: Instance, event: Report | Finding) -> None:
        """Process a report or a finding about a package; its state has changed when this returns."""
        ...

    def run_later(self, instance: Instance, task: Task, lane: str) -> bool:
        """Put a hook's run into a lane; return False if the queue did not accept it."""
        ...

    def tell_hook(self, hooks: PackageHooks, inbox: Inbox) -> None:
        """Enqueue a run of a hook for the events that wait in its inbox."""
        ...

    def modules_before(self, instance: Instance) -> tuple[str, ...]:
        """Return the Modules that are on and come before the package; the enabled script of a module folder gets only these."""
        ...

    def global_values(self) -> JsonObject:
        """Return the values that every package gets under ``global``."""
        ...

    def global_settings(self) -> JsonObject:
        """Return the part of the global values that a user set."""
        ...


Work = Callable[[Instance, Tools, Host], Awaitable[Finding | None]]
"""The function that does a task's work. It returns an event with the result; None if only the end of the work is to be
reported.
"""
