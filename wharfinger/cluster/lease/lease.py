"""A Lease that is held for as long as a block runs, so that at most one process works under it.

    async with open_lease(client, "wharfinger-system", "wharfinger", identity, now=now, waiting=log.info) as lease:
        ...   # lease.holder goes into every release record that is written here

The block begins when the Lease is held. Each holder has a number, its *fence*, which is greater than the fence of the holder
before it. If the Lease cannot be renewed in time, or is taken or deleted, the block is cancelled and LeaseLostError is raised.
The next holder has to wait until the Lease was not renewed for its duration. At a clean end the Lease is given back, so that the
next holder need not wait.

A Lease that this identity held before a restart is acquired immediately. Therefore, no two processes may have the same
``identity`` at the same time (it belongs to a state folder that only one process can lock). The state machine is
:mod:`~wharfinger.cluster.lease.machine`.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final, assert_never

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError, ConflictError, NotFoundError, UnknownKindError
from wharfinger.cluster.lease import machine as core
from wharfinger.cluster.lease.fence import Fence
from wharfinger.cluster.lease.fencing import Holder
from wharfinger.cluster.lease.record import LEASE_API, LeaseRecord, lease_spec, read_lease
from wharfinger.formats.json.value import JsonObject, ShapeError
from wharfinger.kube.resource import ObjectKey, ResourceType

GIVE_BACK_S: Final = 2.0
"""The time limit for releasing the Lease when the holder stops."""
RETRY_S: Final = 0.5
"""The interval at which a candidate reads the Lease; a takeover is late by at most this time."""
DEADLINE_SHARE: Final = 2 / 3
"""A holder that cannot renew the Lease gives up after this fraction of the Lease's duration. Kubernetes' own components use the
same fraction.
"""


class LeaseLostError(ClusterError):
    """Another daemon holds the Lease, or may hold it soon; work that needs the Lease must stop."""


class Lease:
    """A held Lease. Made by :func:`open_lease`. ``lost`` is set when the Lease is not ours any more."""

    def __init__(self, key: ObjectKey, record: LeaseRecord) -> None:
        self.identity = record.holder
        self.fence = record.fence
        self.holder = Holder(record.holder, record.fence, f"{key.namespace}/{key.name}/{record.uid}")
        self.lost = trio.Event()


@asynccontextmanager
async def open_lease(
    client: ClusterClient,
    namespace: str,
    name: str,
    identity: str,
    *,
    duration_s: float = 15.0,
    renew_s: float = 5.0,
    now: Callable[[], datetime],
    waiting: Callable[[str], None] = lambda _: None,
    fence: Fence | None = None,
    seen: Callable[[LeaseRecord], None] = lambda _: None,
) -> AsyncGenerator[Lease, None]:
    """Acquire the Lease, however long that takes, and hold it for the block.

    ``waiting`` is called with the reason for the wait (the present holder, or an error) each time the reason changes.

    ``fence`` permits writes while the Lease is held. ``seen`` is called with each reading of the Lease.

    Raises LeaseLostError when the Lease was lost, UnknownKindError if the server has no Leases; any other error is retried.
    """
    retry_s = min(RETRY_S, renew_s)
    times = core.LeaseTimes(duration_s, duration_s * DEADLINE_SHARE, renew_s, retry_s)
    key = ObjectKey(await _lease_type(client, retry_s, waiting), namespace, name)
    keeper = _Keeper(client, key, core.LeaseMachine(identity, times), now, waiting, fence or Fence(), seen)
    lease = Lease(key, await keeper.acquire())
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(keeper.keep, lease, nursery.cancel_scope, name=f"lease {namespace}/{name}")
            yield lease
            nursery.cancel_scope.cancel(reason="the Lease is not needed any more")
    finally:
        with trio.move_on_after(GIVE_BACK_S, shield=True):
            await keeper.give_back()
    if lease.lost.is_set():
        raise LeaseLostError(
            f"Lease {namespace}/{name}: {identity} does not hold it any more: {keeper.reason}; "
            "running work was stopped, and continues when a daemon is started again"
        )


async def _lease_type(client: ClusterClient, retry_s: float, waiting: Callable[[str], None]) -> ResourceType:
    while True:
        try:
            return await client.resource_type(*LEASE_API)
        except UnknownKindError:
            raise
        except (ClusterError, ShapeError) as error:
            waiting(f"Leases: not discovered yet: {error}")
        await trio.sleep(retry_s)


class _Keeper:
    """The shell of the state machine: it performs the effects, such as reads and writes of the Lease."""

    def __init__(
        self,
        client: ClusterClient,
        key: ObjectKey,
        machine: core.LeaseMachine,
        now: Callable[[], datetime],
        waiting: Callable[[str], None],
        fence: Fence,
        seen: Callable[[LeaseRecord], None],
    ) -> None:
        self._client = client
        self._key = key
        self._machine = machine
        self._now = now
        self._waiting = waiting
        self._fence = fence
        self._seen = seen
        self._told = ""
        self._sent = fence.moment()
        """The time at which the last write of the Lease began, on both clocks of the fence."""
        self._state: core.State
        self._effect: core.Effect
        self._state, self._effect = core.START

    @property
    def reason(self) -> str:
        """Return why the Lease is lost; "" if it is not lost, or was given back."""
        return self._state.reason if isinstance(self._state, core.Over) else ""

    async def acquire(self) -> LeaseRecord:
        while not isinstance(self._state, core.Held):
            event = await self._perform()
            self._step(event)
            self._tell(event)
        return self._state.record

    async def keep(self, lease: Lease, block: trio.CancelScope) -> None:
        """Renew the Lease until it is lost, and then cancel the block."""
        while isinstance(self._state, core.Held):
            event: core.Event = core.Failed("no answer in time")
            with trio.CancelScope(deadline=self._state.good_until):
                event = await self._perform()
            self._step(event)
        lease.lost.set()
        block.cancel(reason=f"the Lease is lost: {self.reason}")

    async def give_back(self) -> None:
        """Give the Lease back if it is still ours. The result of a request that is under way is ignored."""
        self._step(core.Leave())
        if isinstance(self._state, core.Leaving):
            self._step(await self._perform())

    def _step(self, event: core.Event) -> None:
        self._state, self._effect = self._machine.step(self._state, event, trio.current_time())
        if isinstance(self._state, core.Held):
            self._fence.permit(self._state.good_until, self._sent)
        else:
            self._fence.close(self.reason or "it is not held")
        if isinstance(event, core.Read | core.Written) and event.record is not None:
            self._seen(event.record)

    def _tell(self, event: core.Event) -> None:
        text = ""
        if isinstance(event, core.Failed):
            text = event.why
        elif isinstance(self._state, core.Waiting) and self._state.seen is not None:
            record = self._state.seen.record
            text = f"{record.holder or 'no daemon'} holds it" if record else "it was deleted"
        if text and text != self._told:
            self._waiting(f"Lease {self._key.namespace}/{self._key.name}: not acquired yet: {text}")
        self._told = text or self._told

    async def _perform(self) -> core.Event:
        effect = self._effect
        match effect:
            case core.Pause(delay_s):
                await trio.sleep(delay_s)
                return core.Woke()
            case core.Look():
                return await self._attempt(self._look)
            case core.Write():
                return await self._attempt(lambda: self._write(effect))
            case core.Stop():
                raise AssertionError("an action was requested of a Lease that was lost or released")
            case _:
                assert_never(effect)

    async def _attempt(self, act: Callable[[], Awaitable[core.Event]]) -> core.Event:
        """Make one request, with a time limit that leaves time for further requests before the deadline."""
        times = self._machine.times
        limit_s = (times.deadline_s - times.renew_s) / 2
        try:
            with trio.fail_after(limit_s):
                return await act()
        except trio.TooSlowError:
            return core.Failed(f"no answer within {limit_s:g} seconds")
        except (ClusterError, ShapeError) as error:
            return core.Failed(str(error))

    async def _look(self) -> core.Event:
        try:
            return core.Read(read_lease(await self._client.get(self._key)))
        except NotFoundError:
            return core.Read(None)

    async def _write(self, effect: core.Write) -> core.Event:
        begun = trio.current_time()
        self._sent = self._fence.moment()
        spec = lease_spec(effect.claim, effect.before, self._now())
        try:
            return core.Written(read_lease(await self._put(spec, effect.before)), begun)
        except ConflictError:
            return core.Refused()
        except NotFoundError:
            if effect.before is None:
                raise  # a create fails like this if the namespace is missing
            return core.Refused()

    async def _put(self, spec: JsonObject, before: LeaseRecord | None) -> JsonObject:
        if before is None:
            metadata: JsonObject = {"name": self._key.name, "namespace": self._key.namespace}
            api_version, kind = LEASE_API
            return await self._client.create(
                {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
            )
        # A patch keeps what others wrote on the Lease (labels, an owner). The uid excludes another Lease of this name.
        metadata = {"resourceVersion": before.version, "uid": before.uid}
        return await self._client.merge_patch(self._key, {"metadata": metadata, "spec": spec})
