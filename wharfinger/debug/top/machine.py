"""The transitions of the live view: a state and an event in, a state and effects out. Pure.

There are three modes, checked in this order. Each has its own keys:

=========  ==========================================================================================
help       any key returns to what was shown
page       the arrows scroll; escape, backspace and left return to the list
list       the arrows select, enter opens the page; while the filter is typed, characters go into it
=========  ==========================================================================================

``q`` ends the view, except in the help and while the filter is typed. A daemon that does not answer for GIVE_UP_S seconds ends
the view; until then the last answer is shown.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Final, assert_never

from wharfinger.debug.client.polling import GIVE_UP_S
from wharfinger.debug.top.lists import COLUMNS, ListKind, Sorting, arranged, rows_of
from wharfinger.debug.top.page import page_lines
from wharfinger.debug.top.view import (
    Answered,
    Effect,
    Event,
    Failed,
    Overview,
    PageAnswered,
    Pressed,
    Quit,
    Resized,
    Ticked,
    View,
    Watch,
)
from wharfinger.formats.terminal_text import is_safe

LONGEST_FILTER: Final = 60
_KINDS: Final = tuple(ListKind)
_DIGITS: Final = {str(number): kind for number, kind in enumerate(_KINDS, 1)}
Step = tuple[View, tuple[Effect, ...]]


def first_view(overview: Overview, columns: int, lines: int, arrow: str = "->") -> View:
    """Return the first state of the view: it shows the packages of the daemon's first answer."""
    return _arranged(View(overview, columns, lines, overview.at, arrow))


def step(view: View, event: Event) -> Step:
    """Return the state after an event, and the effects."""
    match event:
        case Pressed(key):
            return _pressed(view, key)
        case Resized(columns, lines):
            return _scrolled(replace(view, columns=columns, lines=lines), 0), ()
        case Answered(overview):
            answered = replace(view, overview=overview, now=overview.at, problem="", failing_since=None)
            return _arranged(answered), ()
        case PageAnswered(page):
            answered = replace(view, now=page.at, problem="", failing_since=None)
            if page.name != view.opened:  # this page was requested before another one was opened
                return answered, ()
            return _scrolled(replace(answered, page=page), 0), ()
        case Failed(problem, at):
            since = view.failing_since or at
            failing = replace(view, now=at, problem=problem, failing_since=since)
            return failing, (Quit(problem),) if at - since >= timedelta(seconds=GIVE_UP_S) else ()
        case Ticked(at):
            return replace(view, now=at), ()
        case _:
            assert_never(event)


def _pressed(view: View, key: str) -> Step:
    if view.is_help:
        return replace(view, is_help=False), ()
    if view.is_typing and not view.opened:
        return _typed(view, key)
    if key == "q":
        return view, (Quit(),)
    if key == "?":
        return replace(view, is_help=True), ()
    return _on_page(view, key) if view.opened else _on_list(view, key)


# --- the list ----------------------------------------------------------------------------------------------------------------


def _on_list(view: View, key: str) -> Step:
    if (moved := _moved(view, key)) is not None:
        return moved, ()
    match key:
        case "enter" if view.rows:
            name = view.rows[view.at].package
            return replace(view, opened=name, page=None, scroll=0), (Watch(name),)
        case "/":
            return replace(view, is_typing=True), ()
        case "escape" | "backspace" if view.filter:
            return _arranged(replace(view, filter="")), ()
        case "s":
            following = (view.sorting.column + 1) % len(COLUMNS[view.shown])
            return _sorted(view, Sorting(following)), ()
        case "S":
            return _sorted(view, replace(view.sorting, is_reversed=not view.sorting.is_reversed)), ()
        case "tab" | "right":
            return _listing(view, _KINDS[(_KINDS.index(view.shown) + 1) % len(_KINDS)]), ()
        case "backtab" | "left":
            return _listing(view, _KINDS[_KINDS.index(view.shown) - 1]), ()
        case _ if key in _DIGITS:
            return _listing(view, _DIGITS[key]), ()
        case _:
            return view, ()


def _typed(view: View, key: str) -> Step:
    """Edit the filter; rows that do not match are hidden immediately."""
    if (moved := _moved(view, key)) is not None and len(key) > 1:
        return moved, ()
    match key:
        case "enter":
            return replace(view, is_typing=False), ()
        case "escape":
            return _arranged(replace(view, is_typing=False, filter="")), ()
        case "backspace":
            return _arranged(replace(view, filter=view.filter[:-1], is_typing=bool(view.filter))), ()
        case _ if len(key) == 1 and is_safe(key) and len(view.filter) < LONGEST_FILTER:
            return _arranged(replace(view, filter=view.filter + key)), ()
        case _:
            return view, ()


def _moved(view: View, key: str) -> View | None:
    """Return the state with another selected row; None for a key that does not move."""
    last = len(view.rows) - 1
    match key:
        case "up" | "k":
            at = view.at - 1
        case "down" | "j":
            at = view.at + 1
        case "pageup":
            at = view.at - view.list_lines
        case "pagedown":
            at = view.at + view.list_lines
        case "home" | "g":
            at = 0
        case "end" | "G":
            at = last
        case _:
            return None
    return _selected(view, min(max(at, 0), max(last, 0)))


def _selected(view: View, at: int) -> View:
    return replace(view, at=at, selected=view.rows[at].key if view.rows else None)


def _sorted(view: View, sorting: Sorting) -> View:
    return _arranged(replace(view, sortings={**view.sortings, view.shown: sorting}))


def _listing(view: View, kind: ListKind) -> View:
    if kind is view.shown:
        return view
    return _arranged(replace(view, shown=kind, at=0, selected=None))


def _arranged(view: View) -> View:
    """Return the state with the rows of its list; the selected row stays selected as long as the list contains it."""
    overview = view.overview
    rows = arranged(rows_of(view.shown, overview.packages, overview.at), view.filter, view.sorting)
    at = next((number for number, row in enumerate(rows) if row.key == view.selected), None)
    if at is None:
        at = min(view.at, max(len(rows) - 1, 0))
    return _selected(replace(view, rows=rows), at)


# --- the page ----------------------------------------------------------------------------------------------------------------


def _on_page(view: View, key: str) -> Step:
    match key:
        case "escape" | "backspace" | "left":
            return replace(view, opened="", page=None, scroll=0), (Watch(""),)
        case "up" | "k":
            return _scrolled(view, -1), ()
        case "down" | "j" | "enter":
            return _scrolled(view, 1), ()
        case "pageup":
            return _scrolled(view, -view.page_lines), ()
        case "pagedown" | " ":
            return _scrolled(view, view.page_lines), ()
        case "home" | "g":
            return replace(view, scroll=0), ()
        case "end" | "G":
            return _scrolled(view, len(shown_lines(view))), ()
        case _:
            return view, ()


def _scrolled(view: View, by: int) -> View:
    last = max(len(shown_lines(view)) - view.page_lines, 0)
    return replace(view, scroll=min(max(view.scroll + by, 0), last))


def shown_lines(view: View) -> list[str]:
    """Return all lines of the opened page; none before its first answer."""
    return page_lines(view.page, view.columns, view.arrow) if view.page is not None else []
