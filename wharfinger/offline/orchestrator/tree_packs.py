"""Packs: a pack is one cache entry that contains all cache entries and parsed texts that the last build of a tree used.

Without a pack, a build of an unchanged tree reads a cache entry for each release and each kustomization, and parses each file
of the tree. With a pack, it reads one entry, and of each file it only computes the digest.

The key of each part of a pack is a digest of everything that the part depends on, as for entries outside of packs. So an old
pack, or the pack of another tree, never leads to a wrong result. Entries that are not in the pack are read from the cache one
by one.

A pack is written at the end of a build that used more than a few entries outside of the pack. Some entries get new values, such
as the lists of paths in :mod:`wharfinger.packages.kustomizing.build_cache`. A pack that has an old value of such an entry is
always written again, because the old value would hide the new one.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import trio
import yaml

import wharfinger
from wharfinger.formats.json.value import JsonValue, canonical_json
from wharfinger.formats.yaml.parsed_texts import ParsedTexts
from wharfinger.packages.rendering.entry_cache import EntryCache

FORMAT: Final = 1
"""The format version of packs. Raise it if the parsed form of YAML texts changes, so that old packs are not used any more."""
MAX_BYTES: Final = 32 * 1024 * 1024
"""The size in bytes of the largest pack that is written."""
_TOLERATED: Final = 16
"""A pack is not written again if it lacks at most 1/_TOLERATED of the parts that a build has used. Writing the pack would cost
more than reading the missing parts.
"""
_SPARE: Final = 2
"""A pack with more than _SPARE times as many parts as a build has used is written again, without the unused parts."""


class _Pack(msgspec.Struct, frozen=True):
    texts: dict[bytes, bytes]
    entries: dict[str, bytes]


_EMPTY: Final = _Pack({}, {})
_DECODER: Final = msgspec.msgpack.Decoder(_Pack)


def pack_name(paths: Sequence[Path]) -> str:
    """Return the cache key of the pack for the tree at these paths. The order of the paths does not matter."""
    versions = f"wharfinger {wharfinger.__version__}, yaml {yaml.__version__}"
    places: list[JsonValue] = [*sorted(str(path.absolute()) for path in paths)]
    key = canonical_json({"pack": FORMAT, "paths": places, "by": versions})
    return hashlib.sha256(key).hexdigest()


class TreePacks:
    """The packs of the trees that are built with one cache. A pack is one cache entry that contains everything that the last
    build of a tree used. Without ``entries``, nothing is stored.
    """

    def __init__(self, entries: EntryCache | None = None) -> None:
        self.texts = ParsedTexts()
        """The parsed YAML texts: all texts that this process has read itself or found in the packs that it has opened."""
        self._entries = entries
        self._packs: dict[str, _Pack] = {}

    async def open(self, name: str) -> None:
        """Read a pack, and use its content from now on. A damaged or absent pack counts as empty."""
        if self._entries is None or name in self._packs:
            return
        self._packs[name] = _EMPTY
        entry = await self._entries.get(name)
        if entry is None:
            return
        self._entries.forget(name)
        try:
            pack = _DECODER.decode(entry.packed)
        except msgspec.DecodeError:
            await self._entries.drop(name)
            return
        self._packs[name] = pack
        self.texts.learn(pack.texts)
        self._entries.learn(pack.entries)

    async def save(self, name: str) -> None:
        """Write a pack with all texts and cache entries that were used since the start. Do nothing if the saved pack contains
        nearly all of them.
        """
        if self._entries is None:
            return
        known = self._packs.get(name, _EMPTY)
        pack = _Pack(self.texts.used(), {key: packed for key, packed in self._entries.used().items() if key != name})
        if _suffices(known, pack):
            return
        self._packs[name] = pack
        packed = await trio.to_thread.run_sync(msgspec.msgpack.encode, pack)
        if len(packed) <= MAX_BYTES:
            await self._entries.put(name, packed)
            self._entries.forget(name)


def _suffices(known: _Pack, pack: _Pack) -> bool:
    """Return whether a known pack can stay: it has nearly all parts of ``pack``, no old value of a part, and few unused parts."""
    size, known_size = (len(each.texts) + len(each.entries) for each in (pack, known))
    lacks = len(pack.texts.keys() - known.texts.keys()) + len(pack.entries.keys() - known.entries.keys())
    if lacks * _TOLERATED > size or known_size > _SPARE * size:
        return False
    return all(known.entries.get(key, packed) == packed for key, packed in pack.entries.items())
