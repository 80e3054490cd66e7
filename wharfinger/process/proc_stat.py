"""Pure parsers for the files stat, status and environ of /proc/<pid> (proc_pid_stat(5) and related manual pages).

A program chooses its own command name in ``stat``: the name may contain spaces, parentheses, line ends, and even text that looks
like the rest of the line. The name is therefore read as the kernel writes it: from the first ``(`` to the *last* ``)``.
"""

import re
from dataclasses import dataclass
from typing import Final

MARKER: Final = "WHARFINGER_RUN"
"""The environment variable that marks every child process. Its value contains the tokens of the runs to which the child
belongs, joined by ``:``. The token of the outermost run is first.
"""

MARKER_BYTES_MAX: Final = 1024
"""The maximum length of the value of MARKER, which is the chain of the tokens of nested runs. It is enough for about thirty
nested runs; only a loop starts more. A longer chain is replaced by the token of the new run.
"""

_MARKER_VALUE: Final = re.compile(rb"(?:\A|\0)" + MARKER.encode() + rb"=([^\0]*)")
_UID: Final = re.compile(rb"^Uid:[ \t]+(\d+)[ \t]", re.MULTILINE)
_EXITING: Final = 0x0000_0004  # PF_EXITING of the kernel's include/linux/sched.h
_KERNEL_THREAD: Final = 0x0020_0000  # PF_KTHREAD of the same file
_FIELDS_AFTER_NAME: Final = 49  # state (field 3) up to env_end (field 51, Linux 3.5)
_START: Final = 19  # the index of starttime (field 22) among these fields
_DEAD_STATES: Final = frozenset("ZXx")


class ProcFormatError(Exception):
    """The content of /proc/<pid>/stat is not as proc_pid_stat(5) describes it."""


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """The fields that identify a process and show which processes belong together. ``start_ticks`` counts clock ticks since
    boot.

    ``state`` and ``exiting`` are those of the main thread; the other ``threads`` may continue after it has ended.
    ``environ_bytes`` is the size of the process's environment. The size is -1 if the environment cannot be read: for a moment
    inside ``execve``, at the end of the process's life, and if this process has no permission to read it.
    """

    pid: int
    state: str
    ppid: int
    pgid: int
    sid: int
    start_ticks: int
    threads: int
    exiting: bool
    kernel_thread: bool
    environ_bytes: int

    @property
    def alive(self) -> bool:
        """Return whether the process can still run code: it is not a zombie, or only its main thread has ended."""
        return self.state not in _DEAD_STATES or self.threads > 1


def parse_start_ticks(data: bytes) -> int:
    """Return ``start_ticks`` from a line of /proc/<pid>/stat, at a tenth of the cost of `parse_stat`. Raises ProcFormatError."""
    _, found, tail = data.rpartition(b")")
    fields = tail.split(None, _START + 1)
    try:
        if found and len(fields) > _START + 1:
            return int(fields[_START])
    except ValueError:
        pass
    raise _refusal(data)


def parse_stat(data: bytes) -> ProcessStat:
    """Read one line of /proc/<pid>/stat. Raises ProcFormatError."""
    head, _, _ = data.partition(b"(")
    _, found, tail = data.rpartition(b")")
    fields = tail.split()
    if not found or len(fields) < _FIELDS_AFTER_NAME:
        raise _refusal(data)
    try:
        return ProcessStat(
            pid=int(head),
            state=fields[0].decode("ascii"),
            ppid=int(fields[1]),
            pgid=int(fields[2]),
            sid=int(fields[3]),
            start_ticks=int(fields[_START]),
            threads=int(fields[17]),
            exiting=bool(int(fields[6]) & _EXITING),
            kernel_thread=bool(int(fields[6]) & _KERNEL_THREAD),
            environ_bytes=int(fields[48]) - int(fields[47]) if int(fields[48]) else -1,
        )
    except ValueError as error:
        raise _refusal(data) from error


def _refusal(data: bytes) -> ProcFormatError:
    return ProcFormatError(f"not a line of /proc/<pid>/stat: {data[:80]!r}")


def parse_tokens(environ: bytes) -> frozenset[str]:
    """Return the tokens of the runs to which a process belongs, from its environment; empty if it belongs to no run."""
    values = b":".join(_MARKER_VALUE.findall(environ))
    return frozenset(token for token in values.decode("utf-8", "replace").split(":") if token)


def parse_uid(status: bytes) -> int:
    """Return the real user in /proc/<pid>/status; 0 if the file names no user.

    The command name cannot forge the line ``Uid:``, because the kernel escapes line ends in the name.
    """
    found = _UID.search(status)
    return int(found[1]) if found else 0


def marker_value(inherited: str, token: str) -> str:
    """Return the value of MARKER for a child of a process whose own value is ``inherited``.

    If a child runs Wharfinger again, this second Wharfinger starts its children in sessions of their own. The outer run finds
    these children by the chain of tokens. A chain that would be too long is replaced by ``token`` alone.
    """
    chain = f"{inherited}:{token}" if inherited else token
    return chain if len(chain) <= MARKER_BYTES_MAX else token
