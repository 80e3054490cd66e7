"""The killing of all processes of a run, in blocking rounds for a worker thread, until none is left or a time limit is reached.

No process is killed by a pid that may have been reused meanwhile:

* ``killpg`` is used only for a held leader (our own child, not reaped, so its pid cannot be reused). ``killpg`` is atomic with
  respect to ``fork``: no child of the group escapes.
* Every other process is first *pinned* by a pidfd, and then checked again. If the pidfd can still be signaled after that check,
  the pid belonged to the pinned process all the time. So the pidfd kills exactly the process that was checked. All pins of a
  run are held during the check: one process may prove that a session belongs to the run
  (:mod:`wharfinger.process.descendants`), and it must exist at the same time as the other members of that session.

A scan may miss processes that start while /proc is read. So an empty scan only counts if no pid was given out while it ran
(``last_pid``), or if a second scan is empty too.

A round scans once for all of its runs. So its cost depends on how many processes the machine has, and not on the number of
runs. Runs join and leave between rounds (:mod:`wharfinger.process.shared_sweep`). A round kills processes in pieces
of about PINS_MAX, and waits at most PATIENCE_S for each piece, so a process that hangs in the kernel hardly delays other runs.
"""

import errno
import os
import select
import signal
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Final

from wharfinger.process.descendants import (
    Mark,
    Seen,
    belonging_to_each,
    highest_unrelated_pid,
    last_pid,
    read_process,
    scan,
)


@dataclass(frozen=True, slots=True)
class SweepResult:
    """The number of processes that were killed, and the number of processes that are ``left`` alive because they belong to
    another user or hang in the kernel.
    """

    killed: int
    left: int


PATIENCE_S: Final = 0.05
"""The time, in seconds, for which a round waits for killed processes to die; the next round checks the remaining ones."""
PINS_MAX: Final = 256
"""The number of pidfds that a sweep should not exceed at a time. It opens more for a run that has more processes than this,
because it opens the pidfds of all processes of a run together.
"""
_EXHAUSTED_MS: Final = 10

Identity = tuple[int, int]
"""The pid and the start time of a process, which identify it until the next boot."""
_UNSEEN: Final[Identity] = (0, 0)
"""A placeholder that is recorded in place of the identities of processes, if no process could be read but some may exist."""


class SweptRun:
    """One run that is being swept: the findings of its rounds so far, and ``result`` once the rounds are over."""

    def __init__(self, mark: Mark, limit_s: float) -> None:
        self.mark = mark
        self.result: SweepResult | None = None
        self.killed: set[Identity] = set()
        self.left: frozenset[Identity] = frozenset()
        self._deadline = time.monotonic() + limit_s
        self._unkillable: set[Identity] = set()
        self._was_empty = False

    def freeze_group(self) -> None:
        """Send SIGSTOP to the process group of the run, so that many or busy processes do not disturb the scan.

        Do nothing if the leader's pid may belong to another process (not ``held``).
        """
        self._signal_group(signal.SIGSTOP)

    def kill_group(self) -> None:
        """Send SIGKILL to the process group of the run, if the leader's pid still belongs to the run (``held``).

        Members that this process may not kill are found and reported by the scan.
        """
        self._signal_group(signal.SIGKILL)

    def _signal_group(self, number: signal.Signals) -> None:
        if self.mark.held:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.mark.pid, number)

    def kill(self, one: Seen, pidfd: int) -> bool:
        """Kill a process that the caller has checked, through its pidfd. Return whether the caller has to wait for the process
        to die.
        """
        if not one.stat.alive:
            _reap_adopted(pidfd)
        elif _kill(pidfd):
            self.killed.add(_identity(one))
            return True
        else:
            self._unkillable.add(_identity(one))
        return False

    def record_round(self, living: frozenset[Identity], *, decided: bool, may_have_missed: bool) -> None:
        """Record the result of one round: ``living`` has the processes that were found alive.

        ``decided`` is False if it remained unknown whether some process belongs to the run. ``may_have_missed`` is True if the
        round may have missed processes.
        """
        empty = not living - self._unkillable
        if (empty and decided and (self._was_empty or not may_have_missed)) or self._is_past_deadline():
            self._end(living)
        self._was_empty = empty and (decided or self._was_empty)

    def record_unreadable(self) -> None:
        """Record that no process could be read in this round. If the leader is held, kill its process group."""
        self.kill_group()
        if self._is_past_deadline():
            self._end(frozenset([_UNSEEN]))

    def _is_past_deadline(self) -> bool:
        return time.monotonic() >= self._deadline

    def _end(self, living: frozenset[Identity]) -> None:
        self.killed -= living
        self.left = living
        self.result = SweepResult(len(self.killed), len(living))


def sweep(marks: Sequence[Mark], limit_s: float) -> SweepResult:
    """Send SIGKILL to all processes that belong to one of ``marks``, until none is found, for at most ``limit_s``.

    Blocking. Zombies of these runs that this process has adopted (as init or a subreaper) are reaped. A *held* leader (a child
    of this process that is not reaped) is killed with its group, but the sweep does not count it, wait for it, or reap it. If
    this process is out of file descriptors or memory until the time limit, no process can be read; then one process is reported
    as left.
    """
    runs = [SweptRun(mark, limit_s) for mark in marks]
    while unfinished := [swept for swept in runs if swept.result is None]:
        sweep_round(unfinished)
    left = frozenset[Identity]().union(*(swept.left for swept in runs))
    killed = set[Identity]().union(*(swept.killed for swept in runs))
    return SweepResult(len(killed - left), len(left))


def sweep_round(runs: Sequence[SweptRun]) -> None:
    """Scan once for all ``runs``, kill the processes found, and set ``result`` of the runs that are over now.

    Blocking, for the scan and at most PATIENCE_S for each piece of about PINS_MAX processes.
    """
    try:
        _round(runs)
    except OSError as error:
        if error.errno not in {errno.EMFILE, errno.ENFILE, errno.ENOMEM}:
            raise
        for swept in runs:
            swept.record_unreadable()
        select.poll().poll(_EXHAUSTED_MS)  # other threads may release some


def _round(runs: Sequence[SweptRun]) -> None:
    marks = [swept.mark for swept in runs]
    for swept in runs:
        swept.freeze_group()
    newest_pid = last_pid()
    seen = scan(
        min(mark.start_ticks for mark in marks),
        users=_needs_users(marks),
        above=highest_unrelated_pid(marks, newest_pid),
    )
    youngest_undecided = max((one.stat.start_ticks for one in seen if one.undecided), default=-1)
    found = belonging_to_each(seen, marks)
    for part in _parts(list(zip(runs, found, strict=True))):
        _kill_pinned(part)
    may_have_missed = last_pid() != newest_pid
    for swept, candidates in zip(runs, found, strict=True):
        living = frozenset(_identity(one) for one in candidates if one.stat.alive)
        swept.record_round(living, decided=youngest_undecided < swept.mark.start_ticks, may_have_missed=may_have_missed)


Found = Sequence[tuple[SweptRun, Sequence[Seen]]]
"""Pairs of a run and the processes that were found for it."""


def _parts(found: Found) -> Iterator[Found]:
    """Yield ``found`` in pieces of about PINS_MAX processes; all processes of one run are in one piece."""
    part: list[tuple[SweptRun, Sequence[Seen]]] = []
    size = 0
    for swept, candidates in found:
        if part and size + len(candidates) > PINS_MAX:
            yield part
            part, size = [], 0
        part.append((swept, candidates))
        size += len(candidates)
    yield part


def _kill_pinned(found: Found) -> None:
    """Open a pidfd for each process, so that its pid cannot mean another process by now. Then check the processes again, kill
    them, and wait for at most PATIENCE_S until they are dead.
    """
    with ExitStack() as stack:
        pins: dict[int, int] = {}
        for pid in {one.stat.pid for _, candidates in found for one in candidates}:
            with suppress(ProcessLookupError):
                pins[pid] = fd = os.pidfd_open(pid)
                stack.callback(os.close, fd)
        users = _needs_users([swept.mark for swept, _ in found])
        again = [one for pid in pins if (one := read_process(pid, users=users)) is not None]
        sure = [one for one in again if _still_exists(pins[one.stat.pid])]
        dying: set[int] = set()
        for (swept, _), own in zip(found, belonging_to_each(sure, [swept.mark for swept, _ in found]), strict=True):
            dying.update(pins[one.stat.pid] for one in own if swept.kill(one, pins[one.stat.pid]))
            swept.kill_group()  # after the single kills, or members of the group would not be counted
        for fd in _wait_dead(dying):
            _reap_adopted(fd)


def _needs_users(marks: Iterable[Mark]) -> bool:
    return any(mark.uid > 0 for mark in marks)


def _identity(one: Seen) -> Identity:
    return one.stat.pid, one.stat.start_ticks


def _still_exists(pidfd: int) -> bool:
    """Return whether the process behind ``pidfd`` still exists (alive or zombie), so that its pid cannot have been reused."""
    try:
        signal.pidfd_send_signal(pidfd, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _kill(pidfd: int) -> bool:
    """Send SIGKILL; return False if this user has no permission. A process that has ended meanwhile counts as killed."""
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def _wait_dead(pidfds: Collection[int]) -> list[int]:
    """Wait for at most PATIENCE_S until all processes are dead; return the pidfds of the dead ones."""
    waiting = select.poll()
    for fd in pidfds:
        waiting.register(fd, select.POLLIN)
    deadline, left, dead = time.monotonic() + PATIENCE_S, len(pidfds), list[int]()
    while left and (remaining := deadline - time.monotonic()) > 0:
        for fd, _ in waiting.poll(remaining * 1000):
            waiting.unregister(fd)
            dead.append(fd)
            left -= 1
    return dead


def _reap_adopted(pidfd: int) -> None:
    """Reap a zombie that became our child because its parent ended first; other zombies are not our children."""
    with suppress(ChildProcessError):
        os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)
