"""Rows and tables for the tests of tables."""

from collections.abc import Iterable
from dataclasses import dataclass

import trio

from wharfinger.cluster.tables.graveyard import GRAVES
from wharfinger.cluster.tables.snapshot import Index, Snapshot
from wharfinger.cluster.tables.table import Table
from wharfinger.cluster.tables.transaction import write
from wharfinger.cluster.tables.watch import Watch


@dataclass(frozen=True, slots=True)
class Row:
    """A row with a value, any number of tags, and a seat, which only one row may have. The number 0 means no seat."""

    key: str
    value: int = 0
    tags: tuple[str, ...] = ()
    seat: int = 0


RowTable = Table[str, Row]


def key_of(row: Row) -> str:
    return row.key


def seats(row: Row) -> Iterable[int]:
    return [row.seat] if row.seat else []


def a_table(name: str = "rows", graves: int = GRAVES) -> RowTable:
    """Return a table with the indexes "tag" and "seat" (unique)."""
    tag, seat = Index[Row](lambda row: row.tags), Index(seats, unique=True)
    return Table(name, key_of, indexes={"tag": tag, "seat": seat}, graves=graves)


def put(table: RowTable, *rows: Row) -> int:
    """Insert rows in one transaction, and return the table's revision."""
    with write(table) as tx:
        for row in rows:
            tx.insert(table, row)
    return table.snapshot().revision


def drop(table: RowTable, *keys: str) -> int:
    """Delete rows in one transaction, and return the table's revision."""
    with write(table) as tx:
        for key in keys:
            tx.delete(table, key)
    return table.snapshot().revision


def rows_of(snapshot: Snapshot[str, Row]) -> dict[str, int]:
    """Return the key and the value of each row, in the order of revisions."""
    return {entry.row.key: entry.row.value for entry in snapshot.entries()}


def fired(*watches: Watch) -> list[bool]:
    """Return for each watch whether it has fired."""
    return [watch.fired for watch in watches]


async def first_fired(*watches: Watch) -> None:
    """Wait until one of the watches has fired."""
    async with trio.open_nursery() as nursery:
        for watch in watches:

            async def one(watch: Watch = watch) -> None:
                await watch.wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(one)
