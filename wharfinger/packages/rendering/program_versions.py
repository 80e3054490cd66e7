"""The versions of programs, stored in the cache of results: starting a Go program to get its version takes 50 ms.

A version is stored only for a binary (ELF), under its path, inode, size and time of modification. A script may start another
program the next time, so it is run each time.
"""

import hashlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.packages.rendering.entry_cache import EntryCache
from wharfinger.packages.rendering.render_entry import pack_value, unpack_value

FORMAT: Final = 1
_BINARY: Final = b"\x7fELF"


class ProgramVersions:
    """A cache of the version numbers that programs print. An entry belongs to one program file."""

    def __init__(self, entries: EntryCache) -> None:
        self._entries = entries

    async def version_of(self, program: Path, ask: Callable[[], Awaitable[str]]) -> str:
        """Return the stored version of a program; if none is stored, call ``ask`` and store its result, unless it is "". Raises
        the errors of ``ask``.
        """
        key = _key(program)  # reads a few bytes, which costs less than a thread
        if not key:
            return await ask()
        async with self._entries.locks.held(key):
            entry = await self._entries.get(key)
            if entry is not None:
                try:
                    known = unpack_value(entry.packed)
                except FormatError:
                    known = None
                if isinstance(known, str) and known:
                    return known
                await self._entries.drop(key)
            version = await ask()
            if version:
                await self._entries.put(key, pack_value(version))
            return version


def _key(program: Path) -> str:
    """Return the key under which the version of a binary is stored; "" for a file that is not a binary. Blocking."""
    try:
        with program.open("rb") as file:
            said = os.fstat(file.fileno())
            if file.read(len(_BINARY)) != _BINARY:
                return ""
    except OSError:
        return ""
    stamp = (said.st_dev, said.st_ino, said.st_size, said.st_mtime_ns)
    return hashlib.sha256(f"version {FORMAT} {program.resolve()} {stamp}".encode()).hexdigest()
