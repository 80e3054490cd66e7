"""The screens of the live view."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.debug.support.samples import HOSTILE, package, packages, task
from tests.debug.support.top_samples import NOW, OVERVIEW, PAGE
from wharfinger.debug.top.lists import ListKind, Style
from wharfinger.debug.top.machine import first_view, step
from wharfinger.debug.top.screen import HELP, Line, render
from wharfinger.debug.top.view import Answered, Event, Failed, PageAnswered, Pressed, Ticked, View
from wharfinger.formats.terminal_text import is_safe
from wharfinger.formats.text_width import width

KEYS = ("up", "down", "end", "enter", "escape", "s", "S", "tab", "3", "/", "x", "?", "pagedown", "q")


def after(*events: Event | str, columns: int = 80, lines: int = 24) -> View:
    view = first_view(OVERVIEW, columns, lines)
    for event in events:
        view, _ = step(view, Pressed(event) if isinstance(event, str) else event)
    return view


def text(picture: tuple[Line, ...]) -> list[str]:
    return ["".join(span.text for span in line).rstrip() for line in picture]


def shown(view: View) -> list[str]:
    return text(render(view, view.columns, view.lines))


def styles(view: View, word: str) -> set[Style]:
    """Return the styles of all parts of the screen that contain a word."""
    return {span.style for line in render(view, view.columns, view.lines) for span in line if word in span.text}


def test_the_list_is_drawn_at_80_columns() -> None:
    assert shown(after())[:9] == [
        "wharfinger 0.1.0  ready  https://127.0.0.1:6443                     12:34:56 UTC",
        "5 packages  1 Failed  1 Degraded  1 Updating  1 Disabled  1 Ready  tasks: 2 run…",
        " 1 Packages 5  2 Queues 4  3 Hooks 2  4 Drift 2",
        "NAME+         STATE     STAGE        QUEUE         HOOKS      DRIFT   MESSAGE",
        "ingress       Ready                                                   all objec…",
        "prod.busy     Updating  Task1 (wai…  1                        1       waits",
        "prod.shop     Failed    Download (…  1 (1 again)   2 (1 bad)          the chart…",
        "test.a-pack…  Degraded  Render (pa…  2 (1 parked)                     all objec…",
        "test.shop     Disabled                                                disabled …",
    ]


def test_the_last_line_shows_the_keys() -> None:
    assert "q quit" in shown(after())[-1]
    assert "esc back" in shown(after("enter"))[-1]
    assert shown(after("/", "w"))[-1].startswith("/w_")
    assert "any key" in shown(after("?"))[-1]


def test_the_selected_row_is_a_bar_over_the_whole_width() -> None:
    picture = render(after("down"), 80, 24)
    bars = [line for line in picture[4:] if any(span.style is Style.SELECTED for span in line)]
    assert [sum(width(span.text) for span in line) for line in bars] == [80]
    assert "prod.busy" in text(tuple(bars))[0]


def test_states_have_a_style() -> None:
    view = after()
    assert styles(view, "Degraded ") == {Style.BAD}
    assert styles(view, "Updating ") == {Style.WARNING}
    assert styles(after("down"), "Ready ") == {Style.GOOD}


def test_a_list_scrolls_with_its_selected_row() -> None:
    many = tuple(package(f"a.p{number:03}") for number in range(100))
    view, _ = step(after(), Answered(replace(OVERVIEW, packages=many)))
    for key, expected in (("end", "a.p099"), ("up", "a.p098"), ("home", "a.p000")):
        view, _ = step(view, Pressed(key))
        lines = shown(view)
        assert any(line.startswith(expected) for line in lines), lines
        assert len(lines) == 24


@pytest.mark.parametrize(
    ("keys", "said"), [("1", "no packages"), ("2", "no tasks"), ("3", "no hooks"), ("4", "no drift")]
)
def test_an_empty_list_shows_a_message(keys: str, said: str) -> None:
    view = after(Answered(replace(OVERVIEW, packages=(), statistics=None)), keys)
    assert said in "\n".join(shown(view))
    filtered = after("/", "~", "enter", keys)
    assert "escape clears the filter" in "\n".join(shown(filtered))


def test_a_page_is_drawn_with_its_line_numbers() -> None:
    view = after("down", "down", "enter")
    assert shown(view)[2] == "asking the daemon ..."
    view, _ = step(view, PageAnswered(PAGE))
    assert shown(view)[0].startswith("prod.shop  lines 1-22 of ")
    assert styles(view, "What to do:") == {Style.HEADER}
    view, _ = step(view, Pressed("end"))
    assert shown(view)[-2].endswith("a.sh: red \\x1b[31m")


def test_help_names_every_key() -> None:
    lines = shown(after("?"))
    assert all(any(keys in line and effect[:40] in line for line in lines) for keys, effect in HELP)


def test_stale_answers_and_missing_answers_are_marked() -> None:
    late = NOW + timedelta(seconds=12)
    view = after(Failed("no daemon answers on /run/s", NOW), Ticked(late))
    lines = shown(view)
    assert lines[0].endswith("12.0s old")
    assert lines[-1] == "no answer for 12.0s: no daemon answers on /run/s"
    assert styles(view, "no answer") == {Style.BAD}
    assert shown(after(Failed("no daemon answers on /run/s", NOW)))[-1] == "no answer: no daemon answers on /run/s"


def test_the_state_of_a_daemon_that_is_not_ready_is_shown() -> None:
    for daemon, said in (
        (replace(OVERVIEW.daemon, ready=False), "starting"),
        (replace(OVERVIEW.daemon, draining=True), "shutting down"),
        (replace(OVERVIEW.daemon, standby="waits for the Lease"), "waits for the Lease"),
    ):
        assert said in shown(after(Answered(replace(OVERVIEW, daemon=daemon))))[0]


EVENTS = st.lists(
    st.sampled_from(KEYS).map(Pressed)
    | st.lists(packages(), max_size=3, unique_by=lambda each: each.name).map(
        lambda found: Answered(replace(OVERVIEW, packages=tuple(found)))
    )
    | st.just(PageAnswered(PAGE))
    | st.text(max_size=20).map(lambda problem: Failed(problem, NOW)),
    max_size=8,
)


@given(EVENTS, st.integers(1, 120), st.integers(1, 40))
def test_a_picture_fits_and_has_no_control_characters(events: list[Event], columns: int, lines: int) -> None:
    view = first_view(OVERVIEW, columns, lines)
    for event in events:
        view, _ = step(view, event)
        picture = render(view, columns, lines)
        assert len(picture) == lines
        for line in picture:
            assert sum(width(span.text) for span in line) <= columns, line
            assert all(is_safe(span.text) for span in line), line


@pytest.mark.parametrize("kind", list(ListKind))
def test_hostile_texts_are_escaped(kind: ListKind) -> None:
    bad = replace(
        package(HOSTILE, message=HOSTILE, tasks=(replace(task(), name=HOSTILE),)), state=HOSTILE, drift=(HOSTILE,)
    )
    daemon = replace(OVERVIEW.daemon, version=HOSTILE, cluster=HOSTILE, standby=HOSTILE)
    view = after(
        Answered(replace(OVERVIEW, daemon=daemon, packages=(bad,))),
        str(list(ListKind).index(kind) + 1),
        Failed(HOSTILE, NOW),
    )
    for current in (view, step(view, Pressed("enter"))[0]):
        assert all(is_safe(line) for line in shown(current))
