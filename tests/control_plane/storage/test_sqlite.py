"""The storage in a SQLite file: its contract, restarts, kills at any moment, and damaged or foreign files."""

import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from tests.control_plane.support.storage_contract import PODS, StorageContract, StorageMachine, contents, names, pod
from tests.control_plane.support.storage_writer import GROUP
from tests.programs import ROOT
from tests.scale import scaled
from wharfinger.control_plane.storage.interface import ChangeType, CommitError, CompactedError, Key, StorageError
from wharfinger.control_plane.storage.sqlite import (
    APPLICATION_ID,
    FORMAT_VERSION,
    MAX_OBJECT_BYTES,
    SqliteStorage,
    StorageFileError,
    open_sqlite_storage,
)
from wharfinger.formats.json.value import MAX_DEPTH, JsonValue, find_int


class TestSqliteStorage(StorageContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> object:
        with ExitStack() as opened:
            self.opened, self.path = opened, tmp_path / "data.db"
            yield

    def new(self) -> SqliteStorage:
        return self.opened.enter_context(open_sqlite_storage(self.path))


class Restarts(StorageMachine):
    """The `StorageMachine` of the contract, with a storage in a file that may be closed and opened again between two steps."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.opened = ExitStack()
        super().__init__(self.open)

    def open(self) -> SqliteStorage:
        return self.opened.enter_context(open_sqlite_storage(self.folder / "data.db", history_limit=5))

    @precondition(lambda self: hasattr(self, "storage"))
    @rule()
    def restart(self) -> None:
        revision = self.storage.revision
        self.opened.close()
        self.storage = self.open()
        assert (self.storage.revision, self.storage.oldest) == (revision, revision)

    def teardown(self) -> None:
        self.opened.close()
        shutil.rmtree(self.folder)


def test_sqlite_storage_agrees_with_the_model_across_restarts() -> None:
    run_state_machine_as_test(
        Restarts,
        settings=settings(max_examples=scaled(200, 25), stateful_step_count=30, deadline=None),
    )


def test_a_restart_preserves_objects_and_compacts_older_revisions(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "data.db"
    with open_sqlite_storage(path) as storage:
        first = storage.put(*pod("x", n=1))
        second = storage.put(*pod("x", n=2))
        last = storage.delete(storage.put(*pod("y")).key)
    with open_sqlite_storage(path) as storage:
        assert storage.list(PODS) == (second.obj,)
        assert storage.get(first.key) == second.obj
        assert storage.revision == last.revision
        with pytest.raises(CompactedError):
            storage.changes(PODS, last.revision - 1)
        assert storage.put(*pod("z")).revision == last.revision + 1
    assert [stat.S_IMODE(entry.stat().st_mode) for entry in (path, path.parent, path.parent.parent)] == [
        0o600,
        0o700,
        0o700,
    ]
    assert [entry.name for entry in path.parent.iterdir()] == ["data.db"]


def test_the_journal_has_the_mode_of_the_file(tmp_path: Path) -> None:
    with open_sqlite_storage(tmp_path / "data.db") as storage:
        storage.put(*pod("x"))
        assert {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in tmp_path.iterdir()} == {
            "data.db": 0o600,
            "data.db-wal": 0o600,
        }


def test_a_file_is_locked_while_it_is_open(tmp_path: Path) -> None:
    path = tmp_path / "data.db"
    with (
        open_sqlite_storage(path) as storage,
        pytest.raises(StorageFileError, match=r"data\.db is in use by another process; stop the control plane that"),
        open_sqlite_storage(path),
    ):
        pytest.fail("it was opened twice")
    with open_sqlite_storage(path) as again:
        assert again.revision == storage.revision


@pytest.mark.slow
@pytest.mark.unmeasured
def test_committed_writes_survive_a_kill_at_any_moment(tmp_path: Path) -> None:
    """Several writers of a file are killed in turn. The file then has all acknowledged writes, and at most one more commit."""
    path, known, revision = tmp_path / "data.db", dict[str, int](), 1
    for seed in range(scaled(50, 6)):
        acknowledged = killed_after(path, seed, lines=(seed * 37) % 90 + 1)
        for line in acknowledged:
            number, name, n = line.split()
            assert int(number) == revision + 1
            revision = int(number)
            known.pop(name, None) if n == "-" else known.update({name: int(n)})
        with open_sqlite_storage(path) as storage:
            assert 0 <= storage.revision - revision <= GROUP
            found = {name.removeprefix("a/"): n for name, n in zip(*listed(storage), strict=True)}
            if storage.revision == revision:
                assert found == known
            else:
                assert len(found.items() ^ known.items()) <= 2 * (storage.revision - revision)
            known, revision = found, storage.revision
    assert revision > scaled(50, 6)


def killed_after(path: Path, seed: int, *, lines: int) -> list[str]:
    """Kill a writer while it is writing, after it has printed ``lines`` lines. Return the lines of all acknowledged writes."""
    module = "tests.control_plane.support.storage_writer"
    command = (sys.executable, "-m", module, str(path), str(seed))
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        rest = process.stdout.readlines()
    assert all(said), "the writer ended by itself"
    return [line for line in (*said, *rest) if line.endswith("\n")]


def listed(storage: SqliteStorage) -> tuple[list[str], list[int]]:
    """Return the names of all pods, and the numbers in their fields ``n``."""
    objects = storage.list(PODS)
    return names(objects), [find_int(item, "n") for item in objects]


@settings(
    max_examples=scaled(500, 40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_a_truncated_journal_gives_an_earlier_state(
    written: tuple[Path, list[dict[tuple[str, str], int]]], data: st.DataObject
) -> None:
    """A power cut may leave a journal whose end did not reach the disk. The file then opens with an earlier state."""
    folder, states = written
    journal = (folder / "data.db-wal").read_bytes()
    length = data.draw(st.integers(0, len(journal)))
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "data.db"
        shutil.copy(folder / "data.db", path)
        path.with_name("data.db-wal").write_bytes(journal[:length])
        with open_sqlite_storage(path) as storage:
            assert contents(storage.list(PODS)) == states[storage.revision - 1]
            assert length < len(journal) or storage.revision == len(states)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[tuple[str, str], int]]]:
    """Return a folder with files as a killed process leaves them, and the contents at each revision from 1 on."""
    folder, source = tmp_path_factory.mktemp("cut"), tmp_path_factory.mktemp("source") / "data.db"
    states: list[dict[tuple[str, str], int]] = [{}]
    with open_sqlite_storage(source) as storage:
        for number in range(30):
            storage.put(*pod("abc"[number % 3], n=number))
            storage.commit()
            states.append(contents(storage.list(PODS)))
        for suffix in ("", "-wal"):
            shutil.copy(f"{source}{suffix}", folder / f"data.db{suffix}")
    return folder, states


def make(path: Path, *statements: str) -> Path:
    """Create a data file with one object, run these SQL statements on the file, and return its path."""
    with open_sqlite_storage(path) as storage:
        storage.put(*pod("x"))
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement)
    return path


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("DROP TABLE objects", "no such table: objects"),
        ("DROP TABLE counter", "no such table: counter"),
        ("DELETE FROM counter", "it has no revision"),
        ("UPDATE counter SET revision = 'x'", "it has no revision"),
        ("UPDATE counter SET revision = 0", "it has no revision"),
        ("UPDATE counter SET revision = 1", "pods a/x has revision '2', but the latest is 1"),
        ("UPDATE objects SET body = '{}'", "pods a/x has revision ''"),
        ("UPDATE objects SET body = x'7b'", "pods a/x: the object: "),
        ("UPDATE objects SET body = x'5b5d'", "pods a/x: the object: expected an object"),
        ("UPDATE objects SET body = 7", "pods a/x: "),
        (
            """UPDATE objects SET body = '{"metadata": {"resourceVersion": "²"}}'""",
            "pods a/x has revision '²'",
        ),
    ],
)
def test_inconsistent_content_is_reported_as_damage(statement: str, words: str, tmp_path: Path) -> None:
    path = make(tmp_path / "data.db", statement)
    with pytest.raises(StorageFileError) as caught, open_sqlite_storage(path):
        pytest.fail("it was opened")
    assert str(caught.value).startswith(f"the data file {path} is damaged (")
    assert words in str(caught.value)
    assert "restore a copy of it, or move it and data.db-wal away" in str(caught.value)
    assert caught.value.path == path


def test_a_file_that_violates_its_constraints_is_damaged(tmp_path: Path) -> None:
    path = make(tmp_path / "data.db", "PRAGMA ignore_check_constraints = ON", "INSERT INTO counter VALUES (2, 9)")
    with pytest.raises(StorageFileError, match=r"is damaged \(CHECK constraint failed"), open_sqlite_storage(path):
        pytest.fail("it was opened")


@settings(max_examples=scaled(1000, 60), deadline=None)
@given(data=st.data())
def test_changed_bytes_are_reported_as_damage_or_are_harmless(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = make(Path(folder) / "data.db")
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(content[: data.draw(st.integers(1, len(content)))])
        try:
            with open_sqlite_storage(path) as storage:
                assert storage.revision >= 1
        except StorageFileError as error:
            assert str(path) in str(error)


def test_a_schema_that_is_not_text_is_reported_as_damage(tmp_path: Path) -> None:
    path = make(tmp_path / "data.db")
    content = path.read_bytes()
    place = content.index(b"CHECK (id = 1)")
    path.write_bytes(content[:place] + b"\x80" + content[place + 1 :])
    with pytest.raises(StorageFileError, match="is damaged"), open_sqlite_storage(path):
        pytest.fail("it was opened")


def test_a_file_that_is_not_a_database_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "data.db").write_bytes(b"kind: Namespace\n" * 500)
    with (
        pytest.raises(StorageFileError, match=r"data\.db is damaged \(file is not a database\)"),
        open_sqlite_storage(tmp_path / "data.db"),
    ):
        pytest.fail("it was opened")


def test_an_empty_file_becomes_a_new_database(tmp_path: Path) -> None:
    (tmp_path / "data.db").write_bytes(b"")
    with open_sqlite_storage(tmp_path / "data.db") as storage:
        assert (storage.revision, storage.oldest) == (1, 1)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (f"PRAGMA application_id = {APPLICATION_ID + 1}", "belongs to another program; choose another file"),
        ("PRAGMA application_id = 0", "belongs to another program; choose another file"),
        (
            f"PRAGMA user_version = {FORMAT_VERSION + 1}",
            f"has format {FORMAT_VERSION + 1}, but this program only knows format {FORMAT_VERSION}; use the program that wrote",
        ),
    ],
)
def test_files_of_other_programs_and_versions_are_not_changed(statement: str, words: str, tmp_path: Path) -> None:
    path = make(tmp_path / "data.db", statement)
    before = path.read_bytes()
    with pytest.raises(StorageFileError) as caught, open_sqlite_storage(path):
        pytest.fail("it was opened")
    assert words in str(caught.value)
    assert path.read_bytes() == before


def test_unusable_paths_are_reported_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path, words in (
        (tmp_path / "file" / "data.db", "cannot be created: Not a directory; choose another file"),
        (tmp_path, "cannot be created: Is a directory; choose another file"),
        (tmp_path / ("x" * 300), "cannot be created: File name too long; choose another file"),
    ):
        with pytest.raises(StorageFileError) as caught, open_sqlite_storage(path):
            pytest.fail("it was opened")
        assert str(caught.value) == f"the data file {path} {words}"


def test_a_failed_commit_changes_nothing(tmp_path: Path) -> None:
    with open_sqlite_storage(tmp_path / "data.db") as storage:
        kept, gone = storage.put(*pod("x", n=1)), storage.put(*pod("y"))
        storage.commit()
        storage._database.execute("PRAGMA max_page_count = 1")
        pages: dict[str, JsonValue] = {"text": "x" * 100_000}
        storage.put(kept.key, {**kept.obj, **pages})
        storage.put(kept.key, {**kept.obj, "n": 3})
        storage.delete(gone.key)
        storage.put(*pod("z", text=pages))
        storage.delete(storage.put(*pod("w")).key)
        with pytest.raises(
            CommitError, match=r"data\.db cannot be written: .*full; no change was kept; check the"
        ) as caught:
            storage.commit()

        assert {(change.type, change.key.name, change.obj.get("n")) for change in caught.value.undone} == {
            (ChangeType.DELETED, "z", None),
            (ChangeType.ADDED, "y", None),
            (ChangeType.MODIFIED, "x", 1),
        }
        assert (storage.get(kept.key), storage.revision, storage.committed) == (kept.obj, gone.revision, gone.revision)
        assert names(storage.list(PODS)) == ["a/x", "a/y"]
        assert storage.changes(PODS, gone.revision) == []
        storage._database.execute("PRAGMA max_page_count = 1000000")
        assert storage.put(kept.key, kept.obj).revision == gone.revision + 1
        storage.commit()
        assert storage.committed == storage.revision


@pytest.mark.parametrize("what", ["deep", "large"])
def test_objects_too_large_or_deep_to_read_back_are_refused(what: str, tmp_path: Path) -> None:
    value: JsonValue = "x" * MAX_OBJECT_BYTES
    if what == "deep":
        for _ in range(MAX_DEPTH):
            value = [value[:1] if isinstance(value, str) else value]
    with open_sqlite_storage(tmp_path / "data.db") as storage:
        with pytest.raises(
            StorageError, match=r"pods a/x cannot be stored: the object: .*(nested deeper|over the limit)"
        ):
            storage.put(Key(PODS, "a", "x"), {"metadata": {"name": "x"}, "value": value})
        assert (storage.revision, storage.committed, storage.list(PODS)) == (1, 1, ())


def test_a_disk_failure_is_not_reported_as_damage(tmp_path: Path) -> None:
    """A folder at the path of the journal makes the file unusable, but the file itself is not damaged."""
    path = make(tmp_path / "data.db")
    (tmp_path / "data.db-wal").mkdir()
    with (
        pytest.raises(StorageFileError, match=r"data\.db cannot be used: .*; check the disk and the file's owner"),
        open_sqlite_storage(path),
    ):
        pytest.fail("it was opened")
