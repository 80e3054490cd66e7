"""A cache that records whether fetched charts may make nodes, that is, objects that have a controller, such as a HelmRelease.
So a chart is fetched only once to find this out.

The cache has only charts of a fixed version, because a version constraint may select a newer chart later.
"""

import hashlib
import re
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, canonical_json, find_str
from wharfinger.packages.rendering.entry_cache import EntryCache
from wharfinger.packages.rendering.render_entry import pack_value, unpack_value

FORMAT: Final = 1
"""The version of the cache's format. Raise it if the meaning of keys or entries changes; then older entries are not found."""
_EXACT: Final = re.compile(r"v?\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?\Z")


def fixed_chart(source: JsonObject, chart: str, version: str) -> str | None:
    """Return the cache key of a chart of a source if the version of the chart is fixed; None if it may change.

    ``source`` is the spec of a Flux source. If ``chart`` is "", the chart is the artifact of an OCIRepository itself.
    """
    ref = {key: find_str(source, "ref", key) for key in ("digest", "commit", "tag", "semver", "name")}
    is_fixed = (
        bool(ref["digest"] or ref["commit"])
        or (not ref["semver"] and bool(_EXACT.match(ref["tag"])))
        or (not any(ref.values()) and bool(_EXACT.match(version)))
    )
    if not is_fixed:
        return None
    parts: JsonObject = {"makers": FORMAT, "url": find_str(source, "url"), "ref": {**ref}, "chart": [chart, version]}
    return hashlib.sha256(canonical_json(parts)).hexdigest()


class ChartMakers:
    """The cache that records for each chart, by its key, whether it may make nodes. Without ``entries``, nothing is kept."""

    def __init__(self, entries: EntryCache | None = None) -> None:
        self._entries = entries

    async def known(self, key: str | None) -> bool | None:
        """Return whether a chart may make nodes; None if that is not known."""
        if key is None or self._entries is None:
            return None
        entry = await self._entries.get(key)
        if entry is None:
            return None
        try:
            value = unpack_value(entry.packed)
        except FormatError:
            value = None
        if isinstance(value, bool):
            return value
        await self._entries.drop(key)
        return None

    async def learn(self, key: str | None, *, may_make_nodes: bool) -> None:
        """Store whether a chart may make nodes, that is, objects that have a controller."""
        if key is not None and self._entries is not None and await self.known(key) is not may_make_nodes:
            await self._entries.put(key, pack_value(may_make_nodes))
