"""The state of the live view, the events that change it, and the effects that follow.

Pure. `machine` has the transitions, `screen` draws a state.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeAlias

from wharfinger.debug.package.description import Description
from wharfinger.debug.top.lists import ListKind, Row, Sorting
from wharfinger.runtime.daemon_details import DaemonSnapshot, StatisticsSnapshot
from wharfinger.runtime.inspector import PackageSnapshot
from wharfinger.runtime.package_details import LogSnapshot

HEAD_LINES: Final = 4
"""The lines above a list: the daemon, the counts, the names of the lists, and the header of the table."""
PAGE_HEAD_LINES: Final = 1
FOOT_LINES: Final = 1


@dataclass(frozen=True, slots=True)
class Overview:
    """One answer about the whole daemon. ``statistics`` is None while the daemon is starting."""

    daemon: DaemonSnapshot
    packages: tuple[PackageSnapshot, ...]
    statistics: StatisticsSnapshot | None
    at: datetime


@dataclass(frozen=True, slots=True)
class PackagePage:
    """One answer about one package; ``description`` is None if the daemon does not know the package any more."""

    name: str
    description: Description | None
    log: LogSnapshot | None
    at: datetime


@dataclass(frozen=True, slots=True)
class View:
    """The state of the live view. ``columns`` and ``lines`` are the size of the terminal.

    ``rows`` are the rows of the list ``shown``, filtered and sorted. ``at`` is the index of the selected row, and ``selected`` is
    the key by which this row is found again in the next answer. ``is_typing`` is True while keys edit the filter. ``opened`` is
    the package whose page is shown, "" if the list is shown. ``page`` is the last answer about this package, and ``scroll`` the
    first shown line of the page. ``problem`` is the reason why the daemon has not answered since ``failing_since``.
    """

    overview: Overview
    columns: int
    lines: int
    now: datetime
    arrow: str = "->"
    shown: ListKind = ListKind.PACKAGES
    sortings: dict[ListKind, Sorting] = field(default_factory=dict)
    filter: str = ""
    is_typing: bool = False
    rows: tuple[Row, ...] = ()
    at: int = 0
    selected: tuple[str, ...] | None = None
    opened: str = ""
    page: PackagePage | None = None
    scroll: int = 0
    is_help: bool = False
    problem: str = ""
    failing_since: datetime | None = None

    @property
    def list_lines(self) -> int:
        """The number of rows that fit below the header; at least one."""
        return max(self.lines - HEAD_LINES - FOOT_LINES, 1)

    @property
    def page_lines(self) -> int:
        """The number of lines of a page that fit; at least one."""
        return max(self.lines - PAGE_HEAD_LINES - FOOT_LINES, 1)

    @property
    def sorting(self) -> Sorting:
        """The sorting of the shown list."""
        return self.sortings.get(self.shown, Sorting())


@dataclass(frozen=True, slots=True)
class Pressed:
    """A key: its character, or a name such as ``up`` and ``enter``."""

    key: str


@dataclass(frozen=True, slots=True)
class Resized:
    """The terminal has a new size."""

    columns: int
    lines: int


@dataclass(frozen=True, slots=True)
class Answered:
    """The daemon has answered the request for its overview."""

    overview: Overview


@dataclass(frozen=True, slots=True)
class PageAnswered:
    """The daemon has answered the request for the page of one package."""

    page: PackagePage


@dataclass(frozen=True, slots=True)
class Failed:
    """The daemon did not answer."""

    problem: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Ticked:
    """A second passed."""

    at: datetime


Event: TypeAlias = Pressed | Resized | Answered | PageAnswered | Failed | Ticked


@dataclass(frozen=True, slots=True)
class Watch:
    """Begin to request the data of this package, or of the whole daemon if ``name`` is "". The first request is sent
    immediately.
    """

    name: str


@dataclass(frozen=True, slots=True)
class Quit:
    """End the view; ``problem`` is an error to report, "" if the user wants to leave."""

    problem: str = ""


Effect: TypeAlias = Watch | Quit
