"""A world for runtime tests: a control plane in this process, a real registry, real helm, a real store on disk.

Only the cluster is not across a socket. `until` waits for what a person would wait for, by watching.
"""

import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import trio

from tests.packages.charts import chart
from tests.registry_server import open_registry_server
from tests.runtime.objects import application, repository
from wharfinger.cluster.client import ClusterClient
from wharfinger.cluster.connection import Connection, bearer
from wharfinger.cluster.control_plane.service import LOCAL, open_control_plane
from wharfinger.cluster.errors import NotFoundError
from wharfinger.cluster.http_client import HttpClusterClient, open_client
from wharfinger.cluster.informer import Informer, open_informer
from wharfinger.cluster.release_engine import ReleaseEngine
from wharfinger.cluster.resource import ObjectKey
from wharfinger.formats.json_value import JsonObject, find_int, find_object, find_str
from wharfinger.packages.address import RegistryAddress, RepositoryAddress
from wharfinger.packages.disk_store import open_store
from wharfinger.packages.helm_renderer import HelmRenderer
from wharfinger.packages.oci_registry import open_registry
from wharfinger.packages.pusher import push_chart
from wharfinger.packages.registry import Registry
from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.controller import open_controller
from wharfinger.runtime.own_crds import ensure_crds
from wharfinger.runtime.pipeline import Tools
from wharfinger.runtime.resources import APPLICATION
from wharfinger.runtime.runtime import Runtime, open_runtime
from wharfinger.runtime.work_keys import WorkKeys

PATIENCE_S = 60


@dataclass(slots=True)
class World:
    """What a test holds."""

    folder: Path
    address: RegistryAddress
    client: HttpClusterClient
    applications: Informer
    runtime: Runtime
    downloads: list[str]
    generations: dict[tuple[str, str], int] = field(default_factory=dict)

    async def push(self, name: str, version: str, files: Mapping[str, str] | None = None) -> None:
        """Build a chart and push it as ``packages/<name>:<version>``."""
        folder = chart(self.folder / f"{name}-{version}", name, version, dict(files or {}))
        async with open_registry(self.address, scheme="http") as registry:
            await push_chart(folder, registry, f"packages/{name}", version)

    async def repository(self, name: str = "default") -> None:
        """A PackageRepository that names the registry."""
        await self.client.create(repository(f"{self.address}/packages", name=name))

    async def create(
        self,
        namespace: str,
        name: str,
        *,
        package: str = "web",
        version: str = "1.0.0",
        settings: JsonObject | None = None,
    ) -> None:
        """An Application."""
        obj = application(namespace, name, package=package, version=version, settings=settings)
        find_object(obj, "metadata").pop("uid")
        find_object(obj, "metadata").pop("generation")
        await self.client.create(obj)

    async def change(self, namespace: str, name: str, spec: JsonObject) -> None:
        """A merge patch of its spec; `until_state` then looks at nothing older."""
        changed = await self.client.merge_patch(ObjectKey(APPLICATION, namespace, name), {"spec": spec})
        self.generations[(namespace, name)] = find_int(changed, "metadata", "generation")

    async def delete(self, namespace: str, name: str) -> None:
        """Ask for its deletion."""
        await self.client.delete(ObjectKey(APPLICATION, namespace, name))

    async def until(self, namespace: str, name: str, holds: Callable[[JsonObject], bool]) -> JsonObject:
        """Wait until the Application is as wanted; the error shows how it was last."""
        key = ObjectKey(APPLICATION, namespace, name)
        last: JsonObject | None = None
        with trio.move_on_after(PATIENCE_S), self.applications.changes() as changes:
            while True:
                last = self.applications.get(key)
                if last is not None and holds(last):
                    return last
                await changes.wait()
        raise AssertionError(f"{namespace}/{name} did not become as wanted; last: {last}")

    async def until_state(self, namespace: str, name: str, state: str) -> JsonObject:
        """Wait for a summary state of the current generation."""

        least = self.generations.get((namespace, name), 1)

        def holds(obj: JsonObject) -> bool:
            seen = find_int(obj, "status", "observedGeneration")
            return find_str(obj, "status", "summary", "state") == state and seen >= least

        return await self.until(namespace, name, holds)

    async def until_gone(self, namespace: str, name: str) -> None:
        """Wait until the object is gone."""
        key = ObjectKey(APPLICATION, namespace, name)
        with trio.fail_after(PATIENCE_S), self.applications.changes() as changes:
            while self.applications.get(key) is not None:
                await changes.wait()

    async def config_map(self, namespace: str, name: str) -> JsonObject | None:
        """A ConfigMap that a chart brings, or None."""
        resource = await self.client.resource_type("v1", "ConfigMap")
        try:
            return await self.client.get(ObjectKey(resource, namespace, name))
        except NotFoundError:
            return None


@asynccontextmanager
async def open_world(
    folder: Path, through: Callable[[ClusterClient], ClusterClient] = lambda client: client
) -> AsyncIterator[World]:
    """Everything up, the namespace ``prod`` there, nothing installed. The controller's calls go ``through`` a wrapper."""
    helm = shutil.which("helm")
    assert helm is not None, "helm is not on PATH: `make setup` brings it"
    keys = WorkKeys()
    downloads: list[str] = []

    def open_counted(address: RepositoryAddress) -> AbstractAsyncContextManager[Registry]:
        downloads.append(str(address))
        return open_registry(address.registry, scheme=address.scheme)

    async with (
        open_registry_server(folder) as address,
        open_control_plane() as control_plane,
        open_client(Connection(LOCAL, bearer("")), transport=control_plane.transport()) as client,
        open_store(folder / "state") as store,
    ):
        await ensure_crds(client, "wharfinger")
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod"}})
        tools = Tools(
            open_registry=open_counted,
            store=store,
            renderer=HelmRenderer(Path(helm), folder / "scratch"),
            cluster=client,
            releases=ReleaseEngine(client, holder="wharfinger"),
            holder="wharfinger",
            downloads=trio.CapacityLimiter(2),
            stopping=WorkScope("the world"),
        )
        async with (
            open_runtime(tools, lambda: datetime.now(UTC), keys.add) as runtime,
            open_controller(through(client), runtime, keys),
            open_informer(client, APPLICATION) as applications,
        ):
            await applications.wait_synced()
            yield World(folder, address, client, applications, runtime, downloads)
