"""The journal file: acknowledged rows survive `kill -9`, doubtful rows are never returned, and damage never prevents a start."""

import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.process.journal_rows import THINGS, altered, rows_of
from tests.process.killed_writer import acknowledged, killed_at_random
from tests.scale import scaled
from wharfinger.process.errors import JournalFileError
from wharfinger.process.journal_file import (
    SET_ASIDE_MAX,
    JournalFile,
    Row,
    TableSpec,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a journal with three rows."""
    with closing(JournalFile(tmp_path / "journal.db")) as file:
        file.table(THINGS).write((), [("a", 1), ("b", 2), ("c", 3)])
    return tmp_path / "journal.db"


def test_rows_are_stored_for_the_next_opening(path: Path) -> None:
    with closing(JournalFile(path)) as file:
        table = file.table(THINGS)
        table.put(("b", 20))
        table.delete("a")
        table.delete("nobody")
        table.write([("c",)], [("c", 30), ("d", 4)])
        assert file.warnings == ()
    assert rows_of(path) == (("b", 20), ("c", 30), ("d", 4))


def test_a_prefix_of_a_key_deletes_all_rows_with_it(tmp_path: Path) -> None:
    spec = TableSpec("pairs", 1, {"a": "TEXT", "b": "TEXT", "c": "INTEGER"}, keys=2)
    with closing(JournalFile(tmp_path / "journal.db")) as file:
        table = file.table(spec)
        table.write((), [("x", "1", 1), ("x", "2", 2), ("y", "1", 3)])
        table.delete("x")
        assert table.rows() == (("y", "1", 3),)


def test_several_changes_are_made_together_or_not_at_all(path: Path) -> None:
    with closing(JournalFile(path)) as file:
        table = file.table(THINGS)
        with pytest.raises(JournalFileError, match="cannot be written"):
            table.write([("a",)], [("new", 1), ("bad \ud800", 2)])
        with pytest.raises(JournalFileError, match="cannot be written"):
            table.write([("a",)], [("new", 2**70)])
        with pytest.raises(JournalFileError, match="check the disk"):
            table.put(("bad \ud800", 2))
        table.put(("later", 4))
    assert rows_of(path) == (("a", 1), ("b", 2), ("c", 3), ("later", 4))


FULL = """
import resource, sys
from pathlib import Path
from wharfinger.process.errors import JournalFileError
from wharfinger.process.journal_file import JournalFile, TableSpec

table = JournalFile(Path(sys.argv[1])).table(TableSpec("things", 2, {"name": "TEXT", "number": "INTEGER"}, keys=1))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
for many in (10_000, 100_000):
    try:
        table.write([("a",)], [(f"thing {number}", number) for number in range(many)])
    except JournalFileError as error:
        print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
table.put(("d", 4))
"""


@pytest.mark.slow
def test_a_full_disk_leaves_existing_rows(path: Path) -> None:
    """The test limits the size of files, which has the effect of a full disk."""
    done = subprocess.run([sys.executable, "-c", FULL, str(path)], check=True, capture_output=True, text=True)
    assert done.stdout.count("cannot be written") == 2
    assert done.stdout.count("check the disk") == 2
    assert rows_of(path) == (("a", 1), ("b", 2), ("c", 3), ("d", 4))


@pytest.mark.parametrize(
    "script",
    [
        "UPDATE things SET number = 7 WHERE name = 'b'",
        "UPDATE things SET name = 'B' WHERE name = 'b'",
        "UPDATE things SET checksum = (SELECT checksum FROM things WHERE name = 'a') WHERE name = 'b'",
        "UPDATE things SET checksum = x'00' WHERE name = 'b'",
        "UPDATE things SET number = 'two' WHERE name = 'b'",
        "UPDATE things SET name = CAST(x'62ff' AS TEXT) WHERE name = 'b'",
        "UPDATE things SET name = x'62' WHERE name = 'b'",
    ],
)
def test_a_damaged_row_sets_the_table_aside(path: Path, script: str) -> None:
    altered(path, script)
    with closing(JournalFile(path)) as file:
        assert file.table(THINGS).rows() == ()
        (warning,) = file.warnings
        assert "(0 of the 2 undamaged rows were kept); it was renamed to things_set_aside_1: things are lost" in warning
        file.table(THINGS).put(("new", 1))
    assert rows_of(path) == (("new", 1),)
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT count(*) FROM things_set_aside_1").fetchone() == (3,)


def test_valid_rows_are_retained_on_request(path: Path) -> None:
    altered(path, "UPDATE things SET number = 7 WHERE name = 'b'")
    assert rows_of(path, replace(THINGS, keep_sound=True)) == (("a", 1), ("c", 3))


def test_a_row_of_another_version_is_not_used(path: Path) -> None:
    """If only the version of the table was raised, by hand, the rows still have the old version and are not used."""
    altered(path, "UPDATE table_versions SET version = 3")
    assert rows_of(path, replace(THINGS, version=3)) == ()


@pytest.mark.parametrize("script", ["UPDATE table_versions SET version = 99", "DELETE FROM table_versions"])
def test_a_table_of_an_unknown_version_is_set_aside(path: Path, script: str) -> None:
    altered(path, script)
    with closing(JournalFile(path)) as file:
        assert file.table(THINGS).rows() == ()
        (warning,) = file.warnings
        assert ("version 99" in warning) or ("no version" in warning)
        assert "this program reads version 2; it was renamed to things_set_aside_1: things are lost" in warning


def test_the_number_of_tables_set_aside_is_bounded(path: Path) -> None:
    for _ in range(SET_ASIDE_MAX + 2):
        altered(path, "UPDATE table_versions SET version = 99")
        assert rows_of(path) == ()
    with closing(sqlite3.connect(path)) as database:
        (count,) = database.execute(
            "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'things_set_aside_%'"
        ).fetchone()
    assert count == SET_ASIDE_MAX


def older(rows: Iterable[Row]) -> TableSpec:
    return replace(THINGS, version=3, migrations={2: lambda _: rows})


def test_an_older_version_is_migrated_once(path: Path) -> None:
    spec = replace(
        THINGS, version=3, migrations={2: lambda database: database.execute("SELECT name, number + 100 FROM things")}
    )
    for _ in range(2):
        with closing(JournalFile(path)) as file:
            assert file.table(spec).rows() == (("a", 101), ("b", 102), ("c", 103))
            assert file.warnings == ()
    assert rows_of(path) == ()  # A program that reads the old version does not misread the new table.


def test_a_migration_that_fails_leaves_the_old_table(path: Path) -> None:
    def failing() -> Iterable[Row]:
        yield ("a", 1)
        raise OSError("no disk")

    with closing(JournalFile(path)) as file, pytest.raises(JournalFileError, match="no disk"):
        file.table(older(failing()))
    assert rows_of(path) == (("a", 1), ("b", 2), ("c", 3))


KILLED = """
import os, signal, sys
from pathlib import Path
from wharfinger.process.journal_file import JournalFile, TableSpec

class Deadly(TableSpec):
    def put(self, row):
        if row[0] == "c":
            os.kill(os.getpid(), signal.SIGKILL)
        return TableSpec.put(self, row)

columns = {"name": "TEXT", "number": "INTEGER"}
read = lambda database: database.execute("SELECT name, number FROM things")
JournalFile(Path(sys.argv[1])).table(Deadly("things", 3, columns, 1, {2: read}))
"""


def test_a_kill_in_the_middle_of_a_migration_leaves_the_old_table(path: Path) -> None:
    """When the process is killed, the old table is already dropped, and the new one has two of three rows."""
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert rows_of(path) == (("a", 1), ("b", 2), ("c", 3))


def test_a_table_that_cannot_be_migrated_is_set_aside(path: Path) -> None:
    with closing(JournalFile(path)) as file:
        assert file.table(older([("a", 1), ("b", "two")])).rows() == ()
        assert "1 damaged rows" in file.warnings[0]
    altered(path, "UPDATE table_versions SET version = 2")
    assert rows_of(path, replace(older([("a", 1), ("b", "two")]), keep_sound=True)) == (("a", 1),)


def test_a_migration_excludes_other_writers(path: Path) -> None:
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:

        def migrating(database: sqlite3.Connection) -> Iterable[Row]:
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("DELETE FROM things")
            return database.execute("SELECT name, number FROM things")

        with closing(JournalFile(path)) as file:
            spec = replace(THINGS, version=3, migrations={2: migrating})
            assert [row[1] for row in file.table(spec).rows()] == [1, 2, 3]


@pytest.mark.parametrize("damage", ["text", "cut", "scrambled", "header"])
def test_a_damaged_file_is_set_aside(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "journal.db"
    with closing(JournalFile(path)) as file:
        file.table(THINGS).write((), [(f"thing {number}", number) for number in range(500)])
    data = path.read_bytes()
    path.write_bytes(
        {
            "text": b"not a database, " * 600,
            "cut": data[:5000],
            "scrambled": data[:100] + random.Random(7).randbytes(len(data) - 100),  # noqa: S311 - the same bytes each time
            "header": bytes(100) + data[100:],
        }[damage]
    )
    with closing(JournalFile(path)) as file:
        assert file.table(THINGS).rows() == ()
        assert len(file.warnings) == 1
        assert "was damaged" in file.warnings[0]
        file.table(THINGS).put(("new", 1))
    assert (tmp_path / "journal.db.damaged-1").exists()
    assert rows_of(path) == (("new", 1),)


def test_damage_outside_of_rows_is_found_at_the_start(path: Path) -> None:
    """The list of free pages is wrong, so the next write might overwrite other data."""
    data = bytearray(path.read_bytes())
    data[36:40] = (3).to_bytes(4, "big")
    path.write_bytes(data)
    with closing(JournalFile(path)) as file:
        assert file.table(THINGS).rows() == ()
        (warning,) = file.warnings
        assert "was damaged" in warning


def test_side_files_of_a_damaged_file_are_renamed_with_it(path: Path) -> None:
    """SQLite removes the side files when it closes the file, unless another process has the file open. In this case, they must
    be renamed together with the file.
    """
    with closing(JournalFile(path)) as other:
        other.table(THINGS).put(("d", 4))
        path.write_bytes(b"not a database, " * 600)
        (path.parent / "journal.db-wal").write_bytes(b"not a log")
        assert rows_of(path) == ()
        assert (path.parent / "journal.db.damaged-1-wal").read_bytes() == b"not a log"


def test_the_number_of_damaged_files_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    for number in range(SET_ASIDE_MAX + 2):
        path.write_bytes(b"not a database %d" % number)
        assert rows_of(path) == ()
    kept = sorted(tmp_path.glob("*.damaged-*"))
    assert len(kept) == SET_ASIDE_MAX
    assert kept[-1].read_bytes() == b"not a database %d" % (SET_ASIDE_MAX + 1)


@pytest.mark.parametrize(
    "script",
    [
        "DROP TABLE things; CREATE TABLE things (something)",
        "DROP TABLE table_versions; CREATE TABLE table_versions (something)",
        "DROP TABLE table_versions; CREATE VIEW table_versions AS SELECT 1 AS name, 2 AS version",
    ],
)
def test_a_file_with_wrong_tables_is_replaced(path: Path, script: str) -> None:
    others = replace(THINGS, name="others")
    altered(path, script)
    with closing(JournalFile(path)) as file:
        table = file.table(others)
        assert file.table(THINGS).rows() == ()
        assert table.rows() == ()
        assert len(file.warnings) == 1
        table.put(("new", 1))
    assert rows_of(path, others) == (("new", 1),)


def test_other_tables_are_unchanged(path: Path) -> None:
    others = replace(THINGS, name="others")
    altered(path, "UPDATE things SET number = 7")
    with closing(JournalFile(path)) as file:
        file.table(others).put(("a", 1))
        file.table(THINGS)
        assert file.table(others).rows() == (("a", 1),)


def test_a_missing_folder_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(JournalFileError, match=r"cannot be opened.*check the disk and the owner") as caught:
        JournalFile(tmp_path / "none" / "journal.db")
    assert caught.value.transient


def test_many_threads_write_at_once(tmp_path: Path) -> None:
    with closing(JournalFile(tmp_path / "journal.db")) as file:
        table = file.table(THINGS)

        def write(name: str) -> None:
            for number in range(100):
                table.put((f"{name}{number}", number))
                table.write([(f"{name}{number}",)], [(f"{name}{number}", -number)] if number % 2 else [])

        threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(table.rows()) == sorted((f"{name}{n}", -n) for name in "abcd" for n in range(1, 100, 2))


@given(st.tuples(st.text(), st.integers()), st.tuples(st.text(), st.integers()))
def test_checksums_differ_between_rows(one: tuple[str, int], other: tuple[str, int]) -> None:
    assert (THINGS.checksum(one) == THINGS.checksum(other)) == (one == other)


@given(st.text(alphabet=st.characters(codec="utf-8")), st.integers(-(2**63), 2**63 - 1) | st.booleans())
def test_a_row_is_read_as_it_was_written(name: str, number: int) -> None:
    with closing(JournalFile(Path(":memory:"))) as file:
        table = file.table(THINGS)
        table.put((name, number))
        assert table.rows() == ((name, number),)


@pytest.mark.unmeasured
def test_damaged_bytes_never_return_rows_that_were_not_written(tmp_path: Path) -> None:
    """Random bits of the file are flipped. The file can always be opened, and returns only rows that were written."""
    path = tmp_path / "journal.db"
    written = tuple((f"thing {number:03}", number) for number in range(100))
    with closing(JournalFile(path)) as file:
        file.table(THINGS).write((), written)
    data = path.read_bytes()
    chance = random.Random(11)  # noqa: S311 - the same bits each time
    kept = warned = 0
    for number in range(scaled(5_000, 150)):
        bad = bytearray(data)
        for _ in range(1 + number % 4):
            bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
        path.write_bytes(bad)
        with closing(JournalFile(path)) as file:
            rows = file.table(replace(THINGS, keep_sound=bool(number % 2))).rows()
            assert set(rows) <= set(written)
            kept += rows == written
            warned += bool(file.warnings)
        for other in tmp_path.iterdir():
            other.unlink()
    assert min(kept, warned) > 0, (kept, warned)


WRITER = """
import sys
from pathlib import Path
from wharfinger.process.journal_file import JournalFile, TableSpec

table = JournalFile(Path(sys.argv[1])).table(TableSpec("things", 2, {"name": "TEXT", "number": "INTEGER"}, keys=1))
number = 0
while True:
    number += 1
    table.write([("one",)] if number % 3 == 0 else [], [("one", number), ("two", number)])
    sys.stdout.write("%d\\n" % number)
    sys.stdout.flush()
"""


@pytest.mark.slow
@pytest.mark.unmeasured
def test_acknowledged_rows_survive_kill_9_at_any_moment(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    chance = random.Random(3)  # noqa: S311 - how much is written before the end; no secret
    for _ in range(scaled(200, 8)):
        said = killed_at_random(WRITER, [str(path)], chance)
        with closing(JournalFile(path)) as file:
            rows = file.table(THINGS).rows()
            assert file.warnings == ()
        last = acknowledged(said)
        assert rows[0][1] == rows[1][1]  # A write is stored either completely or not at all.
        assert last <= int(rows[0][1]) <= last + 1


def test_kill_9_while_a_damaged_file_is_set_aside_does_not_prevent_a_start(tmp_path: Path) -> None:
    """The process was killed after it had renamed the damaged file, and before it created a new one."""
    path = tmp_path / "journal.db"
    path.write_bytes(b"not a database")
    path.rename(tmp_path / "journal.db.damaged-1")
    assert rows_of(path) == ()
