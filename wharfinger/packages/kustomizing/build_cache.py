"""A cache of built kustomizations; the key is the content of all files that a build has read.

The files that a build reads are known only after the build. So there are two kinds of entries. The first kind is for one request
(`BuildKey`). It has at most MAX_LISTS lists, each with the paths that an earlier build read. The second kind has the objects. Its
key is a checksum of one such list and of the state of each path in it: the digest of a file, or the fact that the path is a
folder or does not exist. If a build reads the same paths in the same states, its objects are the same. Paths are relative to the
folder, so it does not matter where the tree lies.

Files are read in the thread of trio's loop: they are small, so a worker thread would cost more than the reads themselves.
"""

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, canonical_json
from wharfinger.packages.rendering.entry_cache import THREAD_BYTES, EntryCache
from wharfinger.packages.rendering.render_entry import pack_value, unpack_value

FORMAT: Final = 1
"""The version of keys and entries. Raise it if their meaning changes; then old entries are not found."""
MAX_LISTS: Final = 8
FOLDER: Final = "folder"
ABSENT: Final = "absent"
_UNREADABLE: Final = "unreadable"
_PART: Final = 64 * 1024
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class BuildKey:
    """One request to build a kustomization: the builder's version, the name of the folder, and the generated files.

    The paths that a build reads are stored relative to ``start``.
    """

    version: str
    name: str
    files: Mapping[str, str]
    start: Path

    @cached_property
    def digest(self) -> str:
        """The SHA-256 digest of the key, as 64 hex digits."""
        parts: JsonObject = {"build": FORMAT, "version": self.version, "name": self.name, "files": {**self.files}}
        return hashlib.sha256(canonical_json(parts)).hexdigest()


class BuildCache:
    """A cache of built objects. Its key contains the content of the files from which the objects were built."""

    def __init__(self, entries: EntryCache) -> None:
        self._entries = entries
        self.locks = entries.locks
        """A lock for each key, by the digest of the key. A caller holds the lock while it looks up or builds the objects."""

    async def get(self, key: BuildKey) -> tuple[JsonObject, ...] | None:
        """Return the objects that a build would return now; None if they are not cached."""
        digest = key.digest
        lists = await self._lists(digest)
        if not lists:
            return None
        for wanted in _found_now(digest, lists, key.start):
            value = await self._value(wanted)
            if isinstance(value, list):
                return tuple(as_object(each, "a cached object") for each in value)
        return None

    async def put(self, key: BuildKey, seen: Mapping[str, str], objects: tuple[JsonObject, ...]) -> None:
        """Store the objects of a build; ``seen`` has the state of each path that the build has read."""
        digest = key.digest
        states = _relative(seen, key.start)
        paths = sorted(states)
        try:
            await self._entries.put(_content_key(digest, states), pack_value([*objects]))
            lists = await self._lists(digest)
            if paths not in lists:
                kept: list[JsonValue] = [[*each] for each in [paths, *lists][:MAX_LISTS]]
                await self._entries.put(digest, pack_value(kept))
        except FormatError:
            return  # too large, or deeper than JSON may be

    async def _lists(self, digest: str) -> list[list[str]]:
        """Return the lists of paths that are stored for a request, given its digest; the newest list comes first. Each list has
        the paths that one earlier build of this request has read.
        """
        value = await self._value(digest)
        lists = value if isinstance(value, list) else []
        return [[str(path) for path in each] for each in lists if isinstance(each, list)]

    async def _value(self, key: str) -> JsonValue:
        entry = await self._entries.get(key)
        if entry is None:
            return None
        try:
            if len(entry.packed) < THREAD_BYTES:
                return unpack_value(entry.packed)
            return await trio.to_thread.run_sync(unpack_value, entry.packed)
        except FormatError:
            await self._entries.drop(key)
            return None


def _relative(seen: Mapping[str, str], start: Path) -> dict[str, str]:
    return {os.path.relpath(path, start): state for path, state in seen.items()}


def _found_now(digest: str, lists: list[list[str]], start: Path) -> list[str]:
    """Return a key for each list of paths, computed from the current states of the files at these paths. If a build has read
    these paths in these states, its objects are cached under this key. Blocking.
    """
    known: dict[str, str] = {}
    base = f"{start}/"
    return [_content_key(digest, {path: _state_of(base, path, known) for path in paths}) for paths in lists]


def _content_key(digest: str, states: Mapping[str, str]) -> str:
    parts: JsonObject = {"content": FORMAT, "of": digest, "states": {**states}}
    return hashlib.sha256(canonical_json(parts)).hexdigest()


def _state_of(base: str, path: str, known: dict[str, str]) -> str:
    if path not in known:
        known[path] = _state(base + path)
    return known[path]


def _state(path: str) -> str:
    """Return the state of a path as text, in the same notation as the chart engine uses."""
    try:
        descriptor = os.open(path, _READ)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except OSError:
        return _UNREADABLE
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            return FOLDER
        if not stat.S_ISREG(found.st_mode):
            return _UNREADABLE
        digest = hashlib.sha256()
        while part := os.read(descriptor, _PART):
            digest.update(part)
        return digest.hexdigest()
    except OSError:
        return _UNREADABLE
    finally:
        os.close(descriptor)
