"""The pool of one WorkerPool: its scheduler, its backend, and the trio shell around the sizing machine.

Each event is passed to the machine immediately. Each write that the machine decides on is a task of its own, and its outcome
becomes another event.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Final, TypeAlias, assert_never

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError, ConflictError, NotFoundError
from wharfinger.cluster.api.retrying import is_retryable
from wharfinger.formats.json.value import JsonObject, find_object, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.pools.claims.events import Limits
from wharfinger.pools.claims.metrics import Snapshot
from wharfinger.pools.claims.scheduler import PoolScheduler, Request, open_pool_scheduler
from wharfinger.pools.pods.pod_backend import ClaimedPod, PodBackend
from wharfinger.pools.pods.pod_state import PodState, make_pod, read_pod, retire_patch
from wharfinger.pools.pods.pool_status import PoolNumbers, invalid_status, numbers, pool_status
from wharfinger.pools.pods.resources import POD, ClaimSpec, PoolSpec
from wharfinger.pools.pods.sizing_events import (
    CheckPod,
    DeletePod,
    Demand,
    MakePod,
    MakeUnknown,
    PodChecked,
    PodDoomed,
    PodGone,
    PodMade,
    PodRefused,
    PodSeen,
    RetirePod,
    RetireSettled,
    SizingEffect,
    SizingEvent,
    SpecChanged,
    TimePassed,
    WriteFailed,
)
from wharfinger.pools.pods.sizing_machine import new_sizing_state, next_time, step

log = logging.getLogger(__name__)

LIMITS: Final = Limits(waiting=8192, in_flight=16, attempts=16)
WRITES: Final = 8
"""The limit on the concurrent writes of pods for one pool. Writes for claims are not counted."""
STATUS_S: Final = 1.0
"""The shortest time between two writes of the status."""
STATUS_RETRY_S: Final = 5.0

PodRequest: TypeAlias = Request[ClaimSpec, ClaimedPod]


class PodPool:
    """The pool of one WorkerPool. `run` serves it until `stop`; all other methods are for the trio thread.

    The names of its pods begin with ``prefix``, which has a random part, so that no earlier pool had the same prefix. ``written``
    is the status as it was last written.
    """

    def __init__(
        self, client: ClusterClient, spec: PoolSpec, prefix: str, written: JsonObject, now: Callable[[], datetime]
    ) -> None:
        self.spec = spec
        self.backend = PodBackend(client, spec)
        self.backend.on_claimed = lambda pod: self._step(PodSeen(pod))
        self.backend.on_doomed = lambda uid: self._step(PodDoomed(uid))
        self.ended = trio.Event()
        """An event that is set once the pool is closed, every accepted request is answered, and no write is under way."""
        self.on_serving: Callable[[], None] = lambda: None
        """A function that the pool calls once, when it begins to accept requests."""
        self.invalid = ""
        """The reason why the last specification cannot be used; empty if it can."""
        self._client = client
        self._now = now
        self._state = new_sizing_state(spec, prefix, trio.current_time())
        self._written = written
        self._scheduler: PoolScheduler[ClaimSpec, ClaimedPod] | None = None
        self._work: trio.Nursery | None = None
        self._writes = trio.CapacityLimiter(WRITES)
        self._stop = trio.Event()
        self._changed = trio.Event()
        self._due = trio.Event()
        self._effects: list[SizingEffect] = []

    # --- for the controllers

    def use(self, spec: PoolSpec) -> None:
        """Use this specification of the pool from now on."""
        self.spec, self.invalid = spec, ""
        self.backend.use(spec)
        self._step(SpecChanged(spec))

    def reject(self, generation: int, problem: str) -> None:
        """Report that the new specification cannot be used; the last valid one stays in use."""
        self.spec, self.invalid = replace(self.spec, generation=generation), problem
        self._step(TimePassed())

    def see(self, pod: PodState) -> None:
        """Record a pod of the pool as the cache, or an answer of the API server, shows it."""
        self.backend.see(pod)
        self._step(PodSeen(pod))

    def lose(self, uid: str) -> None:
        """Record that the cache no longer shows a pod."""
        self.backend.lose(uid)
        self._step(PodGone(uid))

    def enqueue(self, request: PodRequest) -> bool:
        """Accept a request, which is then answered exactly once; False if the pool is full, or does not serve now."""
        return self._scheduler is not None and self._scheduler.enqueue(request)

    def withdraw(self, request: PodRequest) -> None:
        """Withdraw a request. A pod that was claimed for it, or is being claimed, is not handed out again."""
        if self._scheduler is not None:
            self._scheduler.withdraw(request)

    def stop(self) -> None:
        """Begin to stop the pool: waiting requests are answered immediately, and claims under way may finish."""
        self._stop.set()

    # --- for inspection

    def numbers(self) -> PoolNumbers:
        """Return the number of the pool's pods in each state."""
        return numbers(self._state, trio.current_time())

    def snapshot(self) -> Snapshot | None:
        """Return the numbers of requests, claims and pods of the pool; None before the pool begins to serve."""
        return self._scheduler.snapshot() if self._scheduler is not None else None

    def position(self, request: PodRequest) -> int:
        """Return the place of a request that waits, 1 for the next one; 0 if it does not wait."""
        return self._scheduler.position(request) if self._scheduler is not None else 0

    @property
    def serves(self) -> bool:
        """True while the pool accepts requests. It may still refuse a request if too many wait."""
        return self._scheduler is not None and not self._stop.is_set()

    @property
    def scheduler(self) -> PoolScheduler[ClaimSpec, ClaimedPod] | None:
        """The scheduler, for its metrics; None until the pool begins to serve."""
        return self._scheduler

    @property
    def replaced(self) -> int:
        """The number of pods that were replaced because they did not become ready."""
        return self._state.replaced

    # --- the shell

    async def run(self) -> None:
        """Serve the pool until `stop`. Call this only once. Pods are left as they are."""
        try:
            async with open_pool_scheduler(self.backend, LIMITS) as self._scheduler:
                self.backend.on_change = self._scheduler.notify_idle
                async with trio.open_nursery() as nursery:
                    self._work = nursery
                    try:
                        nursery.start_soon(self._follow_demand, self._scheduler)
                        nursery.start_soon(self._follow_time)
                        nursery.start_soon(self._keep_status)
                        self.on_serving()
                        await self._stop.wait()
                    finally:  # also if cancelled: the scheduler ends its claims later, and they may still cause events
                        self._work = None
                        nursery.cancel_scope.cancel()
        finally:
            self._work = None
            self.ended.set()

    def _step(self, event: SizingEvent) -> None:
        self._state, effects = step(self._state, event, trio.current_time())
        self._effects += effects
        self._perform()
        self._changed.set()
        self._due.set()

    def _perform(self) -> None:
        """Start a task for each write that the sizing machine has decided on. Do nothing if `run` has not begun yet."""
        if self._work is not None:
            effects, self._effects = self._effects, []
            for effect in effects:
                self._work.start_soon(self._write, effect, name=f"{type(effect).__name__} of {self.spec.key}")

    async def _write(self, effect: SizingEffect) -> None:
        async with self._writes:
            match effect:
                case MakePod():
                    event: SizingEvent | None = await self._make(effect.name)
                case CheckPod():
                    event = await self._check(effect.name)
                case RetirePod():
                    event = await self._retire(effect.pod)
                case DeletePod():
                    event = await self._delete(effect.pod)
                case _:
                    assert_never(effect)
        if event is not None:
            self._step(event)

    async def _make(self, name: str) -> SizingEvent:
        try:
            await self._client.create(make_pod(self.spec, name))
        except ClusterError as error:
            if isinstance(error, ConflictError) and error.reason == "AlreadyExists":
                return PodMade(name)
            log.warning("%s: pod %s: %s", self.spec.key, name, error)
            return MakeUnknown(name, str(error)) if is_retryable(error) else PodRefused(name, str(error))
        return PodMade(name)

    async def _check(self, name: str) -> SizingEvent:
        try:
            pod = read_pod(await self._client.get(ObjectKey(POD, self.spec.namespace, name)))
        except NotFoundError:
            return PodChecked(name, found=False)
        except ClusterError:
            return PodChecked(name, found=True)  # not known; the machine will request this check again
        return PodChecked(name, found=pod is not None and pod.pool_uid == self.spec.uid)

    async def _retire(self, pod: PodState) -> SizingEvent:
        try:
            retired = read_pod(await self._client.merge_patch(pod.key, retire_patch(pod)))
        except NotFoundError:
            return RetireSettled(pod.uid, pod.version)
        except ConflictError as error:
            same = await self._is_unchanged(pod)
            return WriteFailed(pod.uid, str(error)) if same else RetireSettled(pod.uid, pod.version)
        except ClusterError as error:
            return WriteFailed(pod.uid, str(error))
        if retired is not None:
            self.see(retired)
        return RetireSettled(pod.uid, pod.version)

    async def _is_unchanged(self, pod: PodState) -> bool:
        """Return whether the API server still has the version of the pod whose write met a conflict. Return True also if that
        is not known. If the result is True, the caller must not wait until the cache shows a later version.
        """
        try:
            now = read_pod(await self._client.get(pod.key))
        except NotFoundError:
            return False
        except ClusterError:
            return True  # not known; the conditional write can safely be repeated
        return now is not None and now.uid == pod.uid and now.version <= pod.version

    async def _delete(self, pod: PodState) -> SizingEvent | None:
        try:
            await self._client.delete(pod.key, uid=pod.uid)
        except (NotFoundError, ConflictError):
            log.debug("%s is gone", pod.key)
        except ClusterError as error:
            return WriteFailed(pod.uid, str(error))
        self.backend.forget(pod.uid)
        return None

    async def _follow_demand(self, scheduler: PoolScheduler[ClaimSpec, ClaimedPod]) -> None:
        self._step(TimePassed())  # performs the writes that were decided before this nursery existed, too
        while True:
            demand = Demand(scheduler.snapshot().waiting, scheduler.metrics.counters.accepted)
            if demand != Demand(self._state.waiting, self._state.accepted):
                self._step(demand)
            await scheduler.wait_change()

    async def _follow_time(self) -> None:
        while True:
            self._due = trio.Event()
            with trio.move_on_at(next_time(self._state, trio.current_time())):
                await self._due.wait()
                continue
            self._step(TimePassed())

    async def _keep_status(self) -> None:
        while True:
            self._changed = trio.Event()
            pause_s = STATUS_S
            wanted = pool_status(self.numbers(), self.spec.generation, self._written, self._now())
            if self.invalid:
                wanted |= invalid_status(self.invalid, self.spec.generation, self._written, self._now())
            if wanted != self._written and not await self._write_status(wanted):
                pause_s = STATUS_RETRY_S
            await trio.sleep(pause_s)
            await self._changed.wait()

    async def _write_status(self, status: JsonObject) -> bool:
        patch: JsonObject = {"metadata": {"uid": self.spec.uid}, "status": status}
        try:
            answer = await self._client.merge_patch(self.spec.key, patch, subresource="status")
        except ClusterError as error:
            log.info("%s: its status cannot be written: %s", self.spec.key, error)
            self._changed.set()
            return False
        self._written = find_object(answer, "status") if find_str(answer, "metadata", "uid") else status
        return True
