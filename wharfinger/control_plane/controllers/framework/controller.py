"""One controller, and the task that runs all controllers.

An error concerns one object only: it is logged, and the object is retried with an increasing pause. So no controller can
stop another, and no object is given up permanently.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import trio

from wharfinger.control_plane.controllers.framework.work_queue import WorkQueue
from wharfinger.control_plane.storage.interface import Change, Collection, Key, StorageError
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.errors import FormatError

log: Final = logging.getLogger(__name__)

TURN_S: Final = 0.01
"""The time in seconds that the controllers work before they let other tasks run; a request may have to wait that long."""

Wakes: TypeAlias = Callable[[Change], Iterable[Key]]
"""A function that returns the keys that a controller must reconcile after a change."""


def itself(change: Change) -> Iterable[Key]:
    """Return the key of the changed object."""
    return (change.key,)


@dataclass(frozen=True, slots=True)
class Controller:
    """A controller: its name, its function ``reconcile``, and the changes after which this function is called.

    ``wakes`` has a function for each observed kind, which returns the keys to reconcile after a change of an object of that
    kind. ``always`` returns the keys to reconcile after a change of an object of any kind.
    """

    name: str
    reconcile: Callable[[Key], float | None]
    """Reconcile an object, which may not exist, and return the seconds until it must be reconciled again, or None."""
    wakes: Mapping[Collection, Wakes] = field(default_factory=dict)
    always: Wakes | None = None


class Runner:
    """The runner of controllers: it queues keys after changes, and reconciles them in one task."""

    def __init__(self, controllers: Sequence[Controller], commit: Callable[[], None]) -> None:
        self._write = commit
        self._controllers = controllers
        self._queue = WorkQueue(len(controllers))
        self._by_kind: dict[Collection, list[tuple[int, Wakes]]] = {}
        self._always = [(number, one.always) for number, one in enumerate(controllers) if one.always is not None]
        for number, one in enumerate(controllers):
            for collection, wakes in one.wakes.items():
                self._by_kind.setdefault(collection, []).append((number, wakes))

    def notice(self, change: Change) -> None:
        """Queue the keys that must be reconciled after a change."""
        for number, wakes in self._always:
            for key in wakes(change):
                self._queue.add(number, key)
        for number, wakes in self._by_kind.get(change.key.collection, ()):
            for key in wakes(change):
                self._queue.add(number, key)

    async def run(self) -> None:
        """Reconcile the queued keys until cancelled."""
        while True:
            number, key = await self._queue.take()
            began = time.perf_counter()
            self._reconcile(number, key)
            while self._queue.due and time.perf_counter() - began < TURN_S:
                self._reconcile(*await self._queue.take())
            if not self._queue.due:
                self._commit()
            await trio.lowlevel.checkpoint()

    def statistics(self) -> dict[str, int]:
        """Return the statistics of the work queue."""
        return self._queue.statistics()

    def _commit(self) -> None:
        """Commit the writes.

        If the commit fails, the writes are undone, and the observers are notified of the changes that undo the writes.
        """
        try:
            self._write()
        except StorageError as error:
            log.warning("the writes of the controllers could not be committed: %s", error)

    def _reconcile(self, number: int, key: Key) -> None:
        controller = self._controllers[number]
        try:
            again_s = controller.reconcile(key)
        except (StatusError, StorageError, FormatError) as error:
            pause = self._queue.failed(number, key)
            log.info("%s: %s: %s; trying again in %.2f s", controller.name, key.place, error, pause)
        else:
            self._queue.succeeded(number, key)
            if again_s is not None:
                self._queue.add_later(number, key, max(again_s, 0.001))


class Ages:
    """The time at which each object was first seen in its current state, by trio's clock. Controllers use these times to
    simulate delays.
    """

    def __init__(self) -> None:
        self._since: dict[Key, tuple[str, float]] = {}

    def age(self, key: Key, state: str) -> float:
        """Return the seconds since the object was first seen in this state; a change of state restarts the time."""
        now = trio.current_time()
        known = self._since.get(key)
        if known is None or known[0] != state:
            known = self._since[key] = (state, now)
        return now - known[1]

    def forget(self, key: Key) -> None:
        """Forget an object that no longer exists."""
        self._since.pop(key, None)
