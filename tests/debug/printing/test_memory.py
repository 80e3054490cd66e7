"""The memory use of a daemon as text."""

import pytest

from tests.debug.support.samples import MEMORY
from wharfinger.debug.printing.memory import memory_lines, size_text
from wharfinger.runtime.daemon_details import MemorySnapshot

TEXT = """\
PROGRAM        PROCESSES   MEMORY
the daemon     1           120 MiB
chart-engine   2           60 MiB
bash           1           3.0 MiB
all together   4           183 MiB
The daemon itself has used at most 150 MiB.

KEPT IN THE DAEMON   NUMBER   ESTIMATED SIZE
packages             3
renders              7        2.5 MiB
"""


def test_memory_is_printed_as_two_tables() -> None:
    assert "".join(f"{line}\n" for line in memory_lines(MEMORY)) == TEXT


def test_a_daemon_without_stores_has_no_second_table() -> None:
    assert memory_lines(MemorySnapshot(1, 2))[0].split() == ["PROGRAM", "PROCESSES", "MEMORY"]
    assert "KEPT" not in "".join(memory_lines(MemorySnapshot(1, 2)))


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (10 * 1024, "10 KiB"),
        (5 * 1024**3, "5.0 GiB"),
        (1024**4, "1024 GiB"),
    ],
)
def test_sizes_are_printed_in_binary_units(size: int, text: str) -> None:
    assert size_text(size) == text
