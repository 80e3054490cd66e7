"""The page of a package in the live view."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.debug.support.samples import HOSTILE, LOG
from tests.debug.support.top_samples import GONE, PAGE
from wharfinger.debug.top.page import MOST_LOG_LINES, page_lines, wrapped
from wharfinger.formats.terminal_text import is_safe
from wharfinger.formats.text_width import width


def test_a_page_shows_the_description_and_the_log() -> None:
    lines = page_lines(PAGE, 80, "->")
    titles = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles == [
        "What to do:",
        "Conditions:",
        "Settings:",
        "Resources:",
        "Hooks:",
        "Recent decisions:",
        "Events:",
        "Log:",
    ]
    assert lines[-2:] == [
        "  2026-05-17T12:30:45.123456Z INFO    installing 1.2.3",
        "  2026-05-17T12:30:45.123456Z WARNING a.sh: red \\x1b[31m",
    ]


def test_a_deleted_package_is_reported() -> None:
    assert page_lines(GONE, 80, "->") == ["the daemon does not know prod.shop any more"]


def test_only_the_last_lines_of_the_log_are_shown() -> None:
    many = replace(LOG, lines=tuple(replace(LOG.lines[0], number=number) for number in range(1, 500)))
    lines = page_lines(replace(PAGE, log=many), 80, "->")
    assert len(lines) - lines.index("Log:") - 1 == MOST_LOG_LINES


@pytest.mark.parametrize(
    ("line", "columns", "pieces"),
    [
        ("short", 10, ["short"]),
        ("Message:  one two three four five", 24, ["Message:  one two three", "  four five"]),
        ("  " + "x" * 30, 22, ["  " + "x" * 20, "    " + "x" * 10]),
        ("x" * 25, 10, ["x" * 10, "x" * 10, "x" * 5]),
        ("漢字漢字", 3, ["漢", "字", "漢", "字"]),
        ("", 10, [""]),
    ],
)
def test_a_long_line_is_continued(line: str, columns: int, pieces: list[str]) -> None:
    assert list(wrapped(line, columns)) == pieces


@given(st.text(st.sampled_from("ab  漢\u0301\u200d"), max_size=80), st.integers(1, 40))
def test_wrapped_lines_fit_and_lose_only_spaces(line: str, columns: int) -> None:
    pieces = list(wrapped(line, columns))
    assert all(width(piece) <= max(columns, 2) for piece in pieces)
    whole = "".join(line.split())
    assert whole == "".join("".join(pieces).split()) or pieces[-1].endswith("…")


def test_control_characters_on_the_page_are_escaped() -> None:
    assert PAGE.description is not None
    hostile = replace(PAGE.description.package, message=HOSTILE, warnings=(HOSTILE,), drift=(HOSTILE,))
    page = replace(PAGE, name=HOSTILE, description=replace(PAGE.description, package=hostile))
    assert all(is_safe(line) for line in page_lines(page, 80, "->"))
    assert all(is_safe(line) for line in page_lines(replace(GONE, name=HOSTILE), 80, "->"))
