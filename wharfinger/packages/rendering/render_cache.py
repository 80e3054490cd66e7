"""A cache of renders: the same request is rendered once, and then read from the cache.

A render depends only on its request and on the renderer's identity, and the checksum of both is the key. Nothing is cached for a
chart of unknown content (no digest), or for a chart that reads from the cluster (no identity).

An entry of the cache (:mod:`wharfinger.packages.rendering.entry_cache`) is compressed JSON. Every caller gets its own objects. If
two tasks request the same key, the second waits for the first, and reads its result.

Random values of a chart (``randAlphaNum``, ``genCA``) are generated once for each key, and again if the entry was removed.
Values that must not change are stored with the record of the release (:mod:`wharfinger.runtime.tasks.recorded_render`).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.packages.rendering.entry_cache import THREAD_BYTES, EntryCache
from wharfinger.packages.rendering.render_entry import entry_key, pack_rendered, unpack_rendered
from wharfinger.packages.rendering.render_folder import FolderStatistics
from wharfinger.packages.rendering.renderer import KeyedRenderer, Rendered, RenderRequest

_THREADS: Final = 2


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """Counters of the cache.

    ``hits`` were found in memory, ``disk_hits`` on the disk, ``misses`` were rendered; ``uncached`` renders cannot be cached.
    ``entries`` and ``bytes`` count the entries in memory.
    """

    hits: int
    disk_hits: int
    misses: int
    uncached: int
    entries: int
    bytes: int
    disk: FolderStatistics


class CachingRenderer:
    """A :class:`~wharfinger.packages.rendering.renderer.Renderer` that caches the renders of another renderer.

    ``is_current`` returns whether the chart of a request still has the digest that the request names. A render is stored only
    if the chart still has it afterwards, because users may change a folder during a render.
    """

    def __init__(
        self,
        inner: KeyedRenderer,
        entries: EntryCache,
        is_current: Callable[[RenderRequest], Awaitable[bool]] | None = None,
    ) -> None:
        self._is_current = is_current
        self._inner = inner
        self._entries = entries
        self._threads = trio.CapacityLimiter(_THREADS)
        self._hits = self._disk_hits = self._misses = self._uncached = 0

    async def render(self, request: RenderRequest) -> Rendered:
        """Return the cached render, or the inner renderer's render. Raises the errors of the inner renderer; no error
        is cached.
        """
        key = await self._key(request)
        if not key:
            self._uncached += 1
            return await self._inner.render(request)
        async with self._entries.locks.held(key):
            found = await self._found(key)
            if found is not None:
                return found
            self._misses += 1
            rendered = await self._inner.render(request)
            if self._is_current is None or await self._is_current(request):
                await self._keep(key, rendered)
            return rendered

    def statistics(self) -> CacheStatistics:
        """Return the current numbers, for the debug commands and metrics."""
        entries = self._entries.statistics()
        return CacheStatistics(
            hits=self._hits,
            disk_hits=self._disk_hits,
            misses=self._misses,
            uncached=self._uncached,
            entries=entries.entries,
            bytes=entries.bytes,
            disk=entries.disk,
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
        entry = await self._entries.get(key)
        if entry is None:
            return None
        try:
            rendered = await self._unpacked(entry.packed)
        except FormatError:
            await self._entries.drop(key)
            return None
        if entry.in_memory:
            self._hits += 1
        else:
            self._disk_hits += 1
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
        await self._entries.put(key, packed)
