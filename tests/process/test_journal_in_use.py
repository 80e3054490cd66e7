"""The open journal file. If it is damaged, one call fails, and only rows that are not also in memory are lost. Calls hardly
wait for a lock.
"""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.process.journal_rows import THINGS, altered, rows_of
from wharfinger.process.errors import JournalFileError
from wharfinger.process.journal_file import BUSY_IN_USE_S, BUSY_S, MAX_WARNINGS, SET_ASIDE_MAX, JournalFile, Row


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a journal with three rows."""
    with closing(JournalFile(tmp_path / "journal.db")) as file:
        file.table(THINGS).write((), [("a", 1), ("b", 2), ("c", 3)])
    return tmp_path / "journal.db"


@pytest.mark.parametrize("call", ["put", "write", "rows"])
def test_damage_while_open_fails_one_call_and_begins_a_new_file(path: Path, call: str) -> None:
    with closing(JournalFile(path)) as file:
        table, others = file.table(THINGS), file.table(replace(THINGS, name="others"))
        altered(path, "DROP TABLE things")
        with pytest.raises(
            JournalFileError, match=r"was damaged .* was renamed to .*damaged-1; .* retry the call"
        ) as caught:
            if call == "put":
                table.put(("d", 4))
            elif call == "write":
                table.write([("a",)], [("d", 4)])
            else:
                table.rows()
        assert caught.value.transient
        assert len(file.warnings) == 1
        table.put(("d", 4))
        others.put(("e", 5))
    assert rows_of(path) == (("d", 4),)
    assert rows_of(path, replace(THINGS, name="others")) == (("e", 5),)


def test_a_table_that_accepts_no_rows_counts_as_damage(path: Path) -> None:
    """The columns of the table are right, so it can be read. An additional constraint prevents writing."""
    with closing(JournalFile(path)) as file:
        table = file.table(THINGS)
        columns = (
            "name TEXT NOT NULL, number INTEGER NOT NULL CHECK (number > 9), checksum TEXT NOT NULL, PRIMARY KEY (name)"
        )
        altered(path, f"DROP TABLE things; CREATE TABLE things ({columns}) WITHOUT ROWID")
        table.put(("big", 10))
        with pytest.raises(JournalFileError, match=r"was damaged .* retry the call"):
            table.put(("d", 4))
        assert len(file.warnings) == 1
        table.put(("d", 4))
    assert rows_of(path) == (("d", 4),)


def test_remembered_rows_survive_damage_of_the_file(path: Path) -> None:
    kept = replace(THINGS, remembered=True)
    with closing(JournalFile(path)) as file:
        table, others = file.table(kept), file.table(replace(THINGS, name="others"))
        others.put(("e", 5))
        table.put(("d", 4))
        table.delete("a")
        table.write([("b",)], [("b", 20), ("f", 6)])
        with pytest.raises(JournalFileError, match="cannot be written"):
            table.write([("c",)], [("bad \ud800", 2)])
        for number in range(2):
            altered(path, "DROP TABLE things")
            with pytest.raises(
                JournalFileError, match="the rows of things, which were in memory; things are lost; retry"
            ):
                table.put(("g", 7))
            assert table.rows() == (("b", 20), ("c", 3), ("d", 4), ("f", 6))
            assert others.rows() == ()
            assert len(file.warnings) == number + 1
        table.put(("g", 7))
    assert rows_of(path, kept) == (("b", 20), ("c", 3), ("d", 4), ("f", 6), ("g", 7))


def test_a_callback_gets_earlier_and_later_warnings(path: Path) -> None:
    altered(path, "UPDATE things SET number = 7 WHERE name = 'b'")
    told: list[str] = []
    with closing(JournalFile(path)) as file:
        table = file.table(THINGS)
        file.report_to(told.append)
        assert len(told) == 1
        for _ in range(MAX_WARNINGS + 5):
            altered(path, "DROP TABLE things")
            with pytest.raises(JournalFileError):
                table.put(("d", 4))
            assert told[-1] == file.warnings[-1]
        assert len(told) == MAX_WARNINGS + 6
        assert len(file.warnings) == MAX_WARNINGS


def test_a_row_that_is_altered_while_open_is_not_returned(path: Path) -> None:
    with closing(JournalFile(path)) as file:
        table = file.table(THINGS)
        altered(path, "UPDATE things SET number = 7 WHERE name = 'b'")
        with pytest.raises(JournalFileError, match=r"damaged while it was in use \(1 rows\); restart the daemon"):
            table.rows()


def test_a_lock_of_another_process_is_waited_for_and_then_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening the file waits a long time for the lock. Later calls hardly wait, because their callers block other tasks."""
    monkeypatch.setattr("wharfinger.process.journal_file.BUSY_S", 0.01)
    with closing(sqlite3.connect(path, isolation_level=None)) as other, closing(JournalFile(path)) as file:
        table = file.table(THINGS)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(JournalFileError, match="locked"):
            table.put(("d", 4))
        with pytest.raises(JournalFileError, match="locked"):
            file.table(replace(THINGS, name="others"))
        other.execute("ROLLBACK")
        table.put(("d", 4))
    assert len(rows_of(path)) == 4


def patience(database: sqlite3.Connection) -> int:
    """Return the busy timeout in milliseconds."""
    with closing(database.execute("PRAGMA busy_timeout")) as found:
        (milliseconds,) = found.fetchone()
    return int(milliseconds)


def test_only_opening_has_a_long_timeout(path: Path) -> None:
    waits: list[int] = []

    def migrating(database: sqlite3.Connection) -> Iterable[Row]:
        waits.append(patience(database))
        return ()

    with closing(JournalFile(path)) as file:
        assert patience(file._database) == 1000 * BUSY_IN_USE_S
        table = file.table(replace(THINGS, version=3, migrations={2: migrating}))
        assert waits == [1000 * BUSY_S]
        assert patience(file._database) == 1000 * BUSY_IN_USE_S
        altered(path, "DROP TABLE things")
        with pytest.raises(JournalFileError, match="was damaged"):
            table.rows()
        assert patience(file._database) == 1000 * BUSY_IN_USE_S
        table.put(("a", 1))
        altered(path, "DROP TABLE table_versions; CREATE TABLE table_versions (something)")
        file.table(THINGS)  # This call finds the damage and starts a new journal.
        assert patience(file._database) == 1000 * BUSY_IN_USE_S


def test_an_error_reports_that_no_new_file_can_be_begun(path: Path) -> None:
    file = JournalFile(path)
    altered(path, "DROP TABLE table_versions; CREATE TABLE table_versions (something)")
    for number in range(1, SET_ASIDE_MAX + 1):
        (path.parent / f"{path.name}.damaged-{number}").mkdir()
    with pytest.raises(JournalFileError, match="Is a directory"):
        file.table(THINGS)
