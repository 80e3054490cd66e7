"""One lock for each key. A lock is made when it is first needed, and dropped when no task holds it or waits for it."""

from dataclasses import dataclass, field
from types import TracebackType

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

    def held(self, key: str) -> "_Held":
        """Return an async context manager that holds the key's lock; a task that holds the lock must not acquire it again.

        A free lock is taken without a checkpoint.
        """
        return _Held(self._entries, key)


class _Held:
    """The lock of one key, held for a block."""

    __slots__ = ("_entries", "_entry", "_key")

    def __init__(self, entries: dict[str, _Entry], key: str) -> None:
        self._entries = entries
        self._key = key
        self._entry = _Entry()

    async def __aenter__(self) -> None:
        """Take the lock, once it is free."""
        self._entry = self._entries.setdefault(self._key, self._entry)
        self._entry.users += 1
        try:
            if self._entry.lock.locked():
                await self._entry.lock.acquire()
            else:
                self._entry.lock.acquire_nowait()
        except BaseException:
            self._leave()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the lock."""
        self._entry.lock.release()
        self._leave()

    def _leave(self) -> None:
        self._entry.users -= 1
        if not self._entry.users:
            del self._entries[self._key]
