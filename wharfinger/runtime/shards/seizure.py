"""The takeover of Applications from a shard that has no daemon.

Usually the daemon of the shard that owns an Application hands it over. If that shard has no working daemon, this daemon takes
the Lease of that shard. Like a daemon of that shard, it can take the Lease only once the holder has released it, or has not
renewed it for its whole duration. While this daemon has the Lease, no daemon of the other shard works or writes, so the owner
can be changed. After that, the Lease is released immediately.
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
"""The interval, in seconds, of checks whether an Application still has to be handed over."""
RETRY_S: Final = 5.0

Awaited: TypeAlias = Callable[[str], Collection[ObjectKey]]
"""A function that takes the name of a shard, and returns the Applications that this shard still has to hand over to the shard
of this daemon, according to the watches.
"""


class Seizures:
    """The takeovers of Applications by one daemon from shards without a daemon. `want` requests a takeover, and `run` carries
    out the requested takeovers.
    """

    def __init__(
        self,
        client: ClusterClient,
        for_lease: ClusterClient,
        shard: str,
        identity: str,
        duration_s: float,
        now: Callable[[], datetime],
    ) -> None:
        """Prepare takeovers. ``for_lease`` is the client that takes the Lease of another shard, so its writes must not depend
        on this shard's Lease.
        """
        self._client = client
        self._for_lease = for_lease
        self._shard = shard
        self._identity = identity
        self._duration_s = duration_s
        self._now = now
        self._wanted: dict[str, None] = {}
        self._tell, self._told = trio.open_memory_channel[str](
            math.inf
        )  # each wanted owner is sent to the channel at most once

    @property
    def waiting_for(self) -> tuple[str, ...]:
        """The shards that own Applications of this shard and have not handed them over yet."""
        return tuple(self._wanted)

    def want(self, owner: str) -> None:
        """Request the takeover of Applications from an owner that does not hand them over itself. Returns immediately."""
        if owner and (problem := shard_problem(owner)):  # an invalid name would also be an invalid name for a Lease
            log.warning(
                "Applications have an invalid owner, and are not taken over; correct or remove their status.shard: %s",
                problem,
            )
        elif owner not in self._wanted:
            self._wanted[owner] = None
            self._tell.send_nowait(owner)

    async def run(self, awaited: Awaited) -> None:
        """Take over the Applications of the owners that were passed to `want`, until cancelled. Each owner has its own task,
        because an owner may take long to hand over its Applications.
        """
        async with trio.open_nursery() as nursery:
            async for owner in self._told:
                nursery.start_soon(self._from, owner, awaited, name=f"takeover from shard {owner or 'main'}")

    async def _from(self, owner: str, awaited: Awaited) -> None:
        """Wait until an owner has handed over all awaited Applications. If the owner's Lease becomes free before that, take
        over the rest of them.

        Repeat this until no Application is awaited, because more Applications may have to be handed over at any moment, and
        because a write may be refused.
        """
        while awaited(owner):
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._until_none, owner, awaited, nursery.cancel_scope)
                    await self._seize(owner, awaited)
                    nursery.cancel_scope.cancel()
            except* (ClusterError, LeaseLostError) as group:
                log.warning(
                    "%s: cannot take over: %s; trying again in %.0f s",
                    f"shard {owner}" if owner else "the main shard",
                    group.exceptions[0],
                    RETRY_S,
                )
                await trio.sleep(RETRY_S)
        del self._wanted[owner]

    async def _until_none(self, owner: str, awaited: Awaited, scope: trio.CancelScope) -> None:
        while awaited(owner):  # noqa: ASYNC110 - the resources are looked at again, because any of them may change
            await trio.sleep(LOOK_S)
        scope.cancel(reason="the owner has handed over all Applications")

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
