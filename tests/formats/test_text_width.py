"""The width of text on a terminal, and texts that are shortened to a width."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.debug.support.samples import HOSTILE
from wharfinger.formats.terminal_text import is_safe, printable
from wharfinger.formats.text_width import shorten, width


@pytest.mark.parametrize(
    ("text", "columns"), [("", 0), ("abc", 3), ("漢字", 4), ("e\u0301", 1), ("é", 1), ("🙂", 2), ("a\u200db", 2)]
)
def test_width_counts_terminal_columns(text: str, columns: int) -> None:
    assert width(text) == columns


@pytest.mark.parametrize(
    ("text", "columns", "short"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("abcd", 1, "…"),
        ("漢字漢", 5, "漢字…"),
        ("漢字漢", 4, "漢…"),
        ("", 1, ""),
    ],
)
def test_shortened_texts_end_in_an_ellipsis(text: str, columns: int, short: str) -> None:
    assert shorten(text, columns) == short


@given(st.text(), st.integers(1, 40))
def test_a_shortened_text_fits(text: str, columns: int) -> None:
    short = shorten(printable(text), columns)
    assert width(short) <= columns


def test_the_hostile_sample_has_unsafe_characters() -> None:
    assert not is_safe(HOSTILE)
    assert "✓ 漢字" in printable(HOSTILE)
