"""The controller of WorkerClaims: the trio shell around :mod:`~wharfinger.pools.pods.claim_machine`.

Everything is level-triggered: each change of a claim, of its pods, of its pool or of its request puts the claim's key into one
queue, and a few tasks each reconcile one key at a time. Between two reconciliations of a claim, the controller remembers the
claim's request, whether its pool has just refused a request, and the version of the claim with the status that was written
last.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol, assert_never

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError, ConflictError, NotFoundError
from wharfinger.cluster.watch.informer import Informer
from wharfinger.cluster.watch.work_queue import WorkQueue
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.pools.claims.events import Answer
from wharfinger.pools.pods.claim_machine import (
    FINAL,
    ClaimFacts,
    ClaimStatus,
    ReleasePods,
    RequestPod,
    RequestState,
    Wait,
    WriteStatus,
    decide,
    read_status,
    status_patch,
)
from wharfinger.pools.pods.pod_backend import NotPermittedError
from wharfinger.pools.pods.pod_pool import PodPool, PodRequest
from wharfinger.pools.pods.pod_state import PodState
from wharfinger.pools.pods.resources import WORKER_CLAIM, ClaimSpec, PoolSpecError, read_claim

log = logging.getLogger(__name__)

WORKERS: Final = 8
WAITED_S: Final = 1.0
"""The time after which the status of a claim reports that the claim waits."""
_ROUNDING_S: Final = 0.01
FULL_S: Final = 1.0
"""The time after which a claim requests a pod again, if the pool was full or the last request failed with conflicts."""


class Pods(Protocol):
    """The interface through which the controller of WorkerClaims finds pools and the pods of claims."""

    def pool(self, namespace: str, name: str) -> PodPool | None:
        """Return the pool of this name; None if there is no such pool, or if it does not serve."""
        ...

    def pods_of(self, claim: ObjectKey) -> tuple[PodState, ...]:
        """Return the pods whose label names a claim, except those whose deletion was accepted."""
        ...

    def deleted(self, pod: PodState) -> None:
        """Record that the deletion of a pod was accepted."""
        ...


@dataclass(slots=True)
class Pending:
    """The request of a claim, and the pool that has the request."""

    uid: str
    pool: PodPool
    request: PodRequest
    since: float


class ClaimController:
    """The controller of WorkerClaims. Any number of tasks may run `work`, which handles the claims in ``keys``."""

    def __init__(self, client: ClusterClient, claims: Informer, pods: Pods, now: Callable[[], datetime]) -> None:
        self.keys: WorkQueue[ObjectKey] = WorkQueue()
        self.closing = False
        """True if the controller requests no more pods."""
        self._client = client
        self._claims = claims
        self._pods = pods
        self._now = now
        self._pending: dict[ObjectKey, Pending] = {}
        self._full: set[ObjectKey] = set()
        self._written: dict[ObjectKey, int] = {}
        self._reconciled = trio.Event()
        self._watchers: trio.Nursery | None = None

    def pending(self) -> Mapping[ObjectKey, Pending]:
        """Return the requests for pods that still wait, or whose result is not yet written to the claim."""
        return self._pending

    async def wait_written(self) -> None:
        """Wait until each claim that got a pod has a status that names the pod."""
        while any(each.request.answer is Answer.CLAIMED for each in self._pending.values()):
            self._reconciled = trio.Event()
            await self._reconciled.wait()

    def queue_claims_of(self, namespace: str, name: str) -> None:
        """Queue the claims of a pool that have no final status, because the pool may serve them now."""
        objects = self._claims.objects()
        of_pool = (
            key for key, obj in objects.items() if key.namespace == namespace and find(obj, "spec", "pool") == name
        )
        for key in sorted(of_pool, key=self._age):
            if not _is_final(objects[key]):
                self.keys.add(key)

    async def follow_claims(self) -> None:
        """Queue every claim that changes."""
        with self._claims.changes() as changes:
            while True:
                for key in sorted(await changes.wait(), key=self._age):
                    self.keys.add(key)

    def _age(self, key: ObjectKey) -> tuple[str, ObjectKey]:
        """Return a sort key: the oldest claims come first, and claims of the same second are sorted by name."""
        return find_str(self._claims.get(key), "metadata", "creationTimestamp"), key

    async def work(self) -> None:
        """Reconcile one claim after the other, until cancelled."""
        while True:
            key = await self.keys.take()
            try:
                await self.reconcile(key)
            except (ClusterError, FormatError) as error:
                pause_s = self.keys.failed(key)
                log.info("%s: %s; retrying in %.1f s", key, error, pause_s)
            except Exception:
                # The outermost guard: a defect triggered by one claim must not end the daemon for all others.
                log.exception("%s: a bug in Wharfinger: the reconciliation failed; it is retried", key)
                self.keys.failed(key)
            else:
                self.keys.succeeded(key)
            finally:
                self.keys.done(key)
                self._reconciled.set()

    async def reconcile(self, key: ObjectKey) -> None:
        """Perform the next step for one claim. Raises ClusterError and ShapeError; repeating the call is always safe."""
        obj = self._claims.get(key)
        if self._is_behind(key, obj):
            return  # the cache does not show the last written status yet
        known, spec = self._known(key, obj)
        step = decide(known)
        match step:
            case RequestPod():
                if spec is not None:
                    self._ask(key, spec)
            case WriteStatus():
                if obj is not None:
                    await self._write(key, obj, step.status)
            case ReleasePods():
                await self._give_up(key, step)
            case Wait():
                await trio.lowlevel.checkpoint()
                if not known.uid or known.written.phase in FINAL:
                    self._pending.pop(key, None)
                elif spec is not None and not known.leaving:
                    self._queue_later(key, known, spec)
            case _:
                assert_never(step)

    def _queue_later(self, key: ObjectKey, known: ClaimFacts, spec: ClaimSpec) -> None:
        """Queue a waiting claim again for the time when it needs work even if nothing changes: when its wait has to be
        reported, or when it expires. If the key is queued earlier, this later time is dropped.
        """
        asked = known.asked
        if asked is not None and asked.answer is None and not asked.waited:
            self.keys.add_later(key, WAITED_S + _ROUNDING_S)
        if asked is None and spec.expires is not None:
            left_s = (spec.expires - self._now()).total_seconds()
            self.keys.add_later(key, max(left_s, 0.0) + _ROUNDING_S)

    def known(self, key: ObjectKey) -> ClaimFacts | None:
        """Return the known facts about a claim, for an explanation; None if there is no such claim."""
        obj = self._claims.get(key)
        return self._known(key, obj)[0] if obj is not None else None

    def _known(self, key: ObjectKey, obj: JsonObject | None) -> tuple[ClaimFacts, ClaimSpec | None]:
        pods = self._pods.pods_of(key)
        pending = self._pending.get(key)
        if obj is None:
            return ClaimFacts("", pods=pods, asked=_asked(pending)), None
        uid = find_str(obj, "metadata", "uid")
        if pending is not None and pending.uid != uid:
            self._withdraw(key)  # the request of an earlier claim of this name, whose pod this claim must not get
            del self._pending[key]
            pending = None
        problem, spec = "", None
        try:
            spec = read_claim(obj)
        except PoolSpecError as error:
            problem = str(error)
        expired = spec is not None and spec.expires is not None and spec.expires <= self._now()
        pool = self._pods.pool(key.namespace, spec.pool) if spec is not None else None
        known = ClaimFacts(
            uid=uid,
            leaving=find(obj, "metadata", "deletionTimestamp") is not None,
            written=read_status(obj),
            pods=pods,
            asked=_asked(pending),
            problem=problem,
            expired=expired,
            pool=find_str(obj, "spec", "pool") if spec is not None else "",
            open=pool is not None,
            full=key in self._full,
        )
        return known, spec

    def _is_behind(self, key: ObjectKey, obj: JsonObject | None) -> bool:
        written = self._written.get(key, 0)
        if obj is not None and _version(obj) < written:
            return True
        self._written.pop(key, None)
        return False

    # --- what is done

    def _ask(self, key: ObjectKey, spec: ClaimSpec) -> None:
        pool = self._pods.pool(key.namespace, spec.pool)
        if self.closing or pool is None:
            return
        request = PodRequest(spec)
        if spec.expires is not None:
            request.deadline = trio.current_time() + max((spec.expires - self._now()).total_seconds(), 0.0)
        if pool.enqueue(request):
            self._pending[key] = Pending(spec.uid, pool, request, trio.current_time())
            self._watch(key, request)
            self.keys.add_later(key, WAITED_S + _ROUNDING_S)
            return
        self._full.add(key)
        self.keys.add(key)  # so that the claim's status reports that the pool is full
        self._tasks().start_soon(self._retry, key)

    def _watch(self, key: ObjectKey, request: PodRequest) -> None:
        async def watch() -> None:
            await request.answered.wait()
            if _answer(request) is Answer.CONFLICTED:
                await trio.sleep(FULL_S)  # other clients keep changing the pods, or the daemon has no permission now
            self.keys.add(key)

        self._tasks().start_soon(watch, name=f"request of {key}")

    async def _retry(self, key: ObjectKey) -> None:
        await trio.sleep(FULL_S)
        self._full.discard(key)
        self.keys.add(key)

    async def _write(self, key: ObjectKey, obj: JsonObject, status: ClaimStatus) -> None:
        version, uid = find_str(obj, "metadata", "resourceVersion"), find_str(obj, "metadata", "uid")
        patch = status_patch(status, uid, version, self._now())
        try:
            answer = await self._client.merge_patch(key, patch, subresource="status")
        except NotFoundError:
            return  # the cache will show that the claim was deleted
        self._written[key] = _version(answer)

    async def _give_up(self, key: ObjectKey, step: ReleasePods) -> None:
        if step.withdraw:
            self._withdraw(key)
        live = await self._live(key) if step.pods else None
        for pod in step.pods:
            if live is None or not _needs(live, pod):
                await self._delete(pod)
        if step.withdraw:
            self._pending.pop(key, None)

    async def _live(self, key: ObjectKey) -> JsonObject | None:
        """Read the claim from the API server, because the cache may be older than the pods. Return None if the claim is
        gone.
        """
        try:
            return await self._client.get(key)
        except NotFoundError:
            return None

    async def _delete(self, pod: PodState) -> None:
        try:
            await self._client.delete(pod.key, uid=pod.uid)
        except (NotFoundError, ConflictError):
            log.debug("%s is gone", pod.key)
        self._pods.deleted(pod)

    def _withdraw(self, key: ObjectKey) -> None:
        pending = self._pending.get(key)
        if pending is not None and pending.request.answer is None:
            pending.pool.withdraw(pending.request)

    def _tasks(self) -> trio.Nursery:
        if self._watchers is None:
            raise AssertionError("requests can be made only after `run_in`, which sets the nursery")
        return self._watchers

    def run_in(self, nursery: trio.Nursery) -> None:
        """Start the tasks of the controller in ``nursery``; the tasks that watch requests run there, too."""
        self._watchers = nursery
        nursery.start_soon(self.follow_claims, name="follow WorkerClaims")
        for number in range(WORKERS):
            nursery.start_soon(self.work, name=f"WorkerClaims {number}")


def claim_key(namespace: str, name: str) -> ObjectKey:
    """Return the key of a WorkerClaim."""
    return ObjectKey(WORKER_CLAIM, namespace, name)


def _asked(pending: Pending | None) -> RequestState | None:
    if pending is None:
        return None
    request = pending.request
    waited = trio.current_time() - pending.since >= WAITED_S
    return RequestState(_answer(request), request.result, str(request.error or ""), waited, request.uid)


def _answer(request: PodRequest) -> Answer | None:
    """Return the answer to a request; None if there is no answer yet. If the request failed because the daemon has no
    permission to change pods now, the answer is CONFLICTED instead of FAILED, so that a pod is requested again later.
    """
    refused = request.answer is Answer.FAILED and isinstance(request.error, NotPermittedError)
    return Answer.CONFLICTED if refused else request.answer


def _is_final(obj: JsonObject) -> bool:
    return find(obj, "status", "phase") in FINAL


def _needs(obj: JsonObject, pod: PodState) -> bool:
    """Return whether a pod must be kept for a claim: the claim is bound to it, or may be soon."""
    if find_str(obj, "metadata", "uid") != pod.claim_uid or find(obj, "metadata", "deletionTimestamp") is not None:
        return False
    return not _is_final(obj) or find(obj, "status", "podUID") == pod.uid


def _version(obj: JsonObject) -> int:
    version = find_str(obj, "metadata", "resourceVersion")
    return int(version) if version.isascii() and version.isdigit() else 0
