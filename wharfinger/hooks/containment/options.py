"""The options for the containment of hooks, shared by ``wharfinger run`` and the tools of package authors."""

import argparse
import grp
import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, cast

from wharfinger.hooks.containment.containment import Containment
from wharfinger.hooks.containment.hook_users import HookUsers
from wharfinger.hooks.containment.sandbox import LEAST_VERSION

FILE_BYTES: Final = 256 * 1024 * 1024
"""The default limit for the size of a file that a hook writes."""
_NONE: Final = "none"
_SIZE: Final = re.compile(r"(\d{1,15})(Ki|Mi|Gi|)")
_UNITS: Final = {"": 1, "Ki": 1024, "Mi": 1024**2, "Gi": 1024**3}
_USERS: Final = re.compile(r"(\d{1,10})-(\d{1,10})")
SUBORDINATE: Final = (Path("/etc/subuid"), Path("/etc/subgid"))
_SUBORDINATE: Final = re.compile(r"^(?P<owner>[^:\n]+):(?P<first>\d{1,10}):(?P<count>\d{1,10})[ \t]*$", re.MULTILINE)
_VERSION: Final = re.compile(r"bubblewrap (\d{1,4})\.(\d{1,4})")
_VERSION_S: Final = 10.0
_MAX_UID: Final = 2**32 - 2
_MAX_USERS: Final = 10_000


class ContainmentError(Exception):
    """The options cannot be fulfilled here; the message says what to change."""


def add_containment_options(parser: argparse.ArgumentParser) -> None:
    """Add the options about the containment of hooks to a command's parser; `containment_of` reads them."""
    group = parser.add_argument_group(
        "containment of hooks", "limits on runs of hooks; a SIZE is a number of bytes, or a number with Ki, Mi or Gi"
    )
    group.add_argument(
        "--hook-users",
        type=_users,
        default=None,
        metavar="FIRST-LAST",
        help="give each run of a hook a user of its own; FIRST-LAST is a range of user IDs that nothing else on the machine "
        "uses; needs root",
    )
    group.add_argument(
        "--hook-sandbox",
        nargs="?",
        const="bwrap",
        default=None,
        metavar="BWRAP",
        help="run each hook in a sandbox of bubblewrap; BWRAP is the program to use (if BWRAP is left out: bwrap "
        "from $PATH; without this option: no sandbox)",
    )
    sizes: tuple[tuple[str, int | None, str], ...] = (
        ("memory", None, "limit on the address space of each process of a hook"),
        ("file-size", FILE_BYTES, "limit on the size of each file that a hook writes"),
    )
    for name, default, what in sizes:
        shown = f"{default // 1024**2}Mi" if default is not None else _NONE
        group.add_argument(
            f"--hook-{name}",
            type=size_of,
            default=default,
            metavar="SIZE",
            help=f"{what}; none: no limit (default: {shown})",
        )
    counts = (
        (
            "processes",
            "limit on the processes of a run; needs --hook-users, or --hook-sandbox and a daemon that does not run as root",
        ),
        ("open-files", "limit on the open files of each process of a hook"),
    )
    for name, what in counts:
        group.add_argument(
            f"--hook-{name}", type=_count, default=None, metavar="N", help=f"{what} (default: the daemon's own limit)"
        )


def _check_bubblewrap(program: str) -> None:
    """Raise ContainmentError if this bubblewrap is too old to limit the memory of a sandbox's folders."""
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=_VERSION_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise ContainmentError(f"--hook-sandbox: {program} does not print its version: {error}") from error
    found = _VERSION.search(said.stdout)
    if found is None or (int(found[1]), int(found[2])) < LEAST_VERSION:
        wanted = ".".join(map(str, LEAST_VERSION))
        raise ContainmentError(
            f"--hook-sandbox: {program} is {said.stdout.strip()[:80]!r}, and {wanted} or newer is needed"
        )


def containment_of(
    args: argparse.Namespace,
    *,
    state_dir: Path | None = None,
    socket: Path | None = None,
    extra_binds: Mapping[str, Path] | None = None,
) -> Containment:
    """Return the containment that the options ask for.

    ``state_dir`` and ``socket`` are the daemon's; ``extra_binds`` are additional mounts of a sandbox. Raises
    ContainmentError.
    """
    users = cast("tuple[int, int] | None", args.hook_users)
    named = cast("str | None", args.hook_sandbox)
    if users is not None:
        _check_users(*users)
    sandbox = shutil.which(named) if named is not None else None
    if named is not None and sandbox is None:
        raise ContainmentError(f"--hook-sandbox: no {named!r} on PATH; install bubblewrap, or name its program")
    if sandbox is not None:
        _check_bubblewrap(sandbox)
    return Containment(
        users=HookUsers(*users) if users is not None else None,
        sandbox=Path(sandbox).absolute() if sandbox is not None else None,
        memory_bytes=args.hook_memory,
        processes=args.hook_processes,
        open_files=args.hook_open_files,
        file_bytes=args.hook_file_size,
        state_dir=state_dir.resolve() if state_dir is not None else None,
        socket=socket.resolve() if socket is not None else None,
        extra_binds=extra_binds or {},
    )


def _check_users(first: int, last: int) -> None:
    """Check that nothing else uses these users, because all their processes will be killed. Raises ContainmentError."""
    if os.geteuid() != 0:
        raise ContainmentError("--hook-users: only root can run hooks as other users; leave it out")
    for number, whose in _numbers_of_others(first, last):
        raise ContainmentError(f"--hook-users {first}-{last}: {number} is {whose}; choose a range that is not in use")


def _numbers_of_others(first: int, last: int) -> Iterator[tuple[int, str]]:
    """Yield the IDs in the range that are in use already, each with its owner: the IDs of named users and groups, and the first
    ID of each range that is reserved for a user's containers (subuid(5)).
    """
    yield from ((user.pw_uid, user.pw_name) for user in pwd.getpwall() if first <= user.pw_uid <= last)
    yield from (
        (group.gr_gid, f"the group {group.gr_name}") for group in grp.getgrall() if first <= group.gr_gid <= last
    )
    for table in SUBORDINATE:
        with suppress(OSError):
            for found in _SUBORDINATE.finditer(table.read_text(errors="replace")):
                begin, count = int(found["first"]), int(found["count"])
                if begin <= last and first < begin + count:
                    yield max(first, begin), f"among the IDs that {table} gives to {found['owner']}"


def _users(text: str) -> tuple[int, int]:
    found = _USERS.fullmatch(text)
    if found is not None:
        first, last = int(found[1]), int(found[2])
        if 0 < first <= last <= _MAX_UID and last - first < _MAX_USERS:
            return first, last
    raise argparse.ArgumentTypeError(
        f"{text!r} is not a range of users like 200000-200015; 0 is not allowed, and a range has at most {_MAX_USERS} IDs"
    )


def size_of(text: str) -> int | None:
    """Return the bytes of a size such as ``512Mi``; None for ``none``. Raises ArgumentTypeError."""
    if text == _NONE:
        return None
    found = _SIZE.fullmatch(text)
    if found is None or int(found[1]) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size like 1048576, 512Mi or none")
    return int(found[1]) * _UNITS[found[2]]


def _count(text: str) -> int:
    with suppress(ValueError):
        if (number := int(text)) > 0:
            return number
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
