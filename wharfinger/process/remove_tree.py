"""The removal of a folder with hostile content: any depth, any permissions, links to anywhere.

A folder that is found inside the tree is first moved up to the tree's top, and emptied there. So only a few descriptors are
open at a time, no path has more than one component, and every name is looked up in an open folder, so that a link is never
followed. In contrast, ``shutil.rmtree`` recurses, and fails on a folder nested a thousand levels deep; walking by paths fails
when a path gets longer than the kernel accepts.
"""

import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

_HOLD: Final = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
_LIST: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_OURS: Final = 0o700


def remove_tree(path: Path, *, first: Iterable[str] = ()) -> None:
    """Remove a folder with its content. Entries named in ``first``, such as files with secrets, are removed first.

    Blocking. Raises OSError: FileNotFoundError if there is no folder, NotADirectoryError if the path is a link or a file,
    otherwise the first error, after everything that can be removed was removed.
    """
    empty_tree(path, first=first)
    path.rmdir()


def empty_tree(path: Path, *, first: Iterable[str] = ()) -> None:
    """Remove the content of the folder, and keep the folder itself. Everything else is as in `remove_tree`."""
    top = _opened(path, None)
    try:
        _Removal(top).run(first)
    finally:
        os.close(top)


class _Removal:
    """The emptying of one folder, ``top``."""

    def __init__(self, top: int) -> None:
        self._top = top
        self._prefix = f".{secrets.token_hex(8)}-"
        self._moved = 0
        self._fault: OSError | None = None

    def run(self, first: Iterable[str]) -> None:
        """Remove all entries of the folder, those named in ``first`` before the others. If anything fails, continue, and raise
        the first OSError at the end.
        """
        for name in first:
            # The entry may not exist, or may be a folder, which is removed with the other folders.
            with suppress(OSError):
                os.unlink(name, dir_fd=self._top)
        pending = self._emptied(self._top)
        while pending:
            pending += self._removed(pending.pop())
        if self._fault is not None:
            raise self._fault

    def _removed(self, name: str) -> list[str]:
        """Remove a folder that is directly below the top. The folders in it are moved to the top
        first; return their new names.
        """
        try:
            folder = _opened(name, self._top)
        except OSError as error:
            self._note(error)
            return []
        try:
            found = self._emptied(folder)
        finally:
            os.close(folder)
        self._try_rmdir(name)
        return found

    def _emptied(self, folder: int) -> list[str]:
        """Empty ``folder``, which is the top folder or directly below it, except for the folders in it. Move these folders to
        the top folder if they are not there yet, and return their names there.
        """
        found: list[str] = []
        for name in os.listdir(folder):
            try:
                if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                    os.unlink(name, dir_fd=folder)
                elif folder == self._top:
                    found.append(name)
                else:
                    found.append(self._moved_up(name, folder))
            except OSError as error:
                self._note(error)
        return found

    def _moved_up(self, name: str, folder: int) -> str:
        os.close(_opened(name, folder))  # this adds the write permission, without which a folder cannot be moved
        self._moved += 1
        new = f"{self._prefix}{self._moved}"
        os.rename(name, new, src_dir_fd=folder, dst_dir_fd=self._top)
        return new

    def _try_rmdir(self, name: str) -> None:
        try:
            os.rmdir(name, dir_fd=self._top)
        except OSError as error:
            self._note(error)

    def _note(self, error: OSError) -> None:
        self._fault = self._fault or error


def _opened(name: Path | str, inside: int | None) -> int:
    """Open a folder, and give its owner all permissions on it. Raises OSError."""
    held = os.open(name, _HOLD, dir_fd=inside)
    try:
        if os.fstat(held).st_mode & _OURS != _OURS:
            Path(f"/proc/self/fd/{held}").chmod(_OURS)  # the opened folder, even if another one has its name by now
        return os.open(".", _LIST, dir_fd=held)
    finally:
        os.close(held)
