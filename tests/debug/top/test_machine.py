"""State changes of the live view, caused by keys and by answers of the daemon."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.debug.support.top_samples import GONE, NOW, OVERVIEW, PACKAGES, PAGE
from wharfinger.debug.client.polling import GIVE_UP_S
from wharfinger.debug.top.lists import ListKind, Sorting
from wharfinger.debug.top.machine import LONGEST_FILTER, first_view, shown_lines, step
from wharfinger.debug.top.view import (
    Answered,
    Effect,
    Event,
    Failed,
    PageAnswered,
    Pressed,
    Quit,
    Resized,
    Ticked,
    View,
    Watch,
)

FIRST = first_view(OVERVIEW, 80, 24)


def stepped(view: View, *events: Event | str) -> tuple[View, list[Effect]]:
    """Return the state and all effects after some events. A text stands for a key."""
    every: list[Effect] = []
    for event in events:
        view, effects = step(view, Pressed(event) if isinstance(event, str) else event)
        every += effects
    return view, every


def selected(view: View) -> str:
    return view.rows[view.at].cells[0].text


def names(view: View) -> list[str]:
    return [row.cells[0].text for row in view.rows]


def test_packages_are_the_first_list() -> None:
    assert FIRST.shown is ListKind.PACKAGES
    assert names(FIRST) == [package.name for package in PACKAGES]
    assert selected(FIRST) == "ingress"


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        (["down"], "prod.busy"),
        (["j", "j", "k"], "prod.busy"),
        (["up"], "ingress"),
        (["end"], "test.shop"),
        (["G", "g"], "ingress"),
        (["pagedown"], "test.shop"),
        (["end", "home"], "ingress"),
        (["end", "pageup"], "ingress"),
        (["end", "down", "down"], "test.shop"),
    ],
)
def test_movement_keys_change_the_selected_row(keys: list[str], name: str) -> None:
    view, effects = stepped(FIRST, *keys)
    assert (selected(view), effects) == (name, [])


def test_a_selected_package_stays_selected_when_the_list_changes() -> None:
    view, _ = stepped(FIRST, "down", "down")
    assert selected(view) == "prod.shop"
    fewer, _ = stepped(view, Answered(replace(OVERVIEW, packages=PACKAGES[2:])))
    assert selected(fewer) == "prod.shop"
    gone, _ = stepped(fewer, Answered(replace(OVERVIEW, packages=PACKAGES[:2])))
    assert selected(gone) == "ingress"
    empty, _ = stepped(gone, Answered(replace(OVERVIEW, packages=())), "down", "enter")
    assert (empty.rows, empty.opened) == ((), "")


def test_keys_change_the_shown_list() -> None:
    kinds = [FIRST.shown]
    view = FIRST
    for key in ("tab", "right", "tab", "tab", "backtab", "left", "1", "3", "3"):
        view, _ = stepped(view, key)
        kinds.append(view.shown)
    packages, queues, hooks, drift = ListKind
    assert kinds == [packages, queues, hooks, drift, packages, drift, hooks, packages, hooks, hooks]


def test_sorting_is_stored_for_each_list() -> None:
    view, _ = stepped(FIRST, "s")
    assert names(view)[0] == "prod.shop"
    view, _ = stepped(view, "S")
    assert view.sorting == Sorting(1, is_reversed=True)
    assert names(view)[0] == "ingress"
    view, _ = stepped(view, "2", "1")
    assert view.sorting == Sorting(1, is_reversed=True)
    view, _ = stepped(FIRST, *["s"] * 7)
    assert view.sorting == Sorting()


def test_a_filter_applies_while_it_is_typed() -> None:
    view, effects = stepped(FIRST, "/", "s", "h", "q")
    assert (view.filter, names(view), effects) == ("shq", [], [])
    view, _ = stepped(view, "backspace", "o", "down", "enter")
    assert (view.is_typing, names(view), selected(view)) == (False, ["prod.shop", "test.shop"], "test.shop")
    view, _ = stepped(view, "escape")
    assert (view.filter, len(view.rows), selected(view)) == ("", len(PACKAGES), "test.shop")


def test_a_filter_can_be_cancelled() -> None:
    view, _ = stepped(FIRST, "/", "x", "escape")
    assert (view.filter, view.is_typing, len(view.rows)) == ("", False, len(PACKAGES))
    view, _ = stepped(FIRST, "/", "backspace")
    assert not view.is_typing
    view, _ = stepped(FIRST, "/", *["x"] * (LONGEST_FILTER + 5), "\x01", "\u202e", "tab")
    assert view.filter == "x" * LONGEST_FILTER


def test_a_page_is_opened_and_closed() -> None:
    view, effects = stepped(FIRST, "down", "down", "enter")
    assert (view.opened, view.page, effects) == ("prod.shop", None, [Watch("prod.shop")])
    view, effects = stepped(view, PageAnswered(PAGE), Answered(OVERVIEW))
    assert (view.page, effects) == (PAGE, [])
    view, effects = stepped(view, "escape")
    assert (view.opened, view.page, selected(view), effects) == ("", None, "prod.shop", [Watch("")])


def test_an_answer_about_another_package_is_not_shown() -> None:
    view, _ = stepped(FIRST, "enter", PageAnswered(PAGE))
    assert (view.opened, view.page) == ("ingress", None)
    assert shown_lines(view) == []


def test_a_page_scrolls_within_its_lines() -> None:
    view, _ = stepped(FIRST, "down", "down", "enter", PageAnswered(PAGE))
    whole = len(shown_lines(view))
    last = whole - view.page_lines
    assert last > 5
    for keys, scroll in (
        (["up"], 0),
        (["down", "j", "enter", "k"], 2),
        (["pagedown"], min(view.page_lines, last)),
        ([" ", "pageup"], max(min(view.page_lines, last) - view.page_lines, 0)),
        (["end"], last),
        (["G", "down"], last),
        (["end", "home"], 0),
        (["end", "g"], 0),
        (["end", "x"], last),
    ):
        assert stepped(view, *keys)[0].scroll == scroll, keys
    shrunk, _ = stepped(view, "end", PageAnswered(GONE))
    assert shrunk.scroll == 0
    taller, _ = stepped(view, "end", Resized(80, whole + 10))
    assert (taller.scroll, taller.lines) == (0, whole + 10)


def test_any_key_closes_the_help() -> None:
    view, _ = stepped(FIRST, "?")
    assert view.is_help
    view, effects = stepped(view, "q")
    assert (view.is_help, effects) == (False, [])


def test_q_quits() -> None:
    assert stepped(FIRST, "q")[1] == [Quit()]
    assert stepped(FIRST, "enter", "q")[1][-1] == Quit()


def test_unknown_keys_do_nothing() -> None:
    assert stepped(FIRST, "x", "\x01", "escape", "") == (FIRST, [])


def test_the_view_quits_if_the_daemon_stays_silent_too_long() -> None:
    view, effects = stepped(FIRST, Failed("no daemon", NOW))
    assert (view.problem, view.overview, effects) == ("no daemon", OVERVIEW, [])
    soon = NOW + timedelta(seconds=GIVE_UP_S - 1)
    view, effects = stepped(view, Failed("still none", soon), Ticked(soon))
    assert (view.problem, view.failing_since, view.now, effects) == ("still none", NOW, soon, [])
    assert stepped(view, Failed("gone", NOW + timedelta(seconds=GIVE_UP_S)))[1] == [Quit("gone")]
    for answer in (Answered(OVERVIEW), PageAnswered(PAGE)):
        assert stepped(view, answer)[0].problem == ""
