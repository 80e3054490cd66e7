"""Finding everybody who belongs to a run, in one scan of /proc.

A run's processes are told by three signs:

* the process group of the leader, which signals reach at once;
* its session: a shell with job control gives every pipeline a group of its own, but not a session;
* the marker, a random token in the environment: a daemon that called ``setsid`` keeps it.

Who leaves the session *and* throws its environment away (``setsid env -i``) is out of reach; that would take a cgroup.

Numbers are reused, so a number alone proves nothing. Who started before the leader does not belong. The group and the
session count only where the number is *proven* to still mean the run: the leader is our own child and not reaped
(``held``), or it is there with the start time on record, or somebody with the token is in that session (the kernel does
not give a number away while a group or a session bears it).
"""

import errno
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from wharfinger.process.proc_stat import ProcessStat, parse_stat, parse_tokens

ENVIRON_BYTES_MAX: Final = 8 * 1024 * 1024
"""The kernel allows 6 MiB for arguments and environment together (execve(2), "Limits on size")."""
_READ_BYTES: Final = 128 * 1024


@dataclass(frozen=True, slots=True)
class Mark:
    """What tells a run's processes from all others. ``pid`` is the leader's, and so the group's and the session's.

    ``held``: the leader is a child of this process that nobody has reaped; it is left alone, as its end is waited for
    elsewhere. Without a ``pid`` (0) only the token counts.
    """

    token: str
    pid: int = 0
    start_ticks: int = 0
    held: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """A process as the scan saw it. ``undecided``: it was inside ``execve``, so whether it has a token is not known."""

    stat: ProcessStat
    tokens: frozenset[str]
    undecided: bool


def belonging(seen: Iterable[Seen], mark: Mark) -> list[Seen]:
    """Those who belong to ``mark``, zombies included, a held leader excepted. Pure."""
    young = [one for one in seen if one.stat.start_ticks >= mark.start_ticks]
    proven = mark.pid > 0 and (mark.held or any(_proves(one, mark) for one in young))
    return [
        one
        for one in young
        if (mark.token in one.tokens or (proven and mark.pid in (one.stat.pgid, one.stat.sid)))
        and not (mark.held and one.stat.pid == mark.pid)
    ]


def _proves(one: Seen, mark: Mark) -> bool:
    """Whether this process shows that the number of the leader still stands for the run."""
    if one.stat.pid == mark.pid:
        return one.stat.start_ticks == mark.start_ticks
    return mark.token in one.tokens and one.stat.sid == mark.pid


def scan(since_ticks: int) -> list[Seen]:
    """Everybody in /proc who started at or after ``since_ticks`` (clock ticks since boot), but kernel threads and ourselves.

    Blocking: some ten microseconds a process.
    """
    me = (
        os.getpid()
    )  # a daemon that a hook of its dead forerunner started has that one's token, and must not end itself
    found = (look(pid, since_ticks) for pid in _numbers("/proc") if pid != me)
    return [one for one in found if one is not None]


def look(pid: int, since_ticks: int = 0) -> Seen | None:
    """One process; None when it is gone, too old, or a kernel thread."""
    stat = read_stat(pid)
    if stat is None or stat.kernel_thread or stat.start_ticks < since_ticks:
        return None
    if not stat.alive:
        return Seen(stat, frozenset(), undecided=False)
    environ = _read(f"/proc/{pid}/environ", ENVIRON_BYTES_MAX)
    if not environ and stat.threads > 1:  # the main thread may have ended before the others
        environ = _environ_of_threads(pid)
    if environ is None:  # gone, or another user's: the session may still tell
        return Seen(stat, frozenset(), undecided=False)
    undecided = not environ and stat.environ_bytes != 0 and not stat.exiting
    return Seen(stat, parse_tokens(environ), undecided)


def _environ_of_threads(pid: int) -> bytes | None:
    """The environment through a thread that still has it; None when none may be looked into."""
    try:
        threads = _numbers(f"/proc/{pid}/task")
    except (FileNotFoundError, ProcessLookupError):
        return None
    found = (_read(f"/proc/{pid}/task/{thread}/environ", ENVIRON_BYTES_MAX) for thread in threads)
    return next((environ for environ in found if environ is not None), None)


def read_stat(pid: int) -> ProcessStat | None:
    """/proc/<pid>/stat; None when there is no such process."""
    data = _read(f"/proc/{pid}/stat", _READ_BYTES)
    return parse_stat(data) if data else None


def last_pid() -> bytes:
    """The number given out last (proc_loadavg(5)): while it stays the same, no process was born."""
    return (_read("/proc/loadavg", _READ_BYTES) or b"").split()[-1]


def _numbers(folder: str) -> list[int]:
    with os.scandir(folder) as entries:
        return [int(entry.name) for entry in entries if entry.name.isdecimal()]


def _read(path: str, limit: int) -> bytes | None:
    """The content of a file of /proc; None when its process is gone, may not be looked into, or unmapped what is asked."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    try:
        data = os.read(fd, _READ_BYTES)
        if len(data) < _READ_BYTES:  # all there is
            return data
        parts, size = [data], len(data)
        while size < limit and (data := os.read(fd, _READ_BYTES)):
            parts.append(data)
            size += len(data)
        return b"".join(parts)
    except OSError as error:
        if error.errno in {errno.ESRCH, errno.EACCES, errno.EPERM, errno.EIO}:
            return None
        raise
    finally:
        os.close(fd)
