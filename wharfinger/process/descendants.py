"""The search for all processes of a run, in one scan of /proc.

The *leader* of a run is the child that the daemon started. A process belongs to the run if it has one of four signs:

* It is in the process group of the leader. One signal reaches the whole group.
* It is in the session of the leader. A shell with job control puts every pipeline into a new group, but not into a new session.
* Its environment contains the run's marker, a random token. A program that calls ``setsid`` keeps its environment.
* Its user is the run's user, if the run has a user of its own. Without privileges, a process cannot change its user.

Without a user of its own, a process that leaves the session *and* drops its environment (``setsid env -i``) is not found.

A process that started before the leader does not belong to the run. The kernel reuses pids, so a pid alone proves nothing: the
group and the session count only if it is *proven* that the leader's pid still belongs to the run. There are three proofs: the
leader is our own child and not reaped (``held``); the process with this pid has the recorded start time; or a process with the
token is in the session of this number (the kernel does not reuse a pid while a group or a session has the same number).
"""

import errno
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from wharfinger.process.proc_stat import ProcessStat, parse_start_ticks, parse_stat, parse_tokens, parse_uid

ENVIRON_BYTES_MAX: Final = 8 * 1024 * 1024
"""The largest environment that is read; the kernel allows 6 MiB with the arguments (execve(2), "Limits on size")."""
_READ_BYTES: Final = 128 * 1024
YOUNG_S: Final = 1.0
"""A time, in seconds, in which the kernel cannot use up all pids (there are at least 32,768), and so does not reuse one."""
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_STAT_BYTES: Final = 4 * 1024
"""The size in bytes of one read of ``stat`` (a name and about 50 numbers), ``status`` or ``loadavg``."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The signs by which the processes of a run are found. ``pid`` is the number of the leader, of its group and of its session.

    ``held`` is true if the leader is a child of this process that is not reaped. `belonging` leaves such a leader out, because
    another task waits for its end. If ``pid`` is 0, only the token and the user count. ``uid`` is the run's own user, which is
    never root; 0 if the run has no user of its own.

    Some leaders are started before there is work for them, and start no process until they get it. For such a leader,
    ``work_number`` is the last pid that the kernel had given out (`last_pid`) when the leader got its work, and ``work_ticks``
    is the time of that moment (`ticks_now`). If they are 0, the leader began its work when it was started.
    """

    token: str
    pid: int = 0
    start_ticks: int = 0
    held: bool = False
    uid: int = 0
    work_number: int = 0
    work_ticks: int = 0


@dataclass(frozen=True, slots=True)
class Seen:
    """A process as the scan saw it. ``undecided``: the process was inside ``execve``, so it is not known which tokens are in
    its environment.

    ``uid`` is the process's real user, or 0 if the scan did not read users.
    """

    stat: ProcessStat
    tokens: frozenset[str]
    undecided: bool
    uid: int = 0


def belonging(seen: Iterable[Seen], mark: Mark) -> list[Seen]:
    """Return the processes that belong to ``mark``, zombies included. The leader is left out if the mark is ``held``. Pure."""
    return belonging_to_each(seen, [mark])[0]


def belonging_to_each(seen: Iterable[Seen], marks: Sequence[Mark]) -> list[list[Seen]]:
    """Return for each mark, in the order of ``marks``, the processes that `belonging` would return."""
    signs = _Signs(marks)
    pairs = [(one, number) for one in seen for number in signs.of(one)]
    proven = {number for one, number in pairs if marks[number].held or _proves(one, marks[number])}
    found: list[list[Seen]] = [[] for _ in marks]
    for one, number in pairs:
        mark = marks[number]
        if mark.token in one.tokens or number in proven or (mark.uid > 0 and one.uid == mark.uid):
            found[number].append(one)
    return found


class _Signs:
    """An index of many marks by token, by the leader's pid and by user, so that a process need not be compared with every
    mark.
    """

    def __init__(self, marks: Sequence[Mark]) -> None:
        self._marks = marks
        self._by_token: dict[str, list[int]] = {}
        self._by_pid: dict[int, list[int]] = {}
        self._by_uid: dict[int, list[int]] = {}
        for number, mark in enumerate(marks):
            self._by_token.setdefault(mark.token, []).append(number)
            if mark.pid > 0:
                self._by_pid.setdefault(mark.pid, []).append(number)
            if mark.uid > 0:
                self._by_uid.setdefault(mark.uid, []).append(number)

    def of(self, one: Seen) -> set[int]:
        """Return the indices of the marks whose token, group, session or user the process has.

        A mark is left out if the process is older than the mark's leader, or if the process is the leader and the mark is
        ``held``.
        """
        stat = one.stat
        signs = {*self._by_pid.get(stat.pgid, ()), *self._by_pid.get(stat.sid, ()), *self._by_uid.get(one.uid, ())}
        for token in one.tokens:
            signs.update(self._by_token.get(token, ()))
        return {number for number in signs if self._may_belong(stat, self._marks[number])}

    @staticmethod
    def _may_belong(stat: ProcessStat, mark: Mark) -> bool:
        return stat.start_ticks >= mark.start_ticks and not (mark.held and stat.pid == mark.pid)


def _proves(one: Seen, mark: Mark) -> bool:
    """Return whether this process proves that the pid of the run's leader has not been reused since the run began."""
    if one.stat.pid == mark.pid:
        return one.stat.start_ticks == mark.start_ticks
    return mark.token in one.tokens and one.stat.sid == mark.pid


def scan(since_ticks: int, *, users: bool = False, above: int = 0) -> list[Seen]:
    """Return all processes in /proc that started at or after ``since_ticks`` (clock ticks since boot), except kernel
    threads and this one.

    ``users``: read the user of each process as well. ``above``: only processes with a higher pid are read. Blocking: about
    ten microseconds for each process that is read.
    """
    # A daemon that was started by a hook of an earlier daemon has the token of that hook's run, and must not kill itself.
    me = os.getpid()
    found = (read_process(pid, since_ticks, users=users) for pid in _numbers("/proc") if pid > above and pid != me)
    return [one for one in found if one is not None]


def highest_unrelated_pid(marks: Sequence[Mark], newest_pid: bytes) -> int:
    """Return a pid such that all processes that belong to ``marks``, except the leaders, have higher pids.

    ``newest_pid`` is the pid that the kernel gave out last. A leader starts nothing before it gets its work. The kernel gives out
    pids in ascending order, and begins anew after the highest one (``alloc_pid``). It needs far longer than YOUNG_S to give out
    all of them. Consider the last pid at the time when a leader got its work. All descendants of this leader have higher pids if
    three conditions hold:

    * all leaders are children of this process that are not reaped, and no run has a user of its own;
    * all leaders got their work less than YOUNG_S ago;
    * ``newest_pid`` is not lower than any of these last pids.

    Otherwise the result is 0. A process that may choose its pid (CAP_CHECKPOINT_RESTORE) is found only if the run has a user of
    its own. The same holds for a process that was started with ``setsid env -i``.
    """
    oldest = min(mark.work_ticks or mark.start_ticks for mark in marks)
    numbers = [mark.work_number or mark.pid - 1 for mark in marks]
    plain = all(mark.held and mark.pid > 0 and mark.uid == 0 for mark in marks)
    if (
        not plain
        or ticks_now() - oldest >= YOUNG_S * _TICKS
        or not newest_pid.isdigit()
        or int(newest_pid) < max(numbers)
    ):
        return 0
    return min(numbers)


def ticks_now() -> int:
    """Return the time since boot in clock ticks, the unit in which the kernel records the starts of processes."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS)


def read_process(pid: int, since_ticks: int = 0, *, users: bool = False) -> Seen | None:
    """Return one process as a scan sees it; None if it is gone, has started before ``since_ticks``, or is a kernel thread."""
    line = _read(f"/proc/{pid}/stat", _STAT_BYTES, _STAT_BYTES)
    if not line or parse_start_ticks(line) < since_ticks:  # most are older, so this is checked first
        return None
    stat = parse_stat(line)
    if stat.kernel_thread:
        return None
    uid = parse_uid(_read(f"/proc/{pid}/status", _STAT_BYTES, _STAT_BYTES) or b"") if users else 0
    if not stat.alive:
        return Seen(stat, frozenset(), undecided=False, uid=uid)
    environ = _read(f"/proc/{pid}/environ", ENVIRON_BYTES_MAX)
    if not environ and stat.threads > 1:  # the main thread may have ended before the others
        environ = _environ_of_threads(pid)
    if environ is None:  # gone, or another user's: its session may still identify it
        return Seen(stat, frozenset(), undecided=False, uid=uid)
    undecided = not environ and stat.environ_bytes != 0 and not stat.exiting
    return Seen(stat, parse_tokens(environ), undecided, uid)


def _environ_of_threads(pid: int) -> bytes | None:
    """Return the environment of a process whose main thread has ended, read through another thread of the process.

    Return None if no thread can be read.
    """
    try:
        threads = _numbers(f"/proc/{pid}/task")
    except (FileNotFoundError, ProcessLookupError):
        return None
    found = (_read(f"/proc/{pid}/task/{thread}/environ", ENVIRON_BYTES_MAX) for thread in threads)
    return next((environ for environ in found if environ is not None), None)


def read_stat(pid: int) -> ProcessStat | None:
    """Read /proc/<pid>/stat; return None if there is no such process."""
    line = _read(f"/proc/{pid}/stat", _STAT_BYTES, _STAT_BYTES)
    return parse_stat(line) if line else None


def last_pid() -> bytes:
    """Return the pid that was given out last (proc_loadavg(5)): while this number stays the same, no process was started."""
    return (_read("/proc/loadavg", _STAT_BYTES, _STAT_BYTES) or b"").split()[-1]


def _numbers(folder: str) -> list[int]:
    with os.scandir(folder) as entries:
        return [int(entry.name) for entry in entries if entry.name.isdecimal()]


def _read(path: str, limit: int, at_once: int = _READ_BYTES) -> bytes | None:
    """Return the content of a file of /proc; None if the process is gone, may not be read, or has unmapped the memory that
    contains the content.

    ``at_once``: the size of the buffer for one read; allocating a large buffer costs more than the read itself.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    try:
        data = os.read(fd, at_once)
        if len(data) < at_once:  # all there is
            return data
        parts, size = [data], len(data)
        while size < limit and (data := os.read(fd, at_once)):
            parts.append(data)
            size += len(data)
        return b"".join(parts)
    except OSError as error:
        if error.errno in {errno.ESRCH, errno.EACCES, errno.EPERM, errno.EIO}:
            return None
        raise
    finally:
        os.close(fd)
