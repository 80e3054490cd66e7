"""A world for runtime tests: a control plane in this process, a real registry, real helm, and a real store on disk.

Only requests to the control plane use no socket: they are passed in memory. `World.until` watches an object, so it waits for
changes that a user can see as well.
"""

import base64
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import trio
import trio.testing

from tests.hooks.support.patience import PATIENT_FILTERS
from tests.packages.support.charts import chart
from tests.registry_server import PASSWORD, USER, open_registry_server
from tests.runtime.support.beginning import storage_to_begin_with
from tests.runtime.support.objects import application, module, repository
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import Connection, bearer
from wharfinger.cluster.api.errors import NotFoundError
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.cluster.health.stall import GRACE_S
from wharfinger.cluster.objects.scope import ALLOWED, CLUSTER_SCOPE_LABEL
from wharfinger.cluster.releases.engine import ReleaseEngine
from wharfinger.cluster.releases.options import EngineOptions
from wharfinger.cluster.watch.informer import Informer, open_informer
from wharfinger.cluster.watch.work_queue import WorkKeys
from wharfinger.control_plane.service import LOCAL, open_control_plane
from wharfinger.formats.json.value import JsonObject, JsonValue, find_int, find_list, find_object, find_str
from wharfinger.hooks.running.config_reader import ProcessConfigReader
from wharfinger.hooks.running.hook_services import HookServices
from wharfinger.hooks.running.process_runner import ProcessHookRunner
from wharfinger.hooks.watching.filters import Filters
from wharfinger.hooks.watching.jq_pool import open_jq_pool
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.kustomizing.engine_kustomize import kustomize_builder
from wharfinger.packages.kustomizing.kustomize import KubectlKustomize
from wharfinger.packages.registry.address import RegistryAddress
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.oci_registry import open_registry
from wharfinger.packages.registry.pusher import load_package, push_package
from wharfinger.packages.registry.registry import Registry
from wharfinger.packages.rendering.entry_cache import EntryCache
from wharfinger.packages.rendering.helm_renderer import HelmRenderer
from wharfinger.packages.settings.cel_pool import Rules, open_cel_pool
from wharfinger.packages.sources.source import Source, open_source, source_text
from wharfinger.packages.store.disk_store import DiskStore, open_store
from wharfinger.process.command import Limits
from wharfinger.queue.backoff import BackoffPolicy
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.slots import Slots
from wharfinger.queue.slots_machine import SlotLimits
from wharfinger.runtime.controllers.service import open_controller
from wharfinger.runtime.core.observers import UNOBSERVED, Observers
from wharfinger.runtime.core.runtime import Runtime
from wharfinger.runtime.core.service import Facts, open_runtime
from wharfinger.runtime.daemon.engine import find_kubectl, package_renderer
from wharfinger.runtime.daemon.limited_client import LimitedClient
from wharfinger.runtime.lifecycle.journal import Journal
from wharfinger.runtime.package.instance import SourceOpener, Tools, Webhooks
from wharfinger.runtime.resources.application_scope import NAMESPACE
from wharfinger.runtime.resources.resources import APPLICATION, MODULE, PACKAGE_REPOSITORY, REQUESTED
from wharfinger.runtime.shards.ownership import MAIN
from wharfinger.runtime.shards.seizure import Seizures
from wharfinger.runtime.status.package_status import PackageStatus
from wharfinger.runtime.status.summary import summarize
from wharfinger.runtime.status.writer import StatusWriter
from wharfinger.runtime.tasks.health_expressions import HealthExpressions
from wharfinger.runtime.tracing.tracer import Tracer

PATIENCE_S = 300
VERIFY_S = 0.0
"""The time after the start in which a status is not written if it only says that a package is being verified."""
STATUS_PAUSE_S = 0.1
"""The pause between two minor writes of a status; it is short, so that tests need not wait for them."""
SOON = BackoffPolicy(initial_s=1.0, max_s=2.0)
"""A short backoff of failed tasks, for tests that wait until a failed task runs again."""


@dataclass(slots=True)
class World:
    """A control plane, a registry, and the runtime and controllers of a daemon, with methods that act as a user does."""

    folder: Path
    address: RegistryAddress
    client: HttpClusterClient
    applications: Informer
    modules: Informer
    runtime: Runtime
    downloads: list[str]
    login: Credentials | None = None
    generations: dict[tuple[str, str], int] = field(default_factory=dict)
    requests: int = 0

    async def push(self, name: str, version: str, files: Mapping[str, str] | None = None) -> None:
        """Build a chart and push it as ``packages/<name>:<version>``."""
        folder = chart(self.folder / f"{name}-{version}", name, version, dict(files or {}))
        await self.push_folder(folder, name, version)

    async def push_folder(self, folder: Path, name: str, version: str) -> None:
        """Push a package of any layout as ``packages/<name>:<version>``."""
        async with open_registry(self.address, scheme="http", credentials=self.login) as registry:
            await push_package(await load_package(folder, name), registry, f"packages/{name}", version)

    async def repository(self, name: str = "default", *, credentials: str = "") -> None:
        """Create a PackageRepository for the registry. ``credentials`` names a Secret in ``prod``."""
        obj = repository(f"{self.address}/packages", name=name)
        if credentials:
            find_object(obj, "spec", "registry")["credentialsSecret"] = {"name": credentials, "namespace": "prod"}
        await self.client.create(obj)

    async def local_repository(self, path: Path) -> None:
        """Create the PackageRepository ``default``, whose source is a folder of package folders."""
        await self.client.create({**repository(""), "spec": {"folder": {"path": str(path)}}})

    async def secret(self, name: str, **texts: str) -> None:
        """Create or replace a Secret in ``prod``."""
        data: JsonObject = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        metadata: JsonObject = {"name": name, "namespace": "prod"}
        secret: JsonObject = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
        await self.client.apply(secret, field_manager="test", force=True)

    async def create(
        self,
        namespace: str,
        name: str,
        *,
        package: str = "web",
        version: str = "1.0.0",
        settings: JsonObject | None = None,
        repository: str | None = None,
        more: JsonObject | None = None,
    ) -> None:
        """Create an Application. ``more`` contains further fields of its spec."""
        obj = application(namespace, name, package=package, version=version, settings=settings, repository=repository)
        spec = find_object(obj, "spec")
        spec |= more or {}
        for left_out in [each for each, value in spec.items() if value is None]:
            del spec[left_out]
        find_object(obj, "metadata").pop("uid")
        find_object(obj, "metadata").pop("generation")
        await self.client.create(obj)

    async def create_module(
        self, name: str, *, package: str = "", version: str = "1.0.0", spec: JsonObject | None = None
    ) -> None:
        """Create a Module. In all methods, the namespace of a Module is ""."""
        await self.client.create(module(name, package=package, version=version, spec=spec))

    async def change(self, namespace: str, name: str, spec: JsonObject) -> None:
        """Apply a merge patch to a resource's spec. After that, `until_state` ignores older statuses."""
        changed = await self.client.merge_patch(_key(namespace, name), {"spec": spec})
        self.generations[(namespace, name)] = find_int(changed, "metadata", "generation")

    async def request(self, namespace: str, name: str) -> None:
        """Request a complete reconciliation of a resource, and return once the runtime has accepted the request."""
        self.requests += 1
        annotations: JsonObject = {REQUESTED: str(self.requests)}
        await self.client.merge_patch(_key(namespace, name), {"metadata": {"annotations": annotations}})
        runtime_name = f"{namespace}.{name}" if namespace else name
        with trio.fail_after(PATIENCE_S):
            while self.runtime.instances[runtime_name].desired.directives.requested != str(self.requests):
                await trio.testing.wait_all_tasks_blocked(0.005)

    async def annotate(self, namespace: str, name: str, key: str, value: str) -> None:
        """Set an annotation of a resource."""
        await self.client.merge_patch(_key(namespace, name), {"metadata": {"annotations": {key: value}}})

    async def until_notes(self, path: Path, words: set[str]) -> None:
        """Wait until hooks have written all these words into a file."""
        with trio.fail_after(PATIENCE_S):
            while not path.exists() or not words <= set(path.read_text().split()):
                # The file is not watched, so this waits for the end of the hook's run.
                await self.runtime.queues.wait_idle("prod.app")
                await trio.lowlevel.checkpoint()

    async def allow_cluster(self, namespace: str = "prod", *, allowed: bool = True) -> None:
        """Allow the Applications of a namespace to change the whole cluster, or forbid it again if ``allowed`` is false.

        The method changes a label of the Namespace.
        """
        labels: JsonObject = {CLUSTER_SCOPE_LABEL: ALLOWED if allowed else None}
        await self.client.merge_patch(ObjectKey(NAMESPACE, "", namespace), {"metadata": {"labels": labels}})

    async def delete(self, namespace: str, name: str) -> None:
        """Request the deletion of a resource."""
        await self.client.delete(_key(namespace, name))

    async def until(self, namespace: str, name: str, holds: Callable[[JsonObject], bool]) -> JsonObject:
        """Wait until ``holds`` is true for the resource. If that takes too long, the AssertionError shows its last state."""
        key, informer = _key(namespace, name), self._informer(namespace)
        last: JsonObject | None = None
        with trio.move_on_after(PATIENCE_S), informer.changes() as changes:
            while True:
                last = informer.get(key)
                if last is not None and holds(last):
                    return last
                await changes.wait()
        raise AssertionError(f"{namespace}/{name} did not become as wanted; last: {last}")

    async def until_runtime(self, holds: Callable[[], bool]) -> None:
        """Wait until ``holds`` is true, for states of the runtime that no object in the cluster shows.

        For example, a restart without changes writes nothing to the cluster.
        """
        with trio.fail_after(PATIENCE_S):
            while not holds():
                await trio.testing.wait_all_tasks_blocked(0.005)

    async def until_state(self, namespace: str, name: str, state: str) -> JsonObject:
        """Wait until the status reports this summary state for the newest generation."""

        least = self.generations.get((namespace, name), 1)

        def holds(obj: JsonObject) -> bool:
            seen = find_int(obj, "status", "observedGeneration")
            return find_str(obj, "status", "summary", "state") == state and seen >= least

        runtime_name = f"{namespace}.{name}" if namespace else name
        with trio.fail_after(PATIENCE_S):
            # After a restart, the status is that of the earlier daemon until this daemon has a result of its own.
            while state == "Ready" and self._is_unverified(runtime_name):
                await trio.testing.wait_all_tasks_blocked(0.005)
            # After a request without changes, the status is not written again. Only the runtime knows that the request was
            # handled.
            while self.requests and self._state_of(runtime_name) != state:
                await trio.testing.wait_all_tasks_blocked(0.005)
        return await self.until(namespace, name, holds)

    def _is_unverified(self, name: str) -> bool:
        status = self.runtime.status(name)
        return status is None or status.is_being_verified

    def _state_of(self, name: str) -> str:
        status = self.runtime.status(name)
        return summarize(status).state if status is not None else ""

    async def until_gone(self, namespace: str, name: str) -> None:
        """Wait until the object is deleted."""
        key, informer = _key(namespace, name), self._informer(namespace)
        with trio.fail_after(PATIENCE_S), informer.changes() as changes:
            while informer.get(key) is not None:
                await changes.wait()

    async def until_object(self, key: ObjectKey, holds: Callable[[JsonObject], bool]) -> JsonObject:
        """Wait until ``holds`` is true for an object of any kind."""
        last: JsonObject | None = None
        with trio.move_on_after(PATIENCE_S):
            async with open_informer(self.client, key.resource, key.namespace) as informer:
                with informer.changes() as changes:
                    while True:
                        last = informer.get(key)
                        if last is not None and holds(last):
                            return last
                        await changes.wait()
        raise AssertionError(f"{key} did not become as wanted; last: {last}")

    async def until_no_object(self, key: ObjectKey) -> None:
        """Wait until an object does not exist."""
        with trio.fail_after(PATIENCE_S):
            async with open_informer(self.client, key.resource, key.namespace) as informer:
                await informer.wait_synced()
                with informer.changes() as changes:
                    while informer.get(key) is not None:
                        await changes.wait()

    @staticmethod
    def condition(obj: JsonObject, kind: str) -> JsonValue:
        """Return a condition in a resource's status, or None if the resource does not have it."""
        return next((one for one in find_list(obj, "status", "conditions") if find_str(one, "type") == kind), None)

    def _informer(self, namespace: str) -> Informer:
        return self.applications if namespace else self.modules

    async def config_map(self, namespace: str, name: str) -> JsonObject | None:
        """Return a ConfigMap, or None if it does not exist."""
        resource = await self.client.resource_type("v1", "ConfigMap")
        try:
            return await self.client.get(ObjectKey(resource, namespace, name))
        except NotFoundError:
            return None


async def lose_repository(client: ClusterClient, name: str = "default") -> None:
    """Delete a PackageRepository even if packages use it, and remove its finalizer, as a user could do."""
    key = ObjectKey(PACKAGE_REPOSITORY, "", name)
    if not await client.delete(key):
        with suppress(NotFoundError):
            await client.merge_patch(key, {"metadata": {"finalizers": []}})


def _key(namespace: str, name: str) -> ObjectKey:
    return ObjectKey(APPLICATION if namespace else MODULE, namespace, name)


@asynccontextmanager
async def open_world(
    folder: Path,
    through: Callable[[ClusterClient], ClusterClient] = lambda client: client,
    *,
    with_password: bool = False,
    grace_s: float = GRACE_S,
    observers: Observers = UNOBSERVED,
) -> AsyncIterator[World]:
    """Open a world without packages. The controllers send their requests through ``through(client)``."""
    with one_error():
        async with (
            open_ground(folder, through, with_password=with_password) as ground,
            replace(ground, grace_s=grace_s, observers=observers).open_world() as world,
        ):
            yield world


@contextmanager
def one_error() -> Iterator[None]:
    """Unwrap the exception of a test's body: raise the innermost exception if each nested group contains only one.

    Every service around the body wraps the exception in one more group. With all these groups, pytest would cut off its report
    before the exception itself.
    """
    try:
        yield
    except BaseExceptionGroup as group:
        leaf: BaseException = group
        while isinstance(leaf, BaseExceptionGroup) and len(leaf.exceptions) == 1:
            leaf = leaf.exceptions[0]
        raise leaf from None


@asynccontextmanager
async def open_ground(
    folder: Path,
    through: Callable[[ClusterClient], ClusterClient] = lambda client: client,
    *,
    with_password: bool = False,
) -> AsyncIterator["Ground"]:
    """Open everything except the runtime and the controllers of a daemon, so that several daemons can run one after the other."""
    helm = shutil.which("helm")
    assert helm is not None, "helm is not on PATH: `make setup` brings it"
    downloads: list[str] = []

    def open_counted(source: Source, package: str) -> AbstractAsyncContextManager[tuple[Registry, str]]:
        downloads.append(f"{source_text(source)} {package}")
        return open_source(source, package)

    async with (
        open_registry_server(folder, with_password=with_password) as address,
        open_control_plane(storage=await storage_to_begin_with()) as control_plane,
        open_client(Connection(LOCAL, bearer("")), transport=control_plane.transport()) as client,
        open_store(folder / "state") as store,
        open_jq_pool(None, limits=PATIENT_FILTERS) as filters,
        open_cel_pool(None) as rules,
    ):
        login = Credentials(USER, PASSWORD) if with_password else None
        yield Ground(
            folder,
            client,
            through(client),
            store,
            filters,
            rules,
            open_counted,
            Path(helm),
            address,
            downloads,
            login,
            Journal(None),
        )


def _program(name: str) -> Path | None:
    found = shutil.which(name)
    return None if found is None else Path(found)


@dataclass(frozen=True, slots=True)
class Ground:
    """The parts that a daemon needs, such as a client, a store and helm. `open_daemon` runs its runtime and its controllers."""

    folder: Path
    client: HttpClusterClient
    through: ClusterClient
    store: DiskStore
    filters: Filters
    rules: Rules
    open_source: SourceOpener
    helm: Path
    address: RegistryAddress
    downloads: list[str]
    login: Credentials | None
    journal: Journal
    bootstrapped_by: ObjectKey | None = None
    grace_s: float = GRACE_S
    """The time for which an object of a healthy release may be unready without a change."""
    backoff: BackoffPolicy | None = None
    engine_client: ClusterClient | None = None
    """The client that packages and the release engine use, if it is not ``client``."""
    renders: Path | None = None
    """The folder of renders, if it is not in ``folder``."""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    """The wall clock of the runtime."""
    observers: Observers = UNOBSERVED
    tracer: Tracer | None = None
    webhooks: Webhooks | None = None
    """The webhooks of hooks, or None if there are none."""
    require_account: bool = False
    """True if packages without a service account are refused."""
    shard: str = MAIN
    """The shard that the daemon manages."""
    seizures: Seizures | None = None

    @asynccontextmanager
    async def open_world(self) -> AsyncIterator[World]:
        """Run the runtime and the controllers of a daemon, and yield a world for a test."""
        async with (
            self.open_daemon() as runtime,
            open_informer(self.client, APPLICATION) as applications,
            open_informer(self.client, MODULE) as modules,
        ):
            await applications.wait_synced()
            await modules.wait_synced()
            yield World(
                self.folder, self.address, self.client, applications, modules, runtime, self.downloads, self.login
            )

    def make_tools(self, services: HookServices, releases: ReleaseEngine, limits: SlotLimits | None = None) -> Tools:
        """Return the tools that tasks use."""
        scratch, slots = self.folder / "scratch", Slots(limits or SlotLimits())
        renders = EntryCache(self.renders or self.folder / "renders")
        limited = LimitedClient(self.engine_client or self.client, slots)
        return Tools(
            open_source=self.open_source,
            store=self.store,
            renderer=package_renderer(
                HelmRenderer(self.helm, scratch), kustomize_builder(None, find_kubectl(), scratch, renders), renders
            ),
            cluster=limited,
            releases=releases,
            hook_runner=ProcessHookRunner(scratch, Limits(wall_s=60, stdout_bytes=1024 * 1024)),
            config_reader=ProcessConfigReader(),
            filters=self.filters,
            rules=self.rules,
            hook_services=services,
            journal=self.journal,
            slots=slots,
            stopping=WorkScope("the world"),
            webhooks=self.webhooks,
            kustomize=KubectlKustomize(_program("kubectl"), scratch, network=False),
            require_account=self.require_account,
            tracer=self.tracer,
        )

    @asynccontextmanager
    async def open_daemon(self) -> AsyncIterator[Runtime]:
        keys = WorkKeys()
        writer = StatusWriter(keys.add, keys.add_later, least_pause_s=STATUS_PAUSE_S)

        def changed(name: str, before: PackageStatus, after: PackageStatus) -> None:
            writer.changed(name, before, after, trio.current_time())

        facts = Facts(await self.client.server_version(), "", UTC, bootstrapped_by=self.bootstrapped_by)
        async with (
            open_runtime(
                self.make_tools,
                self.client,
                self.filters,
                facts,
                now=self.now,
                on_change=keys.add,
                on_status=changed,
                backoff=self.backoff,
                limited=self.engine_client,
                engine=EngineOptions(expressions=HealthExpressions(self.rules), grace_s=self.grace_s),
                require_account=self.require_account,
                observers=self.observers,
                tracer=self.tracer,
            ) as runtime,
            open_controller(
                self.through,
                runtime,
                keys,
                writer,
                local_packages=[self.folder],
                verify_s=VERIFY_S,
                repository_client=self.client,
                scan_source=open_source,
                require_account=self.require_account,
                shard=self.shard,
                seizures=self.seizures,
            ),
        ):
            yield runtime
