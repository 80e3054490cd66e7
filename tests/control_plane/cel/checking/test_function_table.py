"""The format of the text that lists all CEL functions."""

from wharfinger.control_plane.cel.checking.function_table import TABLE


def test_every_line_is_a_function_or_an_overload() -> None:
    assert all(line.startswith("  ") is ("(" in line) for line in TABLE.strip().splitlines())
