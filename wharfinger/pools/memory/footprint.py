"""The memory of processes and of the machine, read from /proc and from the control group. Blocking, for a worker thread.

If several processes share a page, each of them counts its share of the page (PSS, proc_pid_smaps(5)), so that the sum over a
zygote and its workers is their real size. ``private`` is the part that no other process has. It becomes free when the process
ends.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_KIB: Final = 1024
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_MAX_PROCESSES: Final = 5_000
UNKNOWN_PROGRAM: Final = "unknown"
"""The name under which a program is counted if this process may not see its real name, because the program runs as another
user.
"""
_CGROUPS: Final = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Footprint:
    """The memory of one process in bytes."""

    total: int
    private: int


def footprint(pid: int) -> Footprint | None:
    """Return the memory of a process; None if it has ended.

    The kernel may not show which share of each page belongs to the process, for example because this process may not trace it.
    In this case, all of its resident pages count in full.
    """
    try:
        return _shares(Path(f"/proc/{pid}/smaps_rollup").read_bytes())
    except (FileNotFoundError, ProcessLookupError):
        return None
    except OSError:
        return _resident(pid)


def _shares(text: bytes) -> Footprint:
    found: dict[bytes, int] = {}
    for line in text.splitlines()[1:]:
        name, _, value = line.partition(b":")
        found[name] = int(value.split()[0]) * _KIB
    swapped = found.get(b"SwapPss", 0)
    private = found.get(b"Private_Clean", 0) + found.get(b"Private_Dirty", 0) + swapped
    return Footprint(found.get(b"Pss", 0) + swapped, private)


def _resident(pid: int) -> Footprint | None:
    try:
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_bytes().split()
    except (OSError, ValueError):
        return None
    return Footprint(int(resident) * _PAGE, (int(resident) - int(shared)) * _PAGE)


def peak_memory() -> int:
    """Return the peak of this process's resident memory in bytes; 0 if the kernel does not report it.

    ``getrusage`` is not used, because its maximum includes the program that was replaced by this one in ``exec``.
    """
    try:
        lines = Path("/proc/self/status").read_bytes().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * _KIB for line in lines if line.startswith(b"VmHWM:")), 0)


def footprints_below(pid: int) -> dict[str, list[Footprint]]:
    """Return the memory of each descendant of a process, grouped by the name of its program."""
    found: dict[str, list[Footprint]] = {}
    waiting, seen = _children(pid), {pid}
    while waiting and len(seen) < _MAX_PROCESSES:
        child = waiting.pop()
        if child in seen:
            continue
        seen.add(child)
        waiting += _children(child)
        if (size := footprint(child)) is not None:
            found.setdefault(_program(child), []).append(size)
    return found


def _children(pid: int) -> list[int]:
    """Return the children that any thread of a process has; none if the process has ended, or the kernel does not list them."""
    found: list[int] = []
    with suppress(OSError):  # the process has ended
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):  # the thread has ended
                found += map(int, (task / "children").read_bytes().split())
    return found


def _program(pid: int) -> str:
    """Return the name of the program file of a process, and not the name that it gave itself."""
    try:
        return Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        return UNKNOWN_PROGRAM


def memory_of_machine() -> int:
    """Return the number of bytes of memory that this process and its children may use: all memory of the machine, or less if a
    control group limits them.
    """
    machine = os.sysconf("SC_PHYS_PAGES") * _PAGE
    return min([machine, *_limits_of_groups()])


def _limits_of_groups(root: Path = _CGROUPS, own: Path = Path("/proc/self/cgroup")) -> list[int]:
    """Return the memory limits of this process's control group and of the groups above it (cgroup v2 and v1)."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return []
    found: list[int] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        base, name = (root, "memory.max") if not controllers else (root / "memory", "memory.limit_in_bytes")
        place = base / path.lstrip("/")
        while place.is_relative_to(base):
            found += _number(place / name)
            place = place.parent
    return found


def _number(path: Path) -> list[int]:
    """Return a list with the number in a file; an empty list if the file is missing or contains ``max``."""
    try:
        return [int(path.read_text())]
    except (OSError, ValueError):
        return []
