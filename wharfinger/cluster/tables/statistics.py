"""The statistics of a table."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TrackerStatistics:
    """The progress of a reader. ``revision``: the last revision that it read; ``lag``: the number of changes since then."""

    name: str
    revision: int
    lag: int


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """The present numbers of one table.

    ``graves`` is the number of deletions that are kept for readers. ``versions`` is the number of entries in the log, including
    those of replaced and deleted rows. ``expired`` has the names of the last readers that fell too far behind. ``watches`` is
    the number of keys and index values that are watched.
    """

    name: str
    revision: int
    rows: int
    graves: int
    versions: int
    trackers: tuple[TrackerStatistics, ...]
    expired: tuple[str, ...]
    pending_initializers: tuple[str, ...]
    watches: int
