"""Renders that are kept: the same request is rendered once, and read from then on.

What a render depends on is in its request and in the renderer's identity, and the checksum of both is the key. So nothing is ever
out of date, only unused: the longest unused goes where there are too many or too much. Nothing is kept of a chart whose content
nobody knows (no digest), nor of one that looks into the cluster (no identity).

There are two places. In memory a render is compressed JSON; on the disk it is the same in a file
(:mod:`wharfinger.packages.rendering.render_folder`), so that a daemon that begins anew renders nothing again. Whoever is given
a render gets objects of its own. Who comes second for a key waits for the first, and reads what that has rendered.

A chart that draws lots (``randAlphaNum``, ``genCA``) draws once for each key, unless that is forgotten. What has to stay is with
the record of its release (:mod:`wharfinger.runtime.tasks.recorded_render`).
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
"""Compressed bytes from which on they are unpacked in a thread (a millisecond)."""


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """How much is kept in memory and on the disk; compressed bytes. A render of six objects is 2 KiB."""

    memory_bytes: int = 4 * 1024 * 1024
    memory_entries: int = 4_096
    disk_bytes: int = 256 * 1024 * 1024
    disk_entries: int = 16_384


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """``hits`` were in memory, ``disk_hits`` on the disk, ``misses`` were rendered; ``uncached`` could not be kept.

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
    """Implements :class:`~wharfinger.packages.rendering.renderer.Renderer` over another. ``folder`` is made when needed."""

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
        """What the inner renderer renders to, or has. Raises what that raises; no error is kept."""
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
        """Numbers of now, for the debug commands and metrics."""
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
        """The key of a request; "" where its render cannot be kept."""
        if not request.chart_digest:
            return ""
        identity = await self._inner.identity(request)
        if identity is None:
            return ""
        try:
            return entry_key(request, identity)
        except FormatError:
            return ""  # values that are none; the inner renderer says what is wrong with them

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
