"""The launcher: a program that starts another program within limits of the kernel, or as another user. This module only builds
command lines and checks programs; it starts none.

The child begins as ``setpriv`` or ``prlimit`` (util-linux), which apply the user and the limits to themselves and then become
the program: same pid, same session, same environment. The alternatives do not work: a process with threads must not run its own
code in the child between fork and exec, and limits that are set from outside (prlimit(2)) come too late for a program that
forks immediately. ``setpriv`` comes first, so that a sandbox (``command.wrapper``) is started as the command's user. The
sandbox comes next, and ``prlimit`` last, so that the limits apply to the program inside its sandbox.
docs/decisions/0011-hook-containment.md describes the rejected options and their costs.
"""

import errno
import os
import resource
import shutil
import stat
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

from wharfinger.process.command import Command, Limits, User
from wharfinger.process.errors import SpawnError

_LIMITS: Final = (
    ("as", "memory_bytes", resource.RLIMIT_AS),
    ("nproc", "processes", resource.RLIMIT_NPROC),
    ("nofile", "open_files", resource.RLIMIT_NOFILE),
    ("fsize", "file_bytes", resource.RLIMIT_FSIZE),
)
_ELF: Final = b"\x7fELF"
_FIRST_LINE: Final = 256  # BINPRM_BUF_SIZE of the kernel's include/uapi/linux/binfmts.h


def launched(command: Command, limits: Limits) -> tuple[str, ...]:
    """Return the command line that runs ``command`` as its user, in its sandbox (``command.wrapper``), and within ``limits``.

    This is the command's own command line if the command needs no launcher. Raises SpawnError if a launcher is not installed.
    """
    return (*_as_user(command), *command.wrapper, *_with_limits(limits), *command.argv)


def needs_launcher(command: Command, limits: Limits) -> bool:
    """Return whether the program has to be started by a launcher. If so, the caller must call `check` first, because a launcher
    would hide the kernel's errors.
    """
    return command.user is not None or bool(command.wrapper) or bool(_options(limits))


def _as_user(command: Command) -> tuple[str, ...]:
    user = command.user
    if user is None:
        return ()
    # A sandbox may itself be a setuid program, which --no-new-privs would break; the sandbox applies that restriction to the
    # program.
    forbid = () if command.wrapper else ("--no-new-privs",)
    return (_find_tool("setpriv"), f"--reuid={user.uid}", f"--regid={user.gid}", "--clear-groups", *forbid, "--")


def _with_limits(limits: Limits) -> tuple[str, ...]:
    options = _options(limits)
    return (_find_tool("prlimit"), *options, "--") if options else ()


def _options(limits: Limits) -> tuple[str, ...]:
    return tuple(_each_option(limits))


def _each_option(limits: Limits) -> Iterator[str]:
    """Yield prlimit's options. No limit exceeds this process's own hard limit, since only the superuser may raise that."""
    wanted = (limits.memory_bytes, limits.processes, limits.open_files, limits.file_bytes)
    for (name, _, number), value in zip(_LIMITS, wanted, strict=True):
        if value is not None:
            _, hard = resource.getrlimit(number)
            bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
            yield f"--{name}={bound}:{bound}"


def _find_tool(tool: str) -> str:
    path = _which(tool, os.environ.get("PATH", os.defpath))
    if path is None or not os.path.exists(path):  # noqa: PTH110 - this is done for each run
        _which.cache_clear()
        path = _which(tool, os.environ.get("PATH", os.defpath))
    if path is None:
        raise SpawnError(
            tool, "it is not on PATH", "install util-linux, or run hooks without limits and without separate users"
        )
    return path


@lru_cache(maxsize=16)
def _which(tool: str, search_path: str) -> str | None:
    return shutil.which(tool, path=search_path)


def check(command: Command, found: Path | None) -> None:
    """Check that the program, the file ``found``, can be started as the command's user.

    Blocking. Raises the OSError that the kernel would return, or SpawnError if the user may not enter a folder above the file,
    its interpreter or the working folder.
    """
    if found is None:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    if command.user is not None:
        for folder in (found.resolve(), command.cwd.resolve()):
            _check_folders_above(folder, command.user)
    status = found.stat()
    if not stat.S_ISREG(status.st_mode) or not _has_permission(status, command.user, stat.S_IXUSR):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))
    try:
        with found.open("rb") as file:
            first = file.read(_FIRST_LINE)
    except PermissionError:  # a program that may be executed but not read
        return
    if first.startswith(b"#!"):
        words = first[2:].split(b"\n")[0].split()
        if not words or not os.path.exists(words[0]):  # noqa: PTH110 - bytes
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        if command.user is not None:
            _check_folders_above(Path(os.fsdecode(words[0])).resolve(), command.user)
    elif not first.startswith(_ELF):
        raise OSError(errno.ENOEXEC, os.strerror(errno.ENOEXEC))


def _check_folders_above(path: Path, user: User) -> None:
    """Check that the user may enter all folders above the path."""
    for folder in path.parents:
        if not _has_permission(folder.stat(), user, stat.S_IXUSR):
            why = f"user {user.uid} may not enter its folder {folder}"
            raise SpawnError(str(path), why, f"allow it with chmod o+x {folder}")


def _has_permission(status: os.stat_result, user: User | None, bit: int) -> bool:
    """Return whether a file's mode gives a permission to the user; if ``user`` is None or root, whether it gives the permission
    to anyone.

    ``bit`` is the owner's bit for this permission, such as S_IXUSR.
    """
    if user is None or user.uid == 0:
        return bool(status.st_mode & (bit | bit >> 3 | bit >> 6))
    shift = 0 if status.st_uid == user.uid else 3 if status.st_gid == user.gid else 6
    return bool(status.st_mode & bit >> shift)
