"""All WorkerPools and WorkerClaims of a cluster, served while the block of `open_pod_pools` runs.

The parts start in this order: first the caches of pods, pools and claims; then a task for each pool; then the controller of
claims. They end in the reverse order: first, no further pods are requested for claims; then every accepted request is answered,
and the results are written. Pods are left as they are for the next daemon. Only one daemon may do this at a time. Even if two
daemons do, no pod is handed out twice, because each claim is a conditional write.
"""

import logging
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Final

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.cluster.watch.informer import Informer, open_informer, wait_listed
from wharfinger.cluster.watch.object_cache import ObjectChange
from wharfinger.formats.json.value import JsonObject, find, find_int, find_object, find_str
from wharfinger.kube.names import GENERATED
from wharfinger.kube.resource import ObjectKey
from wharfinger.pools.pods.claim_controller import ClaimController, claim_key
from wharfinger.pools.pods.pod_pool import PodPool
from wharfinger.pools.pods.pod_state import PodState, kept_of_pod, read_pod
from wharfinger.pools.pods.pool_status import invalid_status
from wharfinger.pools.pods.resources import (
    POD,
    POOL_LABEL,
    WORKER_CLAIM,
    WORKER_POOL,
    PoolSpecError,
    read_pool,
)

log = logging.getLogger(__name__)

CLOSING_S: Final = 15.0
"""The time limit of the shutdown. In this time, claims under way can finish, and results are written to the WorkerClaims."""
SALT_CHARS: Final = 5


def salt() -> str:
    """Return a random part for the names of pods."""
    return "".join(random.choices(GENERATED, k=SALT_CHARS))  # noqa: S311 - a name


class PodPools:
    """The pools of pods, one for each WorkerPool. Made by :func:`open_pod_pools`."""

    def __init__(self, client: ClusterClient, now: Callable[[], datetime], draw: Callable[[], str]) -> None:
        self._client = client
        self._now = now
        self._draw = draw
        self._pools: dict[ObjectKey, PodPool] = {}
        self._pods: dict[ObjectKey, PodState] = {}
        self._of_claim: dict[ObjectKey, dict[str, PodState]] = {}
        self._deleted: set[str] = set()
        self._running: trio.Nursery | None = None
        self._closing = False
        self.claims: ClaimController | None = None
        """The controller of claims; None before it was opened."""

    def pools(self) -> tuple[PodPool, ...]:
        """Return the pools that serve requests now, sorted by namespace and name."""
        return tuple(self._pools[key] for key in sorted(self._pools) if self._pools[key].serves)

    def pool(self, namespace: str, name: str) -> PodPool | None:
        """Return the pool of this name; None if there is no such pool, or if it does not serve."""
        pool = self._any_pool(namespace, name)
        return pool if pool is not None and pool.serves else None

    def _any_pool(self, namespace: str, name: str) -> PodPool | None:
        return self._pools.get(ObjectKey(WORKER_POOL, namespace, name))

    def pods_of(self, claim: ObjectKey) -> tuple[PodState, ...]:
        """Return the pods whose label names a claim, except those whose deletion was accepted."""
        found = self._of_claim.get(claim, {}).values()
        return tuple(pod for pod in found if pod.uid not in self._deleted)

    def deleted(self, pod: PodState) -> None:
        """Record that the deletion of a pod was accepted."""
        if pod.key in self._pods and self._pods[pod.key].uid == pod.uid:
            self._deleted.add(pod.uid)

    # --- pods

    def pod_changed(self, change: ObjectChange) -> None:
        """Process a change of the cache of pods."""
        known = self._pods.get(change.key)
        pod = read_pod(change.object) if change.type is not WatchType.DELETED and change.object is not None else None
        if known is not None and (pod is None or pod.uid != known.uid):
            self._lose(change.key, known)
        if pod is not None:
            self._see(change.key, pod)

    def _lose(self, key: ObjectKey, pod: PodState) -> None:
        del self._pods[key]
        self._deleted.discard(pod.uid)
        if pod.claim:
            self._unlink(pod)
        if (pool := self._any_pool(pod.namespace, pod.pool)) is not None:
            pool.lose(pod.uid)

    def _see(self, key: ObjectKey, pod: PodState) -> None:
        known = self._pods.get(key)
        self._pods[key] = pod
        if known is not None and known.claim and known.claim != pod.claim:
            self._unlink(known)
        if pod.claim:
            owner = claim_key(pod.namespace, pod.claim)
            self._of_claim.setdefault(owner, {})[pod.uid] = pod
            if self.claims is not None:
                self.claims.keys.add(owner)
        if (
            known is not None
            and known.pool != pod.pool
            and (old := self._any_pool(pod.namespace, known.pool)) is not None
        ):
            old.lose(pod.uid)
        if (pool := self._any_pool(pod.namespace, pod.pool)) is not None:
            pool.see(pod)

    def _unlink(self, pod: PodState) -> None:
        owner = claim_key(pod.namespace, pod.claim)
        pods = self._of_claim.get(owner, {})
        pods.pop(pod.uid, None)
        if not pods:
            self._of_claim.pop(owner, None)
        if self.claims is not None:
            self.claims.keys.add(owner)

    # --- pools

    async def follow_pools(self, informer: Informer) -> None:
        """Open, change and close pools as their resources change."""
        with informer.changes() as changes:
            while True:
                for key in sorted(await changes.wait()):
                    await self._reconcile(key, informer.get(key))

    def start(self, nursery: trio.Nursery, claims: ClaimController) -> None:
        """Run pools in ``nursery`` from now on."""
        self._running, self.claims = nursery, claims

    async def close(self) -> None:
        """Answer every accepted request, and return once all results are written. The caller sets a deadline."""
        self._closing = True
        if self.claims is not None:
            self.claims.closing = True
        pools = list(self._pools.values())
        for pool in pools:
            pool.stop()
        for pool in pools:
            await pool.ended.wait()
        if self.claims is not None:
            await self.claims.wait_written()

    async def _reconcile(self, key: ObjectKey, obj: JsonObject | None) -> None:
        if self._closing:
            return
        pool = self._pools.get(key)
        gone = obj is None or find(obj, "metadata", "deletionTimestamp") is not None
        if pool is not None and (gone or find_str(obj, "metadata", "uid") != pool.spec.uid):
            self._close(key, pool)
            pool = None
        if gone or obj is None:
            return
        try:
            spec = read_pool(obj)
        except PoolSpecError as error:
            if pool is None:
                await self._reject(key, obj, str(error))
            else:
                pool.reject(find_int(obj, "metadata", "generation"), str(error))
            return
        if pool is None:
            self._open(
                key, PodPool(self._client, spec, f"{key.name}-{self._draw()}", find_object(obj, "status"), self._now)
            )
        elif spec != pool.spec or pool.invalid:
            pool.use(spec)

    def _open(self, key: ObjectKey, pool: PodPool) -> None:
        self._pools[key] = pool
        for pod in self._pods.values():
            if pod.namespace == key.namespace and pod.pool == key.name:
                pool.see(pod)
        if self._running is not None and self.claims is not None:
            pool.on_serving = partial(self.claims.queue_claims_of, key.namespace, key.name)
            self._running.start_soon(pool.run, name=f"pool {key}")

    def _close(self, key: ObjectKey, pool: PodPool) -> None:
        del self._pools[key]
        pool.stop()

    async def _reject(self, key: ObjectKey, obj: JsonObject, problem: str) -> None:
        """Report that a new WorkerPool cannot be used."""
        written = find_object(obj, "status")
        status = invalid_status(problem, find_int(obj, "metadata", "generation"), written, self._now())
        if status.items() <= written.items():
            return
        try:
            await self._client.merge_patch(key, {"status": status}, subresource="status")
        except ClusterError as error:
            log.info("%s: its status cannot be written: %s", key, error)


@asynccontextmanager
async def open_pod_pools(
    client: ClusterClient, *, now: Callable[[], datetime], draw: Callable[[], str] = salt
) -> AsyncGenerator[PodPools]:
    """Serve all WorkerPools and WorkerClaims while the block runs; the block begins once the caches are filled.

    ``draw`` returns the random part of the names of a pool's pods.
    """
    pools = PodPools(client, now, draw)
    async with (
        open_informer(client, POD, label_selector=POOL_LABEL, keep=kept_of_pod, on_change=pools.pod_changed) as pods,
        open_informer(client, WORKER_POOL) as specs,
        open_informer(client, WORKER_CLAIM) as objects,
    ):
        await wait_listed(pods, specs, objects)
        claims = ClaimController(client, objects, pools, now)
        async with trio.open_nursery() as nursery:
            pools.start(nursery, claims)
            claims.run_in(nursery)
            nursery.start_soon(pools.follow_pools, specs, name="follow WorkerPools")
            yield pools
            with trio.move_on_after(CLOSING_S):
                await pools.close()
            nursery.cancel_scope.cancel(reason="the pools are closed")
