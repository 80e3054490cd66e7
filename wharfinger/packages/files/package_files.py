"""Access to the files of an unpacked package, but only to files that are small, regular and inside the package.

A tree comes from a registry or a user's folder. A link is followed only if its target is inside the tree, a pipe is never
waited for, and nothing is read beyond its limit. Errors name a file relative to the package.
"""

import errno
import os
import stat
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, type_name
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.packages.errors import ArtifactError

MAX_FILE: Final = 4 * 1024 * 1024
_BROKEN: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""The errors of a link that has no target, or that is part of a circle."""


@dataclass(frozen=True, slots=True)
class PackageFiles:
    """A reader of the files below ``root``; use `open_files`. Blocking."""

    root: Path

    def has_file(self, name: str) -> bool:
        """Return whether the package has this file."""
        path = self._inside(name)
        return path is not None and path.is_file()

    def has_folder(self, name: str) -> bool:
        """Return whether the package has this folder."""
        path = self._inside(name)
        return path is not None and path.is_dir()

    def names(self, folder: str, *, limit: int) -> tuple[str, ...]:
        """Return the sorted names in a folder; () if the folder does not exist. Raises ArtifactError for more than ``limit``
        names.
        """
        path = self._inside(folder)
        if path is None or not path.is_dir():
            return ()
        try:
            with os.scandir(path) as entries:
                found = [entry.name for entry in islice(entries, limit + 1)]
        except OSError as error:
            raise ArtifactError(f"{folder}: cannot be read: {error.strerror}") from error
        if len(found) > limit:
            raise ArtifactError(f"{folder}: more than {limit} files")
        return tuple(sorted(found))

    def read(self, name: str, *, limit: int = MAX_FILE) -> bytes | None:
        """Return the content of a file; None if it does not exist. Raises ArtifactError if it is not a regular file, or over
        ``limit``.
        """
        path = self._inside(name)
        if path is None:
            return None
        try:
            # Opening a pipe would wait for a writer. In the store only the daemon writes, so no file is replaced after the check.
            if not stat.S_ISREG(path.stat().st_mode):
                raise ArtifactError(f"{name}: not a file")
            with path.open("rb") as file:
                data = file.read(limit + 1)
        except OSError as error:
            raise ArtifactError(f"{name}: cannot be read: {error.strerror}") from error
        if len(data) > limit:
            raise ArtifactError(f"{name}: more than {limit} bytes")
        return data

    def read_object(self, name: str) -> JsonObject | None:
        """Return the object in a YAML or JSON file; {} for an empty file, None for a missing one.

        Raises ArtifactError, which names the file and the line.
        """
        data = self.read(name)
        if data is None:
            return None
        try:
            document = read_yaml(data, what=name)
        except FormatError as error:
            raise ArtifactError(str(error)) from error
        if document is None:
            return {}
        if not isinstance(document, dict):
            raise ArtifactError(f"{name}: expected an object, found {type_name(document)}")
        return document

    def _inside(self, name: str) -> Path | None:
        """Return the path of ``name``, links followed; None if it does not exist.

        Raises ArtifactError if it leaves the package.
        """
        path = self.root / name
        if not os.path.lexists(path):
            return None
        real = follow_links(path, name)
        if not real.is_relative_to(self.root):
            raise ArtifactError(f"{name}: a link that leaves the package; copy its target into the package")
        return real


def follow_links(path: Path, what: str) -> Path:
    """Return the path with links followed; errors name ``what``. Raises ArtifactError if a link is broken, or cannot be read."""
    try:
        return path.resolve(strict=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle, before Python 3.13
        if isinstance(error, OSError) and error.errno not in _BROKEN:
            raise ArtifactError(f"{what}: cannot be read: {error.strerror}; correct or remove it") from error
        raise ArtifactError(f"{what}: a broken link; remove it") from error


def open_files(tree: Path, name: str) -> PackageFiles:
    """Open the files of the package ``name`` in ``tree``, which may be a link. Raises ArtifactError if it is not a folder."""
    try:
        root = tree.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise ArtifactError(f"package {name}: its folder is missing; install the package again") from error
    if not root.is_dir():
        raise ArtifactError(f"package {name}: not a folder")
    return PackageFiles(root)
