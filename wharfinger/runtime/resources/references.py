"""The Secrets and ConfigMaps that specs refer to; each is watched on its own, so that no other Secrets of the cluster are read.

An owner (a package or a repository) requests objects. One watch follows each object, however many owners request the object,
until no owner requests it any more. Until an object is looked up for the first time, its owners are notified every PATIENCE_S.
They are also notified when it is looked up, and when it changes. The methods distinguish an object that was not looked up yet,
an object that does not exist, and an object that the daemon may not read.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.watch.informer import Informer, open_informer
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import ObjectKey

PATIENCE_S = 2.0
"""Until an object has been looked up, its owners are notified at this interval, so that they report in their status why the
object is not available yet.
"""


@dataclass(slots=True)
class _Followed:
    owners: set[str]
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    informer: Informer | None = None
    looked_up: bool = False


class References:
    """The watched Secrets and ConfigMaps to which specs refer. Use `open_references`."""

    def __init__(self, client: ClusterClient, nursery: trio.Nursery, on_change: Callable[[str], None]) -> None:
        """Initialize the references; only `open_references` calls this, because it owns the nursery."""
        self._client = client
        self._nursery = nursery
        self._on_change = on_change
        self._followed: dict[ObjectKey, _Followed] = {}

    def want(self, owner: str, keys: Iterable[ObjectKey]) -> None:
        """Follow the objects ``keys`` for ``owner``, and no longer follow other objects for it. When an owner is gone, call
        this method with no keys.
        """
        wanted = frozenset(keys)
        for key, followed in list(self._followed.items()):
            if key not in wanted and owner in followed.owners:
                followed.owners.discard(owner)
                if not followed.owners:
                    followed.scope.cancel(reason="no package or repository refers to the object any more")
                    del self._followed[key]
        for key in sorted(wanted):
            if key in self._followed:
                self._followed[key].owners.add(owner)
            else:
                followed = self._followed[key] = _Followed({owner})
                self._nursery.start_soon(self._follow, key, followed, name=f"follow {key}")

    def get(self, key: ObjectKey) -> JsonObject | None:
        """Return the object as it was last seen; None if it does not exist, or was not looked up yet."""
        followed = self._followed.get(key)
        return followed.informer.get(key) if followed is not None and followed.informer is not None else None

    def looked_up(self, key: ObjectKey) -> bool:
        """Return whether an object was looked up, so that the result of `get` is valid."""
        followed = self._followed.get(key)
        return followed is not None and followed.looked_up

    def problem(self, key: ObjectKey) -> str:
        """Return why the object could not be looked up yet; empty if it was looked up, or if no problem is known."""
        followed = self._followed.get(key)
        if followed is None or followed.informer is None or followed.looked_up:
            return ""
        return followed.informer.statistics().last_error

    def __len__(self) -> int:
        return len(self._followed)

    async def _follow(self, key: ObjectKey, followed: _Followed) -> None:
        with followed.scope:
            async with open_informer(
                self._client, key.resource, key.namespace, field_selector=f"metadata.name={key.name}"
            ) as informer:
                followed.informer = informer
                while not followed.looked_up:
                    with trio.move_on_after(PATIENCE_S):
                        await informer.wait_synced()
                        followed.looked_up = True
                    self._tell(followed)
                with informer.changes() as changes:
                    while True:
                        await changes.wait()
                        self._tell(followed)

    def _tell(self, followed: _Followed) -> None:
        for owner in sorted(followed.owners):
            self._on_change(owner)


@asynccontextmanager
async def open_references(client: ClusterClient, on_change: Callable[[str], None]) -> AsyncIterator[References]:
    """Yield the references while the body runs; ``on_change(owner)`` must not block."""
    async with trio.open_nursery() as nursery:
        yield References(client, nursery, on_change)
        nursery.cancel_scope.cancel()
