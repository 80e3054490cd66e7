"""A cache of compressed results by key, in memory and in a folder: renders, builds of kustomizations, and versions of programs.

A key is a checksum of everything that the result depends on. So entries never become outdated, only unused: the least recently
used entry is removed if there are too many or they are too large. In the folder
(:mod:`wharfinger.packages.rendering.render_folder`) entries outlive the process, and other processes use them at the same time.

Only the caller knows the meaning of the bytes. If the caller cannot read bytes from the folder although their digest matches, it
removes the entry.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from wharfinger.packages.files.keyed_locks import KeyedLocks
from wharfinger.packages.rendering.render_folder import FolderStatistics, RenderFolder

THREAD_BYTES: Final = 64 * 1024
"""Entries of at least this compressed size, in bytes, are unpacked in a thread, because that takes a millisecond or more."""


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """The limits of the cache in memory and on the disk, in compressed bytes. A render of six objects is 2 KiB."""

    memory_bytes: int = 4 * 1024 * 1024
    memory_entries: int = 4_096
    disk_bytes: int = 256 * 1024 * 1024
    disk_entries: int = 16_384


@dataclass(frozen=True, slots=True)
class EntryStatistics:
    """The number and size of the entries in memory, and the known size of the folder."""

    entries: int
    bytes: int
    disk: FolderStatistics


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry that was found, in memory or on the disk."""

    packed: bytes
    in_memory: bool


class EntryCache:
    """Packed results by key. ``folder`` is made when needed.

    ``short_lived`` is True for a command, which does nothing else at the same time. Then files are read and written without
    threads, and the folder is not scanned before the first read.
    """

    def __init__(self, folder: Path, limits: CacheLimits | None = None, *, short_lived: bool = False) -> None:
        limits = limits or CacheLimits()
        self.locks = KeyedLocks()
        """A lock for each key; a caller that computes a result holds it, so that other callers wait and find the result."""
        self._limits = limits
        self._folder = RenderFolder(folder, limits.disk_entries, limits.disk_bytes, scan_first=not short_lived)
        self._short_lived = short_lived
        self._memory: OrderedDict[str, bytes] = OrderedDict()
        self._unused: set[str] = set()
        """The keys in memory that :meth:`learn` added, and that were not requested yet."""
        self._bytes = 0
        self._disk = trio.CapacityLimiter(1)

    async def get(self, key: str) -> Entry | None:
        """Return the entry of a key, or None."""
        packed = self._memory.get(key)
        if packed is not None:
            self._unused.discard(key)
            self._memory.move_to_end(key)
            return Entry(packed, in_memory=True)
        if self._short_lived:
            packed = self._folder.get(key)
        else:
            packed = await trio.to_thread.run_sync(self._folder.get, key, limiter=self._disk)
        if packed is None:
            return None
        self._remember(key, packed)
        return Entry(packed, in_memory=False)

    async def put(self, key: str, packed: bytes) -> None:
        """Store an entry, and remove others to stay within the limits."""
        self._remember(key, packed)
        if self._short_lived:
            self._folder.put(key, packed)
        else:
            await trio.to_thread.run_sync(self._folder.put, key, packed, limiter=self._disk)

    async def drop(self, key: str) -> None:
        """Remove an entry that is intact, but cannot be used."""
        self.forget(key)
        if self._short_lived:
            self._folder.drop(key)
        else:
            await trio.to_thread.run_sync(self._folder.drop, key, limiter=self._disk)

    def learn(self, entries: Mapping[str, bytes]) -> None:
        """Add entries that :meth:`used` returned in another process, if they fit into memory."""
        room = self._limits.memory_bytes - self._bytes
        for key, packed in entries.items():
            if key not in self._memory and len(packed) <= room and len(self._memory) < self._limits.memory_entries:
                self._remember(key, packed)
                self._unused.add(key)
                room -= len(packed)

    def used(self) -> dict[str, bytes]:
        """Return the entries in memory that were requested or stored since the start."""
        return {key: packed for key, packed in self._memory.items() if key not in self._unused}

    def forget(self, key: str) -> None:
        """Remove an entry from memory only."""
        self._unused.discard(key)
        self._bytes -= len(self._memory.pop(key, b""))

    def statistics(self) -> EntryStatistics:
        """Return the statistics of the cache."""
        return EntryStatistics(len(self._memory), self._bytes, self._folder.statistics())

    def _remember(self, key: str, packed: bytes) -> None:
        self._unused.discard(key)
        if len(packed) > self._limits.memory_bytes:
            self.forget(key)
            return
        self._bytes += len(packed) - len(self._memory.pop(key, b""))
        self._memory[key] = packed
        while self._bytes > self._limits.memory_bytes or len(self._memory) > self._limits.memory_entries:
            oldest, forgotten = self._memory.popitem(last=False)
            self._unused.discard(oldest)
            self._bytes -= len(forgotten)
