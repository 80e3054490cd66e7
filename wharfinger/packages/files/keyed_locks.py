"""One lock for each key, made when it is first wanted and dropped when no task holds it or waits for it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trio


@dataclass(slots=True)
class _Entry:
    lock: trio.Lock = field(default_factory=trio.Lock)
    users: int = 0


class KeyedLocks:
    """Locks by key: the second task for the same key waits; different keys are independent."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    def __len__(self) -> int:
        """Return the number of keys that are held or waited for."""
        return len(self._entries)

    @asynccontextmanager
    async def held(self, key: str) -> AsyncIterator[None]:
        """Hold the key's lock; a task that holds it must not ask for it again."""
        entry = self._entries.setdefault(key, _Entry())
        entry.users += 1
        try:
            async with entry.lock:
                yield
        finally:
            entry.users -= 1
            if not entry.users:
                del self._entries[key]
