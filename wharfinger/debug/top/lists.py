"""The four lists of the live view: packages, the tasks of their queues, hooks, and drift.

Pure. Texts of packages and of the cluster are not trusted: control characters are escaped here, so a row is safe to draw.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, StrEnum
from typing import Final

from wharfinger.debug.fields import duration
from wharfinger.debug.printing.stage import stage_text, state_rank
from wharfinger.debug.printing.task import task_state_text, task_why_text
from wharfinger.formats.terminal_text import printable
from wharfinger.runtime.inspector import HookSnapshot, PackageSnapshot, TaskSnapshot


class Style(Enum):
    """The look of a piece of text. Color is never the only mark: the text has the same meaning without it."""

    PLAIN = "plain"
    HEADER = "header"
    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"
    DIM = "dim"
    SELECTED = "selected"


class ListKind(StrEnum):
    """The lists, in the order of their keys 1 to 4."""

    PACKAGES = "Packages"
    QUEUES = "Queues"
    HOOKS = "Hooks"
    DRIFT = "Drift"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a list in the live view; ``least`` is the width to which it may shrink."""

    title: str
    least: int


@dataclass(frozen=True, slots=True)
class Sorting:
    """The column by which a list is sorted, and the direction."""

    column: int = 0
    is_reversed: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell; ``weight`` is compared first when its column is sorted, then the text."""

    text: str
    style: Style = Style.PLAIN
    weight: float = 0.0


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a list. ``key`` identifies the row in the next answer; ``package`` is the package whose page the row opens."""

    key: tuple[str, ...]
    package: str
    cells: tuple[Cell, ...]

    @property
    def text(self) -> str:
        """All texts of the row, for the filter."""
        return " ".join(cell.text for cell in self.cells).casefold()


COLUMNS: Final[Mapping[ListKind, tuple[Column, ...]]] = {
    ListKind.PACKAGES: (
        Column("NAME", 12),
        Column("STATE", 9),
        Column("STAGE", 10),
        Column("QUEUE", 12),
        Column("HOOKS", 9),
        Column("DRIFT", 5),
        Column("MESSAGE", 10),
    ),
    ListKind.QUEUES: (
        Column("PACKAGE", 12),
        Column("TASK", 10),
        Column("STATE", 8),
        Column("TRY", 3),
        Column("AGE", 5),
        Column("WHY", 10),
    ),
    ListKind.HOOKS: (
        Column("PACKAGE", 12),
        Column("HOOK", 10),
        Column("RUNS", 4),
        Column("LAST", 5),
        Column("WAITING", 7),
        Column("ERROR", 10),
    ),
    ListKind.DRIFT: (Column("PACKAGE", 12), Column("KIND", 7), Column("DETAIL", 20)),
}
_STYLES: Final[Mapping[str, Style]] = {
    "Ready": Style.GOOD,
    "Failed": Style.BAD,
    "Degraded": Style.BAD,
    "Suspended": Style.DIM,
    "Disabled": Style.DIM,
}


def rows_of(kind: ListKind, packages: Sequence[PackageSnapshot], now: datetime) -> list[Row]:
    """Return the rows of a list, in the order of the daemon's answer. Ages are counted back from ``now``."""
    return list(_ROWS[kind](packages, now))


def arranged(rows: Sequence[Row], filter_text: str, sorting: Sorting) -> tuple[Row, ...]:
    """Return the rows that contain the text, sorted; equal rows keep their order."""
    wanted = filter_text.casefold()
    kept = [row for row in rows if wanted in row.text] if wanted else list(rows)
    column = sorting.column
    kept.sort(
        key=lambda row: (row.cells[column].weight, row.cells[column].text.casefold()), reverse=sorting.is_reversed
    )
    return tuple(kept)


def state_style(state: str) -> Style:
    """Return the look of a package's state."""
    return _STYLES.get(state, Style.WARNING)


def _packages(packages: Sequence[PackageSnapshot], _now: datetime) -> Iterator[Row]:
    for package in packages:
        cells = (
            _text(package.name),
            _text(package.state, state_style(package.state), state_rank(package.state)),
            _text(stage_text(package)),
            _queue_cell(package.queue.tasks),
            _hooks_cell(package.hooks),
            _number(len(package.drift), Style.WARNING),
            _text(package.message),
        )
        yield Row((package.name,), package.name, cells)


def _queue_cell(tasks: Sequence[TaskSnapshot]) -> Cell:
    parked = sum(task.parked for task in tasks)
    retried = sum(task.retry_in_s is not None for task in tasks)
    style = Style.BAD if parked else Style.WARNING if retried else Style.PLAIN
    more = f" ({parked} parked)" if parked else f" ({retried} again)" if retried else ""
    return Cell(f"{len(tasks)}{more}" if tasks else "", style, -len(tasks))


def _hooks_cell(hooks: Sequence[HookSnapshot]) -> Cell:
    failed = sum(bool(hook.last_error) for hook in hooks)
    text = f"{len(hooks)} ({failed} bad)" if failed else str(len(hooks) or "")
    return Cell(text, Style.BAD if failed else Style.PLAIN, -(failed * 1_000_000 + len(hooks)))


def _queues(packages: Sequence[PackageSnapshot], _now: datetime) -> Iterator[Row]:
    for package in packages:
        for number, task in enumerate(package.queue.tasks):
            bad = Style.BAD if task.parked else Style.WARNING if task.error else Style.PLAIN
            cells = (
                _text(package.name),
                _text(task.name),
                _text(task_state_text(task), bad if task.parked or task.error else _running(task)),
                _number(task.attempt, bad),
                Cell(duration(task.enqueued_s_ago), weight=-task.enqueued_s_ago),
                _text(task_why_text(task), bad),
            )
            # Two tasks of one queue may have the same lane and name.
            yield Row((package.name, task.lane, task.name, str(number)), package.name, cells)


def _running(task: TaskSnapshot) -> Style:
    return Style.GOOD if task.running else Style.PLAIN


def _hooks(packages: Sequence[PackageSnapshot], now: datetime) -> Iterator[Row]:
    for package in packages:
        for hook in package.hooks:
            age = None if hook.last_run is None else max((now - hook.last_run).total_seconds(), 0.0)
            cells = (
                _text(package.name),
                _text(hook.name),
                _number(hook.runs),
                Cell("never", Style.DIM, 1e12) if age is None else Cell(duration(age), weight=age),
                _number(hook.waiting, Style.WARNING),
                _text(hook.last_error, Style.BAD, 0 if hook.last_error else 1),
            )
            yield Row((package.name, hook.name), package.name, cells)


def _drift(packages: Sequence[PackageSnapshot], _now: datetime) -> Iterator[Row]:
    for package in packages:
        found = ((("drift", Style.WARNING), package.drift), (("failing", Style.BAD), package.failing))
        for (kind, style), texts in found:
            for text in texts:
                yield Row(
                    (package.name, kind, text), package.name, (_text(package.name), Cell(kind, style), _text(text))
                )


def _text(text: str, style: Style = Style.PLAIN, weight: float = 0.0) -> Cell:
    return Cell(printable(text), style, weight)


def _number(number: int, style: Style = Style.PLAIN) -> Cell:
    """Return a cell that is empty for zero; the largest number is sorted first."""
    return Cell(str(number or ""), style, -number)


_ROWS: Final[Mapping[ListKind, Callable[[Sequence[PackageSnapshot], datetime], Iterator[Row]]]] = {
    ListKind.PACKAGES: _packages,
    ListKind.QUEUES: _queues,
    ListKind.HOOKS: _hooks,
    ListKind.DRIFT: _drift,
}
