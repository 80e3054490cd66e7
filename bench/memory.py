"""The memory of an idle package that is loaded and Ready.

The tasks, queues, scheduler, lifecycle, statuses and inbox are those of the daemon. The cluster is a double that stores
nothing, and the store and the registry are doubles with a single package, so only the memory of the runtime is counted. All
packages share their content (such as the definition, the settings and the values), because its size depends on the package. The
informers hold no objects, because the number and the size of the objects depend on the package, too.
"""

import gc
import tempfile
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar, cast

import trio
from msgspec.structs import replace

from bench.fake_client import FakeClient
from bench.measure import Ratio, Unit
from tests.packages.support.charts import write
from wharfinger.cluster.api.client import ClusterClient, ObjectList
from wharfinger.cluster.api.errors import NotFoundError
from wharfinger.cluster.api.raw_object import RawEvent, RawPage
from wharfinger.cluster.releases.engine import ReleaseEngine
from wharfinger.cluster.watch.work_queue import WorkKeys
from wharfinger.formats.json.value import JsonObject
from wharfinger.hooks.running.config_reader import ProcessConfigReader
from wharfinger.hooks.running.hook_services import HookServices
from wharfinger.hooks.running.process_runner import ProcessHookRunner
from wharfinger.hooks.watching.filters import Filters
from wharfinger.hooks.watching.jq_pool import open_jq_pool
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.packages.digest import Digest
from wharfinger.packages.registry.manifest import read_manifest
from wharfinger.packages.registry.pusher import pack_package
from wharfinger.packages.registry.registry import Descriptor, Manifest, Registry
from wharfinger.packages.rendering.helm_renderer import HelmRenderer
from wharfinger.packages.settings.cel_pool import Rules, open_cel_pool
from wharfinger.packages.sources.source import FolderSource, Source
from wharfinger.packages.store.store import Store
from wharfinger.process.command import Limits
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.slots import Slots
from wharfinger.queue.slots_machine import SlotLimits
from wharfinger.runtime.core.runtime import Runtime
from wharfinger.runtime.core.service import Facts, open_runtime
from wharfinger.runtime.daemon.limited_client import LimitedClient
from wharfinger.runtime.lifecycle.journal import Journal
from wharfinger.runtime.package.instance import Tools
from wharfinger.runtime.resources.identity import AppId
from wharfinger.runtime.resources.resources import PackageSpec
from wharfinger.runtime.resources.settings import ResolvedSettings
from wharfinger.runtime.status.package_status import PackageStatus
from wharfinger.runtime.status.summary import State, summarize
from wharfinger.runtime.status.writer import StatusWriter

_Item = TypeVar("_Item")

PACKAGES: Final = 10_000
FEW: Final = 1_000
"""The number of packages without ``--long``: the memory of one package does not depend on this number, but installing 10,000
takes minutes.
"""
AT_ONCE: Final = 200
FORMER_KIB: Final = 9.0
"""The memory of an idle package that an earlier version of bench/README.md stated. A package must not need more."""
SETTINGS: Final = ResolvedSettings({})
TREE: Final = {
    "package.yaml": "apiVersion: v1\ntype: Application\nname: web\nversion: 1.0.0\n",
    "openapi/settings.yaml": "type: object\nproperties: {replicas: {type: integer, default: 1}}\n",
    "openapi/values.yaml": "x-extend: {schema: settings.yaml}\ntype: object\n",
}


def measure(long: bool) -> Iterator[Ratio]:
    """Measure the memory that each idle package needs, and compare it with FORMER_KIB."""
    yield trio.run(_idle, PACKAGES if long else FEW)


async def _idle(packages: int) -> Ratio:
    with tempfile.TemporaryDirectory() as folder:
        async with _open_runtime(Path(folder)) as (runtime, keys, writer):
            await _bring_up(runtime, 0, AT_ONCE)  # The first packages create everything that is created only once.
            await _look_at_all(keys, writer)
            tracemalloc.start()
            try:
                for first in range(AT_ONCE, AT_ONCE + packages, AT_ONCE):
                    await _bring_up(runtime, first, AT_ONCE)
                await _look_at_all(keys, writer)
                _share_content(runtime)
                gc.collect()
                used, _ = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
    what = f"{packages} idle packages, memory of each"
    return Ratio("memory", what, "the former memory of each", used / packages, FORMER_KIB * 1024, 1.0, Unit.BYTES)


async def _bring_up(runtime: Runtime, first: int, count: int) -> None:
    source = FolderSource(Path("/packages"))
    names = []
    for number in range(first, first + count):
        identity = AppId(f"shop-{number % 100}", f"web-{number}")
        spec = PackageSpec(identity, 1, "web", "1.0.0", "default", {}, (), {})
        runtime.update_app(spec, source, SETTINGS)
        names.append(identity.name)
    for name in names:
        await runtime.queues.wait_idle(name)
        status = runtime.status(name)
        if status is None or summarize(status).state is not State.READY:
            raise SystemExit(f"bench: {name} is not Ready: {status}")


async def _look_at_all(keys: WorkKeys, writer: StatusWriter) -> None:
    """Process the due keys as the controller's workers do, until no key is due."""
    while keys.statistics()["due"]:
        name = await keys.take()
        writer.may_write(name, trio.current_time())
        writer.looked(name)
        keys.done(name)


def _share_content(runtime: Runtime) -> None:
    one = next(iter(runtime.instances.values()))
    for instance in runtime.instances.values():
        instance.state = replace(
            instance.state,
            files=replace(
                instance.files, definition=one.files.definition, hooks=one.files.hooks, manifest=one.files.manifest
            ),
            node=replace(instance.node, joined=one.files.definition),
            configuration=replace(
                instance.configuration,
                configured_by=one.files.definition,
                newest=one.configuration.newest,
                settings=one.configuration.settings,
                values=one.configuration.values,
            ),
        )


# --- doubles of the cluster and the store ----------------------------------------------------------------------------------


class _Cluster(FakeClient):
    """A cluster that has no objects and stores nothing."""

    async def get(self, key: ObjectKey) -> JsonObject:
        await trio.lowlevel.checkpoint()
        raise NotFoundError(404, "NotFound", f"{key}: not found")

    async def create(self, _obj: JsonObject) -> JsonObject:
        await trio.lowlevel.checkpoint()
        return {"metadata": {"resourceVersion": "1"}}

    async def replace(self, obj: JsonObject) -> JsonObject:
        return await self.create(obj)

    async def resource_type(self, api_version: str, kind: str) -> ResourceType:
        await trio.lowlevel.checkpoint()
        return ResourceType("", api_version, kind, f"{kind.lower()}s", namespaced=True)

    async def list(self, _resource: ResourceType, *_place: str, **_selected: object) -> ObjectList:
        await trio.lowlevel.checkpoint()
        return ObjectList((), "1")

    @asynccontextmanager
    async def raw_list(
        self, _resource: ResourceType, *_place: str, **_selected: object
    ) -> AsyncIterator[AsyncIterator[RawPage]]:
        yield _in_turn(RawPage((), "1"))

    @asynccontextmanager
    async def raw_watch(
        self, _resource: ResourceType, *_place: str, **_selected: object
    ) -> AsyncIterator[AsyncIterator[RawEvent]]:
        await trio.Event().wait()
        yield _in_turn()


async def _in_turn(*items: _Item) -> AsyncIterator[_Item]:
    for item in items:
        yield item


class _Shelf:
    """A store and a registry that have a single package."""

    def __init__(self, tree: Path) -> None:
        packed = pack_package(tree).manifest
        self.tree = tree
        self.only = read_manifest(packed.data, packed.descriptor)

    async def resolve(self, _repository: str, _tag: str) -> Descriptor:
        return self.only.descriptor

    async def manifest(self, _repository: str, _digest: Digest) -> Manifest:
        return self.only

    async def download(self, _registry: Registry, _repository: str, _manifest: Manifest) -> None:
        await trio.lowlevel.checkpoint()

    async def install(self, _manifest: Manifest) -> Path:
        await trio.lowlevel.checkpoint()
        return self.tree

    async def deploy(self, _name: str, _manifest: Manifest) -> Path:
        await trio.lowlevel.checkpoint()
        return self.tree

    @asynccontextmanager
    async def open_source(self, _source: Source, package: str) -> AsyncIterator[tuple[Registry, str]]:
        yield cast("Registry", self), package


@asynccontextmanager
async def _open_runtime(folder: Path) -> AsyncIterator[tuple[Runtime, WorkKeys, StatusWriter]]:
    client = cast("ClusterClient", _Cluster())
    shelf = _Shelf(write(folder / "web", TREE))
    keys = WorkKeys()
    writer = StatusWriter(keys.add, keys.add_later)

    def changed(name: str, before: PackageStatus, after: PackageStatus) -> None:
        writer.changed(name, before, after, trio.current_time())

    async with open_jq_pool(None) as filters, open_cel_pool(None) as rules:

        def make_tools(services: HookServices, releases: ReleaseEngine) -> Tools:
            return _tools(folder, client, shelf, filters, rules, services, releases)

        facts = Facts("v1.37.0", "", UTC)
        async with open_runtime(
            make_tools,
            client,
            filters,
            facts,
            now=lambda: datetime.now(UTC),
            on_change=keys.add,
            on_status=changed,
        ) as runtime:
            yield runtime, keys, writer


def _tools(
    folder: Path,
    client: ClusterClient,
    shelf: _Shelf,
    filters: Filters,
    rules: Rules,
    services: HookServices,
    releases: ReleaseEngine,
) -> Tools:
    slots = Slots(SlotLimits())
    limited = LimitedClient(client, slots)
    return Tools(
        open_source=shelf.open_source,
        store=cast("Store", shelf),
        renderer=HelmRenderer(Path("/helm"), folder),
        cluster=limited,
        releases=releases,
        hook_runner=ProcessHookRunner(folder, Limits(wall_s=60, stdout_bytes=1024)),
        config_reader=ProcessConfigReader(),
        filters=filters,
        rules=rules,
        hook_services=services,
        journal=Journal(None),
        slots=slots,
        stopping=WorkScope("the benchmark"),
    )
