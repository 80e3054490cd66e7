"""Killing everybody who belongs to a run, until nobody is left: a blocking loop for a worker thread, bounded in time.

No process is killed by a number that may have changed hands meanwhile:

* ``killpg`` is used only for a held leader (our own child, not reaped: its number stays taken, zombie or not). It is
  atomic against ``fork``: no child of the group escapes.
* Everybody else is *pinned* by a pidfd first and looked at again afterwards. A pidfd that can still be signalled after
  the second look means that the number stood for the pinned process all the time in between, so the second look is about
  the very process that the pidfd kills. All pins are held while all are looked at, so that what proves a session
  (``descendants.belonging``) was there together with the members it proves.

Processes are born while /proc is read, and a scan may miss them: an empty scan counts when no number was given out
while it ran (``last_pid``), or when a second one is empty too.
"""

import errno
import os
import select
import signal
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Final

from wharfinger.process.descendants import Mark, Seen, belonging, last_pid, look, scan


@dataclass(frozen=True, slots=True)
class SweepResult:
    """How many were killed, and how many are left alive (not ours to kill, or hanging in the kernel)."""

    killed: int
    left: int


_EXHAUSTED_MS: Final = 10

Identity = tuple[int, int]
"""Number and start time."""


def sweep(marks: Sequence[Mark], limit_s: float) -> SweepResult:
    """SIGKILL to everybody who belongs to one of ``marks``, again until none is found, for at most ``limit_s``.

    Blocking. Adopted zombies of these runs (this process is init or a subreaper) are reaped on the way; held leaders
    are killed with their group, but neither counted, nor waited for, nor reaped. When this process is out of file
    descriptors or memory for all that time, one is reported as left, since nobody could be seen.
    """
    sweeper = _Sweeper(marks, time.monotonic() + limit_s)
    while True:
        try:
            result = sweeper.round()
        except OSError as error:
            if error.errno not in {errno.EMFILE, errno.ENFILE, errno.ENOMEM}:
                raise
            sweeper.kill_groups()
            select.poll().poll(_EXHAUSTED_MS)  # others may give some back
            result = SweepResult(len(sweeper.killed), 1) if sweeper.late() else None
        if result is not None:
            return result


class _Sweeper:
    """What one sweep knows: who was killed, and who turned out to be beyond its reach."""

    def __init__(self, marks: Sequence[Mark], deadline: float) -> None:
        self.marks = marks
        self.deadline = deadline
        self.since = min((mark.start_ticks for mark in marks), default=0)
        self.killed: set[Identity] = set()
        self.beyond: set[Identity] = set()
        self.quiet = False

    def late(self) -> bool:
        """The time is over."""
        return time.monotonic() >= self.deadline

    def kill_groups(self) -> None:
        """SIGKILL to the groups of held leaders. Members of other users are found by the scan, and reported."""
        for mark in self.marks:
            if mark.held:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(mark.pid, signal.SIGKILL)

    def round(self) -> SweepResult | None:
        """Look, and kill whoever is found; the result when this was the last round."""
        born = last_pid()
        seen = scan(self.since)
        candidates = _of_any(seen, self.marks)
        living = {_identity(one) for one in candidates if one.stat.alive}
        self.kill_pinned(candidates)
        if living - self.beyond:
            self.quiet = False
        elif not any(one.undecided for one in seen):
            if self.quiet or last_pid() == born:
                return SweepResult(len(self.killed), len(living))
            self.quiet = True
        return SweepResult(len(self.killed - living), len(living)) if self.late() else None

    def kill_pinned(self, candidates: Sequence[Seen]) -> None:
        """Pin, look again, kill, and wait until they are dead."""
        with ExitStack() as stack:
            pins: dict[int, int] = {}
            for one in candidates:
                with suppress(ProcessLookupError):
                    pins[one.stat.pid] = fd = os.pidfd_open(one.stat.pid)
                    stack.callback(os.close, fd)
            again = [found for pid in pins if (found := look(pid)) is not None]
            sure = _of_any([one for one in again if _has_its_number(pins[one.stat.pid])], self.marks)
            dying: list[int] = []
            for one in sure:
                fd = pins[one.stat.pid]
                if not one.stat.alive:
                    _reap_adopted(fd)
                elif _kill(fd):
                    self.killed.add(_identity(one))
                    dying.append(fd)
                else:
                    self.beyond.add(_identity(one))
            self.kill_groups()  # after the others, or the group's members could not be counted any more
            for fd in _wait_dead(dying, self.deadline):
                _reap_adopted(fd)


def _of_any(seen: Iterable[Seen], marks: Sequence[Mark]) -> list[Seen]:
    """Those who belong to one of ``marks``, each once."""
    everyone = list(seen)
    found = {one.stat.pid: one for mark in marks for one in belonging(everyone, mark)}
    return list(found.values())


def _identity(one: Seen) -> Identity:
    return one.stat.pid, one.stat.start_ticks


def _has_its_number(pidfd: int) -> bool:
    """Whether the process behind ``pidfd`` is still in the table (alive or zombie), so that its number is not free."""
    try:
        signal.pidfd_send_signal(pidfd, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _kill(pidfd: int) -> bool:
    """SIGKILL; False when this user may not. Who ended by itself just now needs none."""
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def _wait_dead(pidfds: Sequence[int], deadline: float) -> list[int]:
    """Wait until all are dead or the time is over; those that are dead."""
    waiting = select.poll()
    for fd in pidfds:
        waiting.register(fd, select.POLLIN)
    left, dead = len(pidfds), list[int]()
    while left and (remaining := deadline - time.monotonic()) > 0:
        for fd, _ in waiting.poll(remaining * 1000):
            waiting.unregister(fd)
            dead.append(fd)
            left -= 1
    return dead


def _reap_adopted(pidfd: int) -> None:
    """Reap a zombie that became ours because its parent ended before it; elsewhere it is not our child."""
    with suppress(ChildProcessError):
        os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)
