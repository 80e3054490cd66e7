"""The packages whose removal is complete. One task forgets these packages and deletes their queues. The task runs outside of
the queues that it deletes.
"""

from collections import deque

import trio


class Departures:
    """An unbounded queue of the names of packages whose removal is complete. Only one task takes names from the queue."""

    def __init__(self) -> None:
        self._names: deque[str] = deque()
        self._arrived = trio.Event()

    def put(self, name: str) -> None:
        """Add a package whose removal is complete. The consumer of this queue then makes the runtime forget the package."""
        self._names.append(name)
        self._arrived.set()

    async def take(self) -> str:
        """Remove and return the first name; wait if there is none."""
        while not self._names:
            self._arrived = trio.Event()
            await self._arrived.wait()
        return self._names.popleft()
