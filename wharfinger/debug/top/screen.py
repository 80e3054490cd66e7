"""The picture of the live view: lines of styled text, exactly as many as the terminal has, and none wider than the terminal.
Pure.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from wharfinger.debug.fields import duration
from wharfinger.debug.printing.stage import state_counts
from wharfinger.debug.top.columns import fitted_widths
from wharfinger.debug.top.lists import COLUMNS, ListKind, Row, Style, state_style
from wharfinger.debug.top.machine import shown_lines
from wharfinger.debug.top.view import View
from wharfinger.formats.listing import counted
from wharfinger.formats.terminal_text import printable
from wharfinger.formats.text_width import shorten, width
from wharfinger.runtime.daemon_details import DaemonSnapshot

_GAP: Final = "  "
_LATE_S: Final = 5.0
"""An answer of the daemon is marked as late if it is at least this old, in seconds."""
_LEAST_AGE_S: Final = 1.0
"""A failure that lasts at least this long is shown with its duration."""


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a line, with one style."""

    text: str
    style: Style = Style.PLAIN


Line: TypeAlias = tuple[Span, ...]

HELP: Final = (
    ("up, down, k, j", "select a row, or scroll a page"),
    ("page up, page down", "move by one screen"),
    ("home, end, g, G", "go to the first or to the last row"),
    ("enter", "open the page of the selected package"),
    ("escape, left", "return from the page; clear the filter"),
    ("tab, right, left", "show the next or the previous list"),
    ("1, 2, 3, 4", "show packages, queues, hooks, drift"),
    ("/", "filter: rows that contain the text; enter keeps it, escape clears it"),
    ("s, S", "sort by the next column; reverse the order"),
    ("?", "show this help"),
    ("q, Ctrl-C", "leave"),
)
_LIST_KEYS: Final = "enter open  / filter  s sort  tab next list  ? help  q quit"
_PAGE_KEYS: Final = "up/down scroll  esc back  ? help  q quit"
_TYPING_KEYS: Final = "enter keep  esc clear"


def render(view: View, columns: int, lines: int) -> tuple[Line, ...]:
    """Return the picture for a terminal of this size."""
    if view.is_help:
        body, keys = list(_help()), "any key: back"
    elif view.opened:
        body, keys = list(_page(view)), _PAGE_KEYS
    else:
        body, keys = list(_list(view, columns)), _TYPING_KEYS if view.is_typing else _LIST_KEYS
    room = max(lines - 1, 0)
    shown = [*body[:room], *[()] * (room - len(body)), _foot(view, keys)]
    return tuple(_clipped(line, columns) for line in shown[-lines:])


def _clipped(line: Line, columns: int) -> Line:
    """Return a line in at most ``columns``; a selected row is padded, so that its bar reaches the edge."""
    kept: list[Span] = []
    left = columns
    for span in line:
        if left <= 0:
            break
        text = shorten(span.text, left)
        kept.append(Span(text, span.style))
        left -= width(text)
    if kept and kept[-1].style is Style.SELECTED and left > 0:
        kept.append(Span(" " * left, Style.SELECTED))
    return tuple(kept)


def _foot(view: View, keys: str) -> Line:
    if view.is_typing and not view.opened and not view.is_help:
        return (Span(f"/{view.filter}_", Style.HEADER), Span(f"{_GAP}{keys}", Style.DIM))
    if view.problem:
        age = (view.now - view.failing_since).total_seconds() if view.failing_since is not None else 0.0
        time = f" for {duration(age)}" if age >= _LEAST_AGE_S else ""
        return (Span(f"no answer{time}: {printable(view.problem)}", Style.BAD),)
    return (Span(keys, Style.DIM),)


def _help() -> Iterator[Line]:
    yield (Span("Keys", Style.HEADER),)
    yield ()
    for keys, effect in HELP:
        yield Span(f"  {keys:<20}", Style.HEADER), Span(effect)


# --- the list ----------------------------------------------------------------------------------------------------------------


def _list(view: View, columns: int) -> Iterator[Line]:
    yield _daemon_line(view, columns)
    yield _counts_line(view)
    yield _names_line(view)
    if not view.rows:
        yield ()
        yield (Span(_when_empty(view), Style.DIM),)
        return
    first = _first_row(view)
    shown = view.rows[first : first + view.list_lines]
    widths = _widths(view, shown, columns)
    yield tuple(_header(view, widths))
    for number, row in enumerate(shown, first):
        yield tuple(_row(row, widths, is_selected=number == view.at))


def _first_row(view: View) -> int:
    """Return the index of the first shown row: the selected row is in the middle if there are enough rows above and below it."""
    return min(max(view.at - view.list_lines // 2, 0), max(len(view.rows) - view.list_lines, 0))


def _daemon_line(view: View, columns: int) -> Line:
    daemon = view.overview.daemon
    readiness, style = _readiness(daemon)
    age = (view.now - view.overview.at).total_seconds()
    clock = f"{view.overview.at:%H:%M:%S} UTC" if age < _LATE_S else f"{duration(age)} old"
    start = (
        Span(f"wharfinger {printable(daemon.version)}", Style.HEADER),
        Span(_GAP),
        Span(readiness, style),
        Span(_GAP + printable(daemon.cluster)),
    )
    left = _clipped(start, max(columns - len(clock) - len(_GAP), 1))
    space = columns - len(clock) - sum(width(span.text) for span in left)
    return *left, Span(" " * max(space, 0)), Span(clock, Style.DIM if age < _LATE_S else Style.WARNING)


def _readiness(daemon: DaemonSnapshot) -> tuple[str, Style]:
    if daemon.draining:
        return "shutting down", Style.WARNING
    if daemon.standby:
        return printable(daemon.standby), Style.WARNING
    return ("ready", Style.GOOD) if daemon.ready else ("starting", Style.WARNING)


def _counts_line(view: View) -> Line:
    spans = [Span(f"{counted(len(view.overview.packages), 'package')}")]
    for state, count in state_counts(view.overview.packages):
        spans += [Span(_GAP), Span(f"{count} {printable(state)}", state_style(state))]
    found = view.overview.statistics
    if found is not None:
        tasks = found.tasks
        spans.append(Span(f"{_GAP}tasks: {tasks.running} running, {tasks.backing_off} retrying, {tasks.parked} parked"))
        full = [printable(each.kind) for each in found.slots if each.waiting]
        spans += [Span(f"{_GAP}full: {', '.join(full)}", Style.WARNING)] if full else []
    return tuple(spans)


def _names_line(view: View) -> Line:
    spans: list[Span] = []
    counts = _list_counts(view)
    for number, kind in enumerate(ListKind, 1):
        text = f" {number} {kind} {counts[kind]} "
        spans.append(Span(text, Style.SELECTED if kind is view.shown else Style.PLAIN))
    if view.filter:
        spans.append(Span(f"{_GAP}filter: {view.filter} ({len(view.rows)})", Style.WARNING))
    return (*spans, Span(""))


def _list_counts(view: View) -> Counter[ListKind]:
    counts = Counter({ListKind.PACKAGES: len(view.overview.packages)})
    for package in view.overview.packages:
        counts[ListKind.QUEUES] += len(package.queue.tasks)
        counts[ListKind.HOOKS] += len(package.hooks)
        counts[ListKind.DRIFT] += len(package.drift) + len(package.failing)
    return counts


def _when_empty(view: View) -> str:
    if view.filter:
        return f"nothing contains {view.filter!r}; escape clears the filter"
    match view.shown:
        case ListKind.PACKAGES:
            return "no packages: `kubectl apply` an Application or a Module"
        case ListKind.QUEUES:
            return "no tasks: every queue is empty"
        case ListKind.HOOKS:
            return "no hooks: no package with hooks is loaded"
        case ListKind.DRIFT:
            return "no drift: every object is as it was applied"


def _widths(view: View, rows: Sequence[Row], columns: int) -> list[int]:
    titles = COLUMNS[view.shown]
    natural = [
        max(len(column.title) + 1, *(width(row.cells[at].text) for row in rows)) for at, column in enumerate(titles)
    ]
    room = columns - len(_GAP) * (len(titles) - 1)
    return fitted_widths(natural, [column.least for column in titles], room)


def _header(view: View, widths: Sequence[int]) -> Iterator[Span]:
    titles = [column.title for column in COLUMNS[view.shown]]
    titles[view.sorting.column] += "-" if view.sorting.is_reversed else "+"
    for text, gap in zip(_padded(titles, widths), _gaps(len(titles)), strict=True):
        yield Span(text + gap, Style.HEADER)


def _row(row: Row, widths: Sequence[int], *, is_selected: bool) -> Iterator[Span]:
    texts = _padded([cell.text for cell in row.cells], widths)
    for cell, text, gap in zip(row.cells, texts, _gaps(len(texts)), strict=True):
        yield Span(text + gap, Style.SELECTED if is_selected else cell.style)


def _padded(texts: Sequence[str], widths: Sequence[int]) -> list[str]:
    fitted = [shorten(text, max(columns, 1)) for text, columns in zip(texts, widths, strict=True)]
    return [text + " " * max(columns - width(text), 0) for text, columns in zip(fitted, widths, strict=True)]


def _gaps(count: int) -> list[str]:
    """Return the gap after each of ``count`` cells; there is none after the last."""
    return [_GAP] * (count - 1) + [""]


# --- the page ----------------------------------------------------------------------------------------------------------------


def _page(view: View) -> Iterator[Line]:
    all_lines = shown_lines(view)
    last = min(view.scroll + view.page_lines, len(all_lines))
    place = f"{_GAP}lines {view.scroll + 1}-{last} of {len(all_lines)}" if all_lines else ""
    yield Span(printable(view.opened), Style.HEADER), Span(place, Style.DIM)
    if view.page is None:
        yield ()
        yield (Span("asking the daemon ...", Style.DIM),)
    for line in all_lines[view.scroll : last]:
        yield (Span(line, _line_style(line)),)


def _line_style(line: str) -> Style:
    """Return the look of a line of a page: titles begin at the edge and end with a colon."""
    return Style.HEADER if line.endswith(":") and not line.startswith(" ") else Style.PLAIN
