"""The fingerprint of a folder: a digest of the name, mode, size, inode and times of every entry.

While it stays the same, nothing in the folder has changed. It is computed from metadata; no file is read. Each change of a
file sets its ctime, which no program can choose. Only two changes within one tick of the clock may have the same ctime, so a
folder that was changed in the last RECENT_S seconds has no fingerprint.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final

RECENT_S: Final = 2.0
"""The number of seconds after a change of a file. A further change after this time certainly gets a different time stamp."""
MAX_NAMES: Final = 10_000
"""A folder with more entries than this has no fingerprint."""


def folder_fingerprint(folder: Path, now: float, *, with_links: bool) -> str:
    """Return the fingerprint of a folder at ``now`` (seconds of the wall clock); "" if the folder has none. Blocking.

    A folder has none if it was changed recently, cannot be read, has too many entries, or contains entries that are neither files
    nor folders. With ``with_links``, the folder may also contain links; the content of their targets is not part of the
    fingerprint.
    """
    found = hashlib.sha256()
    newest = 0.0
    try:
        for number, (name, status) in enumerate(chain((("", folder.stat()),), _entries(os.fspath(folder)))):
            kind = stat.S_IFMT(status.st_mode)
            is_allowed = kind in (stat.S_IFREG, stat.S_IFDIR) or (with_links and kind == stat.S_IFLNK)
            if number > MAX_NAMES or not is_allowed:
                return ""
            newest = max(newest, status.st_ctime)
            about = (
                status.st_mode,
                status.st_size,
                status.st_dev,
                status.st_ino,
                status.st_mtime_ns,
                status.st_ctime_ns,
            )
            found.update(repr((name, about)).encode(errors="surrogateescape"))
    except OSError:
        return ""
    return found.hexdigest() if newest <= now - RECENT_S else ""


def _entries(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield everything below a folder with its path in the folder; links are not followed."""
    pending = [("", folder)]
    while pending:
        prefix, here = pending.pop()
        with os.scandir(here) as entries:
            for entry in entries:
                name, status = f"{prefix}/{entry.name}", entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    pending.append((name, entry.path))
                yield name, status
