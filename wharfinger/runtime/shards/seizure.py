"""The takeover of Applications from a shard that has no daemon.

An owner hands its Applications over itself. If it has no daemon at work, this daemon takes the Lease of that shard, as a daemon
of that shard would: only once its holder has released it, or has not renewed it for its whole duration. While this daemon has the
Lease, no daemon of the other shard works or writes, so the owner can be changed. The Lease is released at once afterwards.
"""

import logging
import math
from collections.abc import Callable, Collection
from datetime import datetime
from typing import Final, TypeAlias

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.lease.lease import LeaseLostError, open_lease
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.shards.handing_over import set_owner
from wharfinger.runtime.shards.ownership import lease_name, owner_of, shard_problem

log = logging.getLogger(__name__)

LOOK_S: Final = 1.0
"""The interval of checks whether the owner has handed everything over itself."""
RETRY_S: Final = 5.0

Awaited: TypeAlias = Callable[[str], Collection[ObjectKey]]
"""A function that returns the Applications of an owner that this shard waits for, as they were seen last."""


class Seizures:
    """The takeovers of one daemon; `want` starts one, and `run` carries them out."""

    def __init__(
        self,
        client: ClusterClient,
        for_lease: ClusterClient,
        shard: str,
        identity: str,
        duration_s: float,
        now: Callable[[], datetime],
    ) -> None:
        """``for_lease`` is a client without a fence, because it takes another shard's Lease."""
        self._client = client
        self._for_lease = for_lease
        self._shard = shard
        self._identity = identity
        self._duration_s = duration_s
        self._now = now
        self._wanted: dict[str, None] = {}
        self._tell, self._told = trio.open_memory_channel[str](math.inf)  # at most once for each wanted owner

    @property
    def waiting_for(self) -> tuple[str, ...]:
        """The owners that are to hand over Applications."""
        return tuple(self._wanted)

    def want(self, owner: str) -> None:
        """Ask to take over the Applications of an owner, in case the owner does not hand them over. Returns at once."""
        if owner and (problem := shard_problem(owner)):  # so it is no name of a Lease either
            log.warning("Applications have an invalid owner, and are not taken over: status.shard: %s", problem)
        elif owner not in self._wanted:
            self._wanted[owner] = None
            self._tell.send_nowait(owner)

    async def run(self, awaited: Awaited) -> None:
        """Take over from all wanted owners, until cancelled. Each has its own task, because one may be slow to hand over."""
        async with trio.open_nursery() as nursery:
            async for owner in self._told:
                nursery.start_soon(self._from, owner, awaited, name=f"takeover from shard {owner or 'main'}")

    async def _from(self, owner: str, awaited: Awaited) -> None:
        """Wait until an owner has handed its Applications over, or until its Lease is free; in the second case, take the
        Applications.

        At any moment, more Applications may be awaited or a write may be refused, so this is repeated until none is left.
        """
        while awaited(owner):
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._until_none, owner, awaited, nursery.cancel_scope)
                    await self._seize(owner, awaited)
                    nursery.cancel_scope.cancel()
            except* (ClusterError, LeaseLostError) as group:
                log.warning(
                    "shard %s: cannot take over: %s; trying again in %.0f s", owner, group.exceptions[0], RETRY_S
                )
                await trio.sleep(RETRY_S)
        del self._wanted[owner]

    async def _until_none(self, owner: str, awaited: Awaited, scope: trio.CancelScope) -> None:
        while awaited(owner):  # noqa: ASYNC110 - the resources are looked at again, because any of them may change
            await trio.sleep(LOOK_S)
        scope.cancel(reason="the owner handed everything over")

    async def _seize(self, owner: str, awaited: Awaited) -> None:
        async with open_lease(
            self._for_lease,
            SYSTEM_NAMESPACE,
            lease_name(owner),
            self._identity,
            duration_s=self._duration_s,
            renew_s=self._duration_s / 3,
            now=self._now,
        ):
            tried = tuple(awaited(owner))
            for key in tried:
                obj = await self._client.get(key)
                if owner_of(obj) == owner and await set_owner(self._client, key, obj, self._shard):
                    log.warning("%s: taken over from shard %r, which has no daemon", key, owner or "main")
        with trio.move_on_after(RETRY_S):  # until the watch has reported the changes
            while not set(tried).isdisjoint(awaited(owner)):  # noqa: ASYNC110
                await trio.sleep(LOOK_S)
