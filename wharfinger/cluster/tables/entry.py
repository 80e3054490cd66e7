"""A row with its revision, and the bookkeeping of its table.

A row is never changed; the next row with its key is another *version*. Versions are kept in logs that all snapshots share. Two
numbers decide which snapshots see a version: the ``revision`` at which it was written, and the revision at which it ``ended``.
"""

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

PRESENT: Final = (1 << 62) - 1
"""``Version.ended`` of a row that is in the table: later than any revision."""
GRAVE: Final = 0
"""The value of ``Version.ended`` for a deletion that may still have to be reported to a reader. No snapshot sees such a version
as a row.
"""
FORGOTTEN: Final = -1
"""The value of ``Version.ended`` for a deletion that does not have to be reported to any reader."""


class Entry(Generic[R_co]):
    """A row, and the revision of its table at which it was inserted; readers must not change it."""

    __slots__ = ("created", "revision", "row")

    def __init__(self, row: R_co, revision: int, created: int = 0) -> None:
        self.row = row
        self.revision = revision
        self.created = created
        """The revision at which this key was inserted for the first time since it was last deleted."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entry) and self.revision == other.revision and bool(self.row == other.row)

    def __hash__(self) -> int:
        return hash(self.revision)

    def __repr__(self) -> str:
        return f"Entry({self.row!r}, revision={self.revision})"


class Version(Entry[R], Generic[K, R]):
    """An entry in a log. ``ended``: the revision at which the entry was replaced or deleted, or PRESENT, GRAVE or FORGOTTEN."""

    __slots__ = ("ended", "key")

    def __init__(self, key: K, row: R, revision: int, created: int, ended: int) -> None:
        self.key = key
        self.row = row
        self.revision = revision
        self.created = created
        self.ended = ended
