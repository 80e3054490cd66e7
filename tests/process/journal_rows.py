"""A journal file's rows, from outside: what is in a table, and what a hand, or a bad disk, does to it."""

import sqlite3
from contextlib import closing
from pathlib import Path

from wharfinger.process.journal_file import JournalFile, Row, TableSpec

THINGS = TableSpec("things", 2, {"name": "TEXT", "number": "INTEGER"}, keys=1, loss="things are lost")


def rows_of(path: Path, spec: TableSpec = THINGS) -> tuple[Row, ...]:
    with closing(JournalFile(path)) as file:
        return file.table(spec).rows()


def altered(path: Path, script: str) -> None:
    """What a hand, or a bad disk, does to the file."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(script)
