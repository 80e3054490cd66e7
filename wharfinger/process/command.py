"""The values that this folder works with: a command, its limits, and its outcome.

``run_child(command, limits, ...)`` in :mod:`wharfinger.process.child` runs a command to its end. `open_worker` in
:mod:`wharfinger.process.worker` starts a command that keeps running.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from signal import Signals
from typing import Final


@dataclass(frozen=True, slots=True)
class User:
    """The user and the group under which a program runs; the program gets no supplementary groups."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run, without a shell. Its stdin is /dev/null unless ``stdin`` has bytes. ``env`` is the whole environment.

    ``user``: the user of the program; None means the user of this process. ``wrapper`` is the command line of a program, such
    as a sandbox, that starts ``argv``. ``descriptors`` are open file descriptors of this process that the program inherits
    under the same numbers, in addition to the standard three.
    """

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    stdin: bytes = b""
    user: User | None = None
    wrapper: tuple[str, ...] = ()
    descriptors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one run.

    After ``wall_s`` the process group gets SIGTERM, and after another ``term_grace_s`` SIGKILL. Output beyond ``stdout_bytes``
    ends the run in the same way. Only the last ``stderr_bytes`` of stderr are kept. ``drain_s`` is how long the pipes may stay
    open after the program itself has ended; then the processes that hold them are killed.

    After a cancellation, the time between SIGTERM and SIGKILL is ``cancel_grace_s`` or ``term_grace_s``, whichever is shorter.
    ``cancel_grace_s`` is short because the task that cancels the run waits for the run's end, and must continue within a second.

    The other limits are enforced by the kernel (setrlimit(2)) for each process of the run: ``memory_bytes`` limits its address
    space, ``processes`` the number of processes of its user (useful only if no other run has this user), ``open_files`` the
    number of its open descriptors, and ``file_bytes`` the size of a file that it writes. None means the limit of the daemon
    itself.
    """

    wall_s: float
    stdout_bytes: int
    stderr_bytes: int = 64 * 1024
    term_grace_s: float = 5.0
    cancel_grace_s: float = 0.3
    drain_s: float = 1.0
    memory_bytes: int | None = None
    processes: int | None = None
    open_files: int | None = None
    file_bytes: int | None = None


class Ending(Enum):
    """The reason why a run ended."""

    EXITED = "exited"
    DEADLINE = "deadline"
    OUTPUT_LIMIT = "output limit"


@dataclass(frozen=True, slots=True)
class Usage:
    """The resource usage of a child and of the descendants that it waited for (``wait4``).

    ``max_rss_bytes`` is the maximum over these processes. ``max_rss_bytes`` is never less than the memory that the parent held
    when it started the child, because the kernel counts the moment between fork and exec (``setmax_mm_hiwater_rss`` in its
    ``exec_mmap``).
    """

    user_s: float
    system_s: float
    max_rss_bytes: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a run. ``returncode`` is the same as in subprocess: a negative number means a signal.

    ``survivors_killed`` counts the processes that outlived the child and were killed; ``survivors_left`` counts those that could
    not be killed (they belong to another user, or hang in the kernel). If any are left, the run's row in the ledger is kept, so
    that the next start of the daemon tries again.
    """

    ending: Ending
    returncode: int
    stdout: bytes
    stderr: bytes
    usage: Usage
    survivors_killed: int = 0
    survivors_left: int = 0

    @property
    def ok(self) -> bool:
        """Return whether the program exited with status 0, and was not ended because of a limit."""
        return self.ending is Ending.EXITED and self.returncode == 0

    def describe(self) -> str:
        """Return a text for messages: ``exit status 3``, ``killed by SIGSEGV``, ``deadline passed (killed by SIGTERM)``."""
        status = (
            f"exit status {self.returncode}" if self.returncode >= 0 else f"killed by {_signal_name(-self.returncode)}"
        )
        return status if self.ending is Ending.EXITED else f"{self.ending.value} passed ({status})"


def _signal_name(number: int) -> str:
    """Return ``SIGTERM``, or ``signal 40`` for a real-time signal: only the first and the last of these have names."""
    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"


OutputSink = Callable[[bytes], None]
"""A callback for output as it arrives, in order, in chunks of at most 16 KiB; must not block."""


@dataclass(frozen=True, slots=True)
class Sinks:
    """The receivers of output while the child runs. stdout is collected into the outcome only if it has no sink."""

    stdout: OutputSink | None = field(default=None)
    stderr: OutputSink | None = field(default=None)


NO_SINKS: Final = Sinks()
"""The value for a run without sinks. Its stdout and the last bytes of its stderr are collected into the outcome."""
