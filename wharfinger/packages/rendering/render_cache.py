"""A cache of renders: the same request is rendered once, and then read from the cache.

A render depends on its request and on the renderer's identity only, and the checksum of both is the key. So entries never
become outdated, only unused: the longest unused entry is removed if there are too many or they are too large. Nothing is
cached for a chart of unknown content (no digest), or for one that looks into the cluster (no identity).

There are two places. In memory a render is compressed JSON; on the disk it is the same in a file
(:mod:`wharfinger.packages.rendering.render_folder`), so that a restarted daemon does not render again. Every caller gets its
own objects. If two tasks want the same key, the second waits for the first, and reads its result.

A chart that uses random values (``randAlphaNum``, ``genCA``) draws them once for each key, unless the entry is removed.
Values that must not change are kept with the record of its release (:mod:`wharfinger.runtime.tasks.recorded_render`).
"""

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.packages.files.keyed_locks import KeyedLocks
from wharfinger.packages.rendering.render_entry import entry_key, pack_rendered, unpack_rendered
from wharfinger.packages.rendering.render_folder import FolderStatistics, RenderFolder
from wharfinger.packages.rendering.renderer import KeyedRenderer, Rendered, RenderRequest

THREAD_BYTES: Final = 64 * 1024
"""Compressed bytes from which on they are unpacked in a thread (this takes a millisecond)."""


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """The limits of the cache in memory and on the disk, in compressed bytes. A render of six objects is 2 KiB."""

    memory_bytes: int = 4 * 1024 * 1024
    memory_entries: int = 4_096
    disk_bytes: int = 256 * 1024 * 1024
    disk_entries: int = 16_384


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """Counters of the cache.

    ``hits`` were in memory, ``disk_hits`` on the disk, ``misses`` were rendered; ``uncached`` could not be cached.
    ``entries`` and ``bytes`` are those in memory.
    """

    hits: int
    disk_hits: int
    misses: int
    uncached: int
    entries: int
    bytes: int
    disk: FolderStatistics


class CachingRenderer:
    """A :class:`~wharfinger.packages.rendering.renderer.Renderer` that caches another one. ``folder`` is made when needed."""

    def __init__(self, inner: KeyedRenderer, folder: Path, limits: CacheLimits | None = None) -> None:
        limits = limits or CacheLimits()
        self._inner = inner
        self._folder = RenderFolder(folder, limits.disk_entries, limits.disk_bytes)
        self._limits = limits
        self._memory: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0
        self._locks = KeyedLocks()
        self._disk = trio.CapacityLimiter(1)
        self._threads = trio.CapacityLimiter(2)
        self._hits = self._disk_hits = self._misses = self._uncached = 0

    async def render(self, request: RenderRequest) -> Rendered:
        """Return the cached render, or that of the inner renderer. Raises its errors; no error is cached."""
        key = await self._key(request)
        if not key:
            self._uncached += 1
            return await self._inner.render(request)
        async with self._locks.held(key):
            found = await self._found(key)
            if found is not None:
                return found
            self._misses += 1
            rendered = await self._inner.render(request)
            await self._keep(key, rendered)
            return rendered

    def statistics(self) -> CacheStatistics:
        """Return the current numbers, for the debug commands and metrics."""
        return CacheStatistics(
            hits=self._hits,
            disk_hits=self._disk_hits,
            misses=self._misses,
            uncached=self._uncached,
            entries=len(self._memory),
            bytes=self._bytes,
            disk=self._folder.statistics(),
        )

    async def _key(self, request: RenderRequest) -> str:
        """Return the key of a request; "" if its render cannot be cached."""
        if not request.chart_digest:
            return ""
        identity = await self._inner.identity(request)
        if identity is None:
            return ""
        try:
            return entry_key(request, identity)
        except FormatError:
            return ""  # invalid values; the inner renderer reports the error

    async def _found(self, key: str) -> Rendered | None:
        packed = self._memory.get(key)
        if packed is not None:
            self._memory.move_to_end(key)
            rendered = await self._unpacked(packed)
            self._hits += 1
            return rendered
        packed = await trio.to_thread.run_sync(self._folder.get, key, limiter=self._disk)
        if packed is None:
            return None
        try:
            rendered = await self._unpacked(packed)
        except FormatError:
            await trio.to_thread.run_sync(self._folder.drop, key, limiter=self._disk)
            return None
        self._disk_hits += 1
        self._remember(key, packed)
        return rendered

    async def _unpacked(self, packed: bytes) -> Rendered:
        if len(packed) < THREAD_BYTES:
            return unpack_rendered(packed)
        return await trio.to_thread.run_sync(unpack_rendered, packed, limiter=self._threads)

    async def _keep(self, key: str, rendered: Rendered) -> None:
        try:
            packed = await trio.to_thread.run_sync(pack_rendered, rendered, limiter=self._threads)
        except FormatError:
            return  # too large, or deeper than JSON may be
        self._remember(key, packed)
        await trio.to_thread.run_sync(self._folder.put, key, packed, limiter=self._disk)

    def _remember(self, key: str, packed: bytes) -> None:
        if len(packed) > self._limits.memory_bytes:
            return
        self._bytes += len(packed) - len(self._memory.pop(key, b""))
        self._memory[key] = packed
        while self._bytes > self._limits.memory_bytes or len(self._memory) > self._limits.memory_entries:
            _, forgotten = self._memory.popitem(last=False)
            self._bytes -= len(forgotten)
