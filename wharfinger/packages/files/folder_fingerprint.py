"""The fingerprint of a folder: the name, mode, size, inode and times of every entry. It shows, without reading any file, that
nothing in a folder has changed.

A file that is written gets another time of change, which no program can set. Only two writes within one tick of the clock may
have the same time, so a folder that was changed in the last RECENT_S has no fingerprint.
"""

import hashlib
import stat
from pathlib import Path
from typing import Final

from wharfinger.packages.files.disk_files import TooManyError, below

RECENT_S: Final = 2.0
"""The age, in seconds, from which on a change is certain to have another time than the next change."""


def folder_fingerprint(folder: Path, now: float, *, with_links: bool) -> str:
    """Return the fingerprint of a folder at ``now`` (seconds of the wall clock); "" if the folder has none. Blocking.

    A folder has none if it was changed recently, cannot be read, or contains entries that are neither files nor folders.
    ``with_links``: links are allowed, because only their own texts matter.
    """
    found = hashlib.sha256()
    newest = 0.0
    try:
        for name, status in (((), folder.stat()), *((name, status) for _, name, status in below(folder))):
            kind = stat.S_IFMT(status.st_mode)
            if kind not in (stat.S_IFREG, stat.S_IFDIR) and not (with_links and kind == stat.S_IFLNK):
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
    except (OSError, TooManyError):
        return ""
    return found.hexdigest() if newest <= now - RECENT_S else ""
