"""The rows of a journal file, read and altered directly, as a user or a faulty disk might do."""

import sqlite3
from contextlib import closing
from pathlib import Path

from wharfinger.process.journal_file import JournalFile, Row, TableSpec

THINGS = TableSpec("things", 2, {"name": "TEXT", "number": "INTEGER"}, keys=1, loss="things are lost")


def rows_of(path: Path, spec: TableSpec = THINGS) -> tuple[Row, ...]:
    with closing(JournalFile(path)) as file:
        return file.table(spec).rows()


def altered(path: Path, script: str) -> None:
    """Alter the file with SQL, as a user might do."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(script)
