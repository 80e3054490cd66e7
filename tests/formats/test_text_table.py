"""The layout of text tables."""

from hypothesis import given
from hypothesis import strategies as st

from tests.debug.support.samples import HOSTILE
from wharfinger.formats.terminal_text import is_safe
from wharfinger.formats.text_table import layout
from wharfinger.formats.text_width import width

HEADER = ("NAME", "STATE", "MESSAGE")


def test_columns_are_aligned_without_trailing_spaces() -> None:
    rows = [("a", "Ready", ""), ("prod.shop", "Reconciling", "waiting"), ("漢字", "", "x")]
    assert layout(HEADER, rows, None) == [
        "NAME        STATE         MESSAGE",
        "a           Ready",
        "prod.shop   Reconciling   waiting",
        "漢字                      x",
    ]


def test_a_table_without_rows_has_a_header() -> None:
    assert layout(HEADER, [], 80) == ["NAME   STATE   MESSAGE"]


def test_only_the_last_column_is_cut_and_only_on_a_terminal() -> None:
    rows = [("prod.shop", "Ready", "m" * 100)]
    assert layout(HEADER, rows, None)[1].endswith("m" * 100)
    cut = layout(HEADER, rows, 60)[1]
    assert width(cut) == 60
    assert cut.endswith("m…")
    narrow = layout(HEADER, rows, 10)[1]
    assert narrow == "prod.shop   Ready   " + "m" * 19 + "…"


def test_a_long_cell_does_not_pad_the_other_rows() -> None:
    rows = [("a", "s" * 30, "first"), ("b", "Ready", "second")]
    assert layout(HEADER, rows, None, widest_column=8) == [
        "NAME   STATE      MESSAGE",
        f"a      {'s' * 30}   first",
        "b      Ready      second",
    ]
    assert layout(HEADER, [("b", "Ready", "m" * 100)], 60, widest_column=8)[1] == "b      Ready   " + "m" * 44 + "…"


def test_a_row_is_one_line_even_with_line_breaks() -> None:
    lines = layout(HEADER, [(HOSTILE, HOSTILE, HOSTILE)], 80)
    assert len(lines) == 2
    assert all(is_safe(line) for line in lines)


@given(st.lists(st.tuples(st.text(max_size=30), st.text(max_size=30)), max_size=5), st.none() | st.integers(1, 200))
def test_the_second_column_begins_where_its_header_does(rows: list[tuple[str, str]], columns: int | None) -> None:
    lines = layout(("A", "B"), [(first, "|" + second) for first, second in rows], columns)
    begins = lines[0].index("B")
    for line in lines[1:]:
        assert "\n" not in line
        assert width(line.partition("|")[0]) <= begins
