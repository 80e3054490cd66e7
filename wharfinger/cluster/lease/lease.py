"""Hold a Lease for as long as a block runs: at most one daemon of a cluster is at work, and each that comes has a greater fence.

    async with open_lease(client, "wharfinger-system", "wharfinger", identity, now=now, waiting=log.info) as lease:
        ...   # lease.holder goes into every release record that is written here

The block begins when the Lease is held. Where it cannot be renewed in time, or is taken or deleted, the block is cancelled and
LeaseLostError is raised: whoever takes over then waits no more than the Lease was granted for. On a clean end it is given back,
so that the next one need not wait at all.

``identity`` must be one that no two processes have at once (of a state folder that only one can lock): its earlier life's Lease
is taken over at once. The machine is :mod:`~wharfinger.cluster.lease.machine`.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final, assert_never

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError, ConflictError, NotFoundError, UnknownKindError
from wharfinger.cluster.lease import machine as core
from wharfinger.cluster.lease.fencing import Holder
from wharfinger.cluster.lease.record import LEASE_API, LeaseRecord, lease_spec, read_lease
from wharfinger.formats.json.value import JsonObject, ShapeError
from wharfinger.kube.resource import ObjectKey, ResourceType

GIVE_BACK_S: Final = 2.0
"""How long giving it back may take."""
DEADLINE_SHARE: Final = 2 / 3
"""Of the duration: when a holder that cannot renew stops to believe in it, as in Kubernetes' own components."""


class LeaseLostError(ClusterError):
    """The Lease is somebody else's, or may soon be; what was done under it is over."""


class Lease:
    """Made by :func:`open_lease`. ``lost`` is set when it is not ours any more."""

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
) -> AsyncGenerator[Lease, None]:
    """Wait until the Lease is held, and hold it. ``waiting`` is told, each time it changes, who has it or what is wrong.

    Raises LeaseLostError when it was lost, UnknownKindError where the server has no Leases; any other trouble is tried again.
    """
    retry_s = min(1.0, renew_s)
    times = core.LeaseTimes(duration_s, duration_s * DEADLINE_SHARE, renew_s, retry_s)
    key = ObjectKey(await _lease_type(client, retry_s, waiting), namespace, name)
    keeper = _Keeper(client, key, core.LeaseMachine(identity, times), now, waiting)
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
            "what was under way was ended, and goes on when it is held again"
        )


async def _lease_type(client: ClusterClient, retry_s: float, waiting: Callable[[str], None]) -> ResourceType:
    while True:
        try:
            return await client.resource_type(*LEASE_API)
        except UnknownKindError:
            raise
        except (ClusterError, ShapeError) as error:
            waiting(f"Leases: not looked up yet: {error}")
        await trio.sleep(retry_s)


class _Keeper:
    """Performs what the machine asks for."""

    def __init__(
        self,
        client: ClusterClient,
        key: ObjectKey,
        machine: core.LeaseMachine,
        now: Callable[[], datetime],
        waiting: Callable[[str], None],
    ) -> None:
        self._client = client
        self._key = key
        self._machine = machine
        self._now = now
        self._waiting = waiting
        self._told = ""
        self._state: core.State
        self._effect: core.Effect
        self._state, self._effect = core.START

    @property
    def reason(self) -> str:
        """Why it is over."""
        return self._state.reason if isinstance(self._state, core.Over) else ""

    async def acquire(self) -> LeaseRecord:
        while not isinstance(self._state, core.Held):
            event = await self._perform()
            self._step(event)
            self._tell(event)
        return self._state.record

    async def keep(self, lease: Lease, block: trio.CancelScope) -> None:
        """Renew it until it is lost, and then cancel the block."""
        while isinstance(self._state, core.Held):
            event: core.Event = core.Failed("no answer in time")
            with trio.CancelScope(deadline=self._state.good_until):
                event = await self._perform()
            self._step(event)
        lease.lost.set()
        block.cancel(reason=f"the Lease is lost: {self.reason}")

    async def give_back(self) -> None:
        """If it is still ours. An action that was under way is over: its outcome does not count."""
        self._step(core.Leave())
        if isinstance(self._state, core.Leaving):
            self._step(await self._perform())

    def _step(self, event: core.Event) -> None:
        self._state, self._effect = self._machine.step(self._state, event, trio.current_time())

    def _tell(self, event: core.Event) -> None:
        text = ""
        if isinstance(event, core.Failed):
            text = event.why
        elif isinstance(self._state, core.Waiting) and self._state.seen is not None:
            record = self._state.seen.record
            text = f"{record.holder or 'nobody'} holds it" if record else "it was deleted"
        if text and text != self._told:
            self._waiting(f"Lease {self._key.namespace}/{self._key.name}: waiting for it: {text}")
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
                raise AssertionError("a Lease that is over is asked for")
            case _:
                assert_never(effect)

    async def _attempt(self, act: Callable[[], Awaitable[core.Event]]) -> core.Event:
        """One request, with a limit that leaves time for others before the deadline."""
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
        spec = lease_spec(effect.claim, effect.before, self._now())
        try:
            return core.Written(read_lease(await self._put(spec, effect.before)), begun)
        except ConflictError:
            return core.Refused()
        except NotFoundError:
            if effect.before is None:
                raise  # it is the namespace that is missing
            return core.Refused()

    async def _put(self, spec: JsonObject, before: LeaseRecord | None) -> JsonObject:
        if before is None:
            metadata: JsonObject = {"name": self._key.name, "namespace": self._key.namespace}
            api_version, kind = LEASE_API
            return await self._client.create(
                {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
            )
        # As a patch: what others wrote on it (labels, an owner) stays. The uid: another Lease of this name is another one.
        metadata = {"resourceVersion": before.version, "uid": before.uid}
        return await self._client.merge_patch(self._key, {"metadata": metadata, "spec": spec})
