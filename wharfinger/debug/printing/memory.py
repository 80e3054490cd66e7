"""The memory of a daemon as text: its processes, and what it keeps. Pure."""

from typing import Final

from wharfinger.formats.text_table import layout
from wharfinger.runtime.daemon_details import MemoryPartSnapshot, MemorySnapshot

_KIB: Final = 1024
_UNITS: Final = ("B", "KiB", "MiB", "GiB")
_WHOLE_FROM: Final = 10
"""An amount in KiB or a larger unit is written with one decimal if it is smaller than this number."""


def memory_lines(memory: MemorySnapshot) -> list[str]:
    """Return the lines of two tables: the memory of the daemon's processes, and the estimated size of its data."""
    processes = [
        ("the daemon", "1", size_text(memory.own_bytes)),
        *((each.part, str(each.items), size_text(each.bytes or 0)) for each in memory.programs),
    ]
    total = memory.own_bytes + sum(each.bytes or 0 for each in memory.programs)
    processes.append(("all together", str(1 + sum(each.items for each in memory.programs)), size_text(total)))
    parts = [(each.part, str(each.items), _part_size(each)) for each in memory.parts]
    return [
        *layout(("PROGRAM", "PROCESSES", "MEMORY"), processes, None),
        f"The daemon itself has used at most {size_text(memory.peak_bytes)}.",
        *(["", *layout(("KEPT IN THE DAEMON", "NUMBER", "ESTIMATED SIZE"), parts, None)] if parts else []),
    ]


def _part_size(part: MemoryPartSnapshot) -> str:
    return "" if part.bytes is None else size_text(part.bytes)


def size_text(size: int) -> str:
    """Return a size in bytes for people, in binary units."""
    amount = float(size)
    for unit in _UNITS:
        if amount < _KIB or unit == _UNITS[-1]:
            break
        amount /= _KIB
    return f"{amount:.1f} {unit}" if amount < _WHOLE_FROM and unit != "B" else f"{amount:.0f} {unit}"
