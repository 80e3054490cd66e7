"""The tasks that wait for the rows of an owner.

A task is woken when its condition holds, and not at each change of the owner's state, because the state of an owner with a
hundred thousand rows changes a hundred thousand times. Checking a condition is cheap, but waking a task is not.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import trio

from wharfinger.cluster.tables.watch import Watch


@dataclass(eq=False, slots=True)
class _Waiter:
    condition: Callable[[], bool]
    event: trio.Event


class Waiters:
    """The waiting tasks, by owner. The condition that a task waits for is checked at every change of the owner's state, so the
    check has to be quick.
    """

    def __init__(self) -> None:
        self._waiters: dict[Hashable, dict[_Waiter, None]] = {}
        self._watches: dict[Hashable, Watch] = {}

    async def wait_until(self, owner: Hashable, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds; return at once if it does."""
        await trio.lowlevel.checkpoint()
        while not condition():
            with self._waiting(owner, condition) as event:
                await event.wait()

    @contextmanager
    def _waiting(self, owner: Hashable, condition: Callable[[], bool]) -> Iterator[trio.Event]:
        waiter = _Waiter(condition, trio.Event())
        waiters = self._waiters.setdefault(owner, {})
        waiters[waiter] = None
        try:
            yield waiter.event
        finally:
            del waiters[waiter]
            if not waiters and self._waiters.get(owner) is waiters:
                del self._waiters[owner]

    def watch(self, owner: Hashable) -> Watch:
        """Return a watch that fires when the owner's state may have changed; get it before you read the state."""
        return self._watches.setdefault(owner, Watch())

    def step(self, owner: Hashable) -> None:
        """Record that the state of this owner changed: fire its watch, and wake the tasks whose conditions hold now."""
        if self._watches:
            watch = self._watches.pop(owner, None)
            if watch is not None:
                watch.fire()
        if self._waiters:
            for waiter in self._waiters.get(owner, ()):
                if waiter.condition():
                    waiter.event.set()

    def step_all(self) -> None:
        """Record that the state of every owner may have changed; see :meth:`step`."""
        for owner in [*self._watches, *self._waiters]:
            self.step(owner)
