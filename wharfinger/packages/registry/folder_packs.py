"""The manifests of packed folders, kept so that a folder whose files are unchanged is not packed again.

Packing compresses all files, and without this memory each scan of a repository would pack all its folders. So the manifest of
each folder is kept in memory, with a fingerprint of the folder (:mod:`~wharfinger.packages.files.folder_fingerprint`). A folder
with links is always packed again, because the fingerprint does not cover the targets of links.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from wharfinger.packages.files.folder_fingerprint import folder_fingerprint
from wharfinger.packages.registry.registry import Descriptor

MOST: Final = 1_000
"""The limit on the number of folders whose manifests are kept in memory."""


@dataclass(frozen=True, slots=True)
class PackedIdentity:
    """The data that is kept of a packed folder: the tag of its version ("" without a version), and its manifest."""

    tag: str
    descriptor: Descriptor
    data: bytes = field(repr=False)


class FolderPacks:
    """A cache of the identities that folders got when they were packed. All methods may be called from any thread. ``now``
    returns the wall-clock time in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._known: OrderedDict[Path, tuple[str, PackedIdentity]] = OrderedDict()
        self._lock = threading.Lock()

    def fingerprint(self, folder: Path) -> str:
        """Return the fingerprint of a folder; "" if no cached identity can be used for the folder. Blocking."""
        return folder_fingerprint(folder, self._now(), with_links=False)

    def find(self, folder: Path, fingerprint: str) -> PackedIdentity | None:
        """Return the identity that was kept for this fingerprint; None if there is none."""
        known = self._known.get(folder)
        return known[1] if known is not None and known[0] == fingerprint else None

    def keep(self, folder: Path, fingerprint: str, identity: PackedIdentity) -> None:
        """Keep the identity of a packed folder. ``fingerprint`` was computed before the packing; if the folder has changed since
        then, keep nothing.
        """
        if not fingerprint or self.fingerprint(folder) != fingerprint:
            return
        with self._lock:
            self._known[folder] = fingerprint, identity
            self._known.move_to_end(folder)
            while len(self._known) > MOST:
                self._known.popitem(last=False)
