"""A simple model of tables, made of copied dictionaries and sorting."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tests.cluster.tables.samples import Row


class Kept(NamedTuple):
    """An existing row, or a deleted row as it was last. ``revision`` is the revision of its last write or of its deletion."""

    row: Row
    revision: int
    created: int


class Told(NamedTuple):
    """A change of a row, as a reader gets it."""

    key: str
    row: Row
    revision: int
    deleted: bool
    created: int


@dataclass(eq=False)
class Reader:
    """A reader of changes. ``copy`` has the rows that the reader has computed from the changes."""

    begun: int
    mark: int = 0
    expired: bool = False
    copy: dict[str, Kept] = field(default_factory=dict)

    @property
    def needs(self) -> int:
        return max(self.begun, self.mark)


@dataclass(frozen=True)
class State:
    """An immutable state of a table. :func:`putting` and :func:`deleting` return a new state."""

    rows: dict[str, Kept] = field(default_factory=dict)
    deleted: dict[str, Kept] = field(default_factory=dict)
    revision: int = 0

    def entries(self) -> list[tuple[Row, int]]:
        return sorted(((one.row, one.revision) for one in self.rows.values()), key=lambda entry: entry[1])

    def find(self, tag: str) -> list[tuple[Row, int]]:
        return [entry for entry in self.entries() if tag in entry[0].tags]

    def seated(self, seat: int) -> list[tuple[Row, int]]:
        return [entry for entry in self.entries() if seat and entry[0].seat == seat]

    def taken(self, row: Row) -> str | None:
        """Return the key of another row with the same seat, or None."""
        return next((other.key for other, _ in self.seated(row.seat) if other.key != row.key), None)


def putting(state: State, row: Row) -> State:
    revision = state.revision + 1
    old = state.rows.get(row.key)
    kept = Kept(row, revision, old.created if old else revision)
    deleted = {key: one for key, one in state.deleted.items() if key != row.key}
    return replace(state, rows={**state.rows, row.key: kept}, deleted=deleted, revision=revision)


def deleting(state: State, key: str) -> State:
    if key not in state.rows:
        return state
    revision, old = state.revision + 1, state.rows[key]
    rows = {other: one for other, one in state.rows.items() if other != key}
    return State(rows, {**state.deleted, key: Kept(old.row, revision, old.created)}, revision)


class Model:
    """A table with its readers. A reader expires if it would need more than ``limit`` stored deletions."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.state = State()
        self.readers: list[Reader] = []
        self.expired = 0
        self.pending: set[str] = set()
        self.turns = 0

    def graves(self) -> dict[str, Kept]:
        low = min((reader.needs for reader in self.readers if not reader.expired), default=self.state.revision)
        return {key: one for key, one in self.state.deleted.items() if one.revision > low}

    def commit(self, state: State) -> None:
        self.state = state
        while len(self.graves()) > self.limit:
            active = [reader for reader in self.readers if not reader.expired]
            low = min(reader.needs for reader in active)
            for reader in active:
                if reader.needs == low:
                    reader.expired = True
                    self.expired += 1

    def take(self, reader: Reader, limit: int | None) -> list[Told]:
        """Return the next changes of a reader, and update its copy."""
        told = [
            Told(key, *one[:2], False, one.created)
            for key, one in self.state.rows.items()
            if one.revision > reader.mark
        ]
        told += [
            Told(key, *one[:2], True, one.created)
            for key, one in self.state.deleted.items()
            if one.revision > reader.needs
        ]
        told.sort(key=lambda one: one.revision)
        chosen = told if limit is None else told[:limit]
        if limit is None or len(chosen) < limit:
            reader.mark = self.state.revision
        elif chosen:
            reader.mark = chosen[-1].revision
        return chosen


def replay(copy: dict[str, Kept], told: Iterable[Told]) -> None:
    """Apply the changes that a reader was told to its copy of the rows."""
    for one in told:
        if one.deleted:
            copy.pop(one.key, None)
        else:
            copy[one.key] = Kept(one.row, one.revision, one.created)
