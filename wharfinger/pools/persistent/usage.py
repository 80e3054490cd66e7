"""The processor time and the memory of one run in a process that serves many runs. Blocking.

Times are differences between two moments. The time of the process itself is exact (its clock, clock_getcpuclockid(3)). The time
of children that it has waited for, and the part of its own time that was spent in the kernel, are counted in ticks. The peak of
the memory is reset before the run, where the kernel allows that (clear_refs in proc(5)); otherwise it is the peak since the start
of the program.
"""

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wharfinger.process.command import Usage

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_KIB: Final = 1024
_RESET_PEAK: Final = "5"


@dataclass(frozen=True, slots=True)
class UsageSums:
    """The times of a process since its start, in seconds: its own time, the part of it that was spent in the kernel, and the same
    two times of its children.
    """

    own_s: float
    kernel_s: float
    children_s: float
    children_kernel_s: float


def begin_usage(pid: int) -> UsageSums:
    """Return the resources that a process has used before a run, and reset the recorded peak of its memory. Raises OSError if
    the process has ended.
    """
    with suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text(_RESET_PEAK)
    return _moment(pid)


def usage_since(pid: int, before: UsageSums) -> Usage:
    """Return the resources that a process has used since ``before``, the result of `begin_usage`. Raises OSError if the process
    has ended.
    """
    now = _moment(pid)
    kernel_s = now.kernel_s - before.kernel_s + now.children_kernel_s - before.children_kernel_s
    all_s = now.own_s - before.own_s + now.children_s - before.children_s
    return Usage(max(0.0, all_s - kernel_s), min(kernel_s, all_s), _peak(pid))


def _moment(pid: int) -> UsageSums:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="latin-1").rpartition(")")[2].split()
    # utime, stime, cutime and cstime are the fields 14 to 17 of proc_pid_stat(5); the first after the name is number 3.
    _, kernel, children, children_kernel = (int(field) / _TICKS for field in fields[11:15])
    # The id of a process's clock: the inverted pid, and CPUCLOCK_SCHED (2) in the three lowest bits (kernel's posix-timers.h).
    own_s = time.clock_gettime((~pid << 3) | 2)
    return UsageSums(own_s, kernel, children + children_kernel, children_kernel)


def _peak(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_bytes().splitlines():
        if line.startswith(b"VmHWM:"):
            return int(line.split()[1]) * _KIB
    return 0
