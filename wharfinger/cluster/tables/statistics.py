"""What a table tells of itself."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TrackerStatistics:
    """``revision``: up to where it has read; ``lag``: how many changes of the table came since."""

    name: str
    revision: int
    lag: int


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """``graves``: deletions that are remembered; ``versions``: what the log has, over or not; ``expired``: trackers that fell too
    far behind, the last ones; ``watches``: keys and index values that somebody watches.
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
