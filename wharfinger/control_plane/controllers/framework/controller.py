"""One controller, and the task that runs them all.

Errors of an object concern that object only: they are logged and it is looked at again, later each time. So no controller can
stop another, and nothing is given up for good.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import trio

from wharfinger.control_plane.controllers.framework.work_queue import Agenda
from wharfinger.control_plane.storage.interface import Change, Collection, Key, StorageError
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.errors import FormatError

log: Final = logging.getLogger(__name__)

TURN_S: Final = 0.01
"""How long the controllers work before others have their turn: a request may have to wait for that."""

Wakes: TypeAlias = Callable[[Change], Iterable[Key]]
"""The keys a controller has to look at after a change."""


def itself(change: Change) -> Iterable[Key]:
    """The object that changed."""
    return (change.key,)


@dataclass(frozen=True, slots=True)
class Controller:
    """``wakes``: by kind of what changed, the keys to look at; ``always``: of what changed whatever it is."""

    name: str
    reconcile: Callable[[Key], float | None]
    """Look at an object (it may be gone) and do what is to be done; seconds until to look again, if ever."""
    wakes: Mapping[Collection, Wakes] = field(default_factory=dict)
    always: Wakes | None = None


class Runner:
    """Takes notes of changes, and works on them in one task."""

    def __init__(self, controllers: Sequence[Controller], commit: Callable[[], None]) -> None:
        self._write = commit
        self._controllers = controllers
        self._agenda = Agenda(len(controllers))
        self._by_kind: dict[Collection, list[tuple[int, Wakes]]] = {}
        self._always = [(number, one.always) for number, one in enumerate(controllers) if one.always is not None]
        for number, one in enumerate(controllers):
            for collection, wakes in one.wakes.items():
                self._by_kind.setdefault(collection, []).append((number, wakes))

    def notice(self, change: Change) -> None:
        """Take note of a change."""
        for number, wakes in self._always:
            for key in wakes(change):
                self._agenda.add(number, key)
        for number, wakes in self._by_kind.get(change.key.collection, ()):
            for key in wakes(change):
                self._agenda.add(number, key)

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            number, key = await self._agenda.take()
            began = time.perf_counter()
            self._look_at(number, key)
            while self._agenda.due and time.perf_counter() - began < TURN_S:
                self._look_at(*await self._agenda.take())
            if not self._agenda.due:
                self._commit()
            await trio.lowlevel.checkpoint()

    def statistics(self) -> dict[str, int]:
        """The agenda's."""
        return self._agenda.statistics()

    def _commit(self) -> None:
        """Keep what was written; where that fails it is undone, and those who wrote it are told of that."""
        try:
            self._write()
        except StorageError as error:
            log.warning("what the controllers wrote could not be kept: %s", error)

    def _look_at(self, number: int, key: Key) -> None:
        controller = self._controllers[number]
        try:
            again_s = controller.reconcile(key)
        except (StatusError, StorageError, FormatError) as error:
            pause = self._agenda.failed(number, key)
            log.info("%s: %s: %s; trying again in %.2f s", controller.name, key.place, error, pause)
        else:
            self._agenda.succeeded(number, key)
            if again_s is not None:
                self._agenda.add_later(number, key, max(again_s, 0.001))


class Ages:
    """Since when objects are as they are, by trio's clock: simulated delays start when something was first seen."""

    def __init__(self) -> None:
        self._since: dict[Key, tuple[str, float]] = {}

    def age(self, key: Key, state: str) -> float:
        """Seconds since the object was first seen in this state; another state starts anew."""
        now = trio.current_time()
        known = self._since.get(key)
        if known is None or known[0] != state:
            known = self._since[key] = (state, now)
        return now - known[1]

    def forget(self, key: Key) -> None:
        """The object is gone."""
        self._since.pop(key, None)
