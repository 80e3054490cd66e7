"""Helpers for tests of pod pools: a control plane in memory, pools and claims, and functions that wait for a state."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.http_client import open_client
from wharfinger.cluster.api.http_session import ClientOptions
from wharfinger.cluster.watch.informer import open_informer
from wharfinger.cluster.watch.object_cache import ObjectChange
from wharfinger.control_plane.faults.rule import Rule
from wharfinger.control_plane.service import LOCAL, ControlPlane, open_control_plane
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_object, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType, name_of
from wharfinger.pools.pods.claim_machine import FINAL
from wharfinger.pools.pods.pod_backend import PodBackend
from wharfinger.pools.pods.pod_pools import PodPools, open_pod_pools
from wharfinger.pools.pods.pod_state import make_pod, read_pod
from wharfinger.pools.pods.resources import POD, POOL_LABEL, WORKER_CLAIM, WORKER_POOL, read_pool
from wharfinger.runtime.resources.custom_resources import ensure_crds

NAMESPACE = "default"
PATIENCE_S = 900.0
"""The limit of each wait, in seconds; most waits use the simulated clock."""
CONTAINERS: list[JsonValue] = [{"name": "main", "image": "busybox:1"}, {"name": "side", "image": "side:1"}]
OTHERS = ClientOptions(user_agent="somebody/else", random=lambda: 0.0)


def pool_object(name: str = "workers", /, **spec: JsonValue) -> JsonObject:
    template: JsonObject = {"metadata": {"labels": {"app": "worker"}}, "spec": {"containers": CONTAINERS}}
    return {
        "apiVersion": WORKER_POOL.api_version,
        "kind": WORKER_POOL.kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"template": template, **spec},
    }


def claim_object(name: str, pool: str = "workers", /, **spec: JsonValue) -> JsonObject:
    return {
        "apiVersion": WORKER_CLAIM.api_version,
        "kind": WORKER_CLAIM.kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"pool": pool, **spec},
    }


def key_of(resource: ResourceType, name: str) -> ObjectKey:
    return ObjectKey(resource, NAMESPACE, name)


@dataclass
class Clients:
    """Two clients of a control plane: ``client`` is that of the daemon, and ``user`` has no faults."""

    user: ClusterClient
    client: ClusterClient

    async def pods(self) -> list[JsonObject]:
        return [*(await self.user.list(POD, NAMESPACE)).items]

    async def claims(self) -> dict[str, JsonObject]:
        return {name_of(each): find_object(each, "status") for each in (await self.user.list(WORKER_CLAIM)).items}

    async def claim(self, name: str) -> JsonObject:
        return await self.user.get(key_of(WORKER_CLAIM, name))

    async def until(self, resource: ResourceType, holds: Callable[[Sequence[JsonObject]], bool]) -> None:
        """Wait until the objects of a kind satisfy a condition."""
        items: Sequence[JsonObject] = ()
        with trio.move_on_after(PATIENCE_S):
            while True:
                listed = await self.user.list(resource, NAMESPACE)
                if holds(items := listed.items):
                    return
                async with self.user.watch(resource, NAMESPACE, resource_version=listed.resource_version) as events:
                    async for _ in events:
                        break
        found = [{"name": name_of(each), "status": find(each, "status")} for each in items]
        raise AssertionError(f"after {PATIENCE_S:g} s: {found}")

    async def until_ready(self, count: int, name: str = "workers") -> None:
        """Wait until the status of a pool has this number of ready idle pods."""
        await self.until(
            WORKER_POOL,
            lambda pools: any(name_of(each) == name and find(each, "status", "ready") == count for each in pools),
        )

    async def until_finished(self, *names: str) -> dict[str, JsonObject]:
        """Wait until these claims have a final status, and return the status of each claim by its name."""
        await self.until(
            WORKER_CLAIM,
            lambda claims: {name_of(each) for each in claims if find(each, "status", "phase") in FINAL} >= set(names),
        )
        return {name: status for name, status in (await self.claims()).items() if name in names}


@dataclass
class Cluster(Clients):
    """A control plane in memory, and its clients."""

    plane: ControlPlane


@asynccontextmanager
async def open_cluster(*faults: Rule, seed: int = 0) -> AsyncGenerator[Cluster]:
    """Open a control plane with its controllers. ``faults`` are rules by which requests fail. They should select requests with
    the user agent ``wharfinger*``, so that only the daemon's client has faults.
    """
    async with (
        open_control_plane(simulate=True, faults=faults, fault_seed=seed) as plane,
        open_client(Connection(LOCAL), transport=plane.transport(), options=OTHERS) as user,
        open_client(
            Connection(LOCAL), transport=plane.transport(), options=ClientOptions(random=lambda: 0.0)
        ) as client,
    ):
        await ensure_crds(user, "wharfinger", worker_pools=True)
        yield Cluster(user, client, plane)


@asynccontextmanager
async def open_pools(cluster: Cluster, draw: str = "abcde") -> AsyncIterator[PodPools]:
    """Open the pod pools of a daemon on a cluster."""
    async with open_pod_pools(cluster.client, now=lambda: datetime.now(UTC), draw=lambda: draw) as pools:
        yield pools


@asynccontextmanager
async def open_second(cluster: Cluster) -> AsyncIterator[PodPools]:
    """Open the pod pools of a second daemon, which has another user agent."""
    options = ClientOptions(user_agent="second/1", random=lambda: 0.0)
    async with (
        open_client(Connection(LOCAL), transport=cluster.plane.transport(), options=options) as client,
        open_pools(replace(cluster, client=client), "other") as pools,
    ):
        yield pools


@asynccontextmanager
async def open_backend(cluster: Clients, count: int = 3, **spec: JsonValue) -> AsyncGenerator[PodBackend]:
    """Open a backend with this number of idle pods, and an informer that feeds it."""
    pool = read_pool(
        await cluster.user.create(pool_object(**spec))
    )  # The pool object must exist, because its pods would otherwise be garbage-collected.
    backend = PodBackend(cluster.client, pool)
    waiting, ready = trio.Event(), set[str]()

    def changed(change: ObjectChange) -> None:
        pod = read_pod(change.object) if change.object is not None else None
        if pod is None:
            return
        if change.type == "DELETED":
            backend.lose(pod.uid)
            return
        backend.see(pod)
        if pod.ready:
            ready.add(pod.uid)
        if len(ready) == count:
            waiting.set()

    for number in range(count):
        await cluster.user.create(make_pod(pool, f"workers-{number}"))
    async with open_informer(cluster.client, POD, label_selector=POOL_LABEL, on_change=changed):
        await waiting.wait()
        yield backend


def claimed(pods: Sequence[JsonObject]) -> dict[str, str]:
    """Return the name of the claim of each claimed pod, by the pod's uid."""
    found = {
        find_str(pod, "metadata", "uid"): find_str(pod, "metadata", "labels", "wharfinger.dev/claim") for pod in pods
    }
    return {uid: claim for uid, claim in found.items() if claim}


def images(pod: JsonObject) -> list[str]:
    return [find_str(one, "image") for one in find_list(pod, "spec", "containers")]


async def settled() -> None:
    await trio.testing.wait_all_tasks_blocked()
