"""Storage in a file, for a control plane whose state outlives its process: all state is in memory, and every write is committed
to SQLite before it is answered.

A write is applied in memory immediately and waits there for :meth:`SqliteStorage.commit`, which writes all waiting changes in
one transaction. A client can see a change only after its commit. So everything that a client saw is in the file, even if the
process is killed, and concurrent requests share one wait for the disk
(``docs/decisions/0016-storage-of-the-control-plane.md``). Reads never access the file. The history is not in the file: after a
start all older revisions are compacted, so a watch from an older revision is answered with 410, and the client lists again.

Invariants:

* The file has the content that memory had at some revision: complete writes in their order, without gaps.
* The revision is written in the same transaction as the changes that made it, so it never decreases.
* If a commit fails, memory is reset to the content of the file, before any client sees a later state.
* Only one process uses the file: it is locked in SQLite's exclusive mode, and the kernel releases the lock when the process ends.

The journal is a WAL with ``synchronous = FULL``: a commit waits for the disk, so that an answered write also survives a power
cut. If it did not, revisions could decrease, and a client that saw a later revision would wait for changes that never come.

The file's format: SQLite, ``application_id`` 0x77686172 ("whar"), the format's version in ``user_version``; a table ``objects``
(key, and JSON with its resourceVersion) and a table ``counter`` of one row, the revision. The file contains Secrets, so it is
created with mode 0600.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from wharfinger.control_plane.storage.history import HISTORY_LIMIT
from wharfinger.control_plane.storage.interface import (
    Change,
    ChangeType,
    Collection,
    CommitError,
    Key,
    Record,
    StorageError,
)
from wharfinger.control_plane.storage.memory import MemoryStorage
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import MAX_DEPTH, JsonObject, as_object, decode_json, find_str

APPLICATION_ID: Final = 0x77686172
FORMAT_VERSION: Final = 1
MAX_OBJECT_BYTES: Final = 16 * 1024 * 1024
"""The maximum size of one stored object in bytes; a request's body is at most 3 MiB, and managed fields make the object
larger."""

_SCHEMA: Final = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORMAT_VERSION}",
    "CREATE TABLE counter (id INTEGER PRIMARY KEY CHECK (id = 1), revision INTEGER NOT NULL)",
    "INSERT INTO counter VALUES (1, 1)",
    """CREATE TABLE objects (
        api_group TEXT NOT NULL, plural TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY (api_group, plural, namespace, name)
    )""",
)
_SELECT: Final = "SELECT api_group, plural, namespace, name, body FROM objects"
_PUT: Final = "INSERT OR REPLACE INTO objects (api_group, plural, namespace, name, body) VALUES (?, ?, ?, ?, ?)"
_DELETE: Final = "DELETE FROM objects WHERE api_group = ? AND plural = ? AND namespace = ? AND name = ?"
_COUNT: Final = "UPDATE counter SET revision = ? WHERE id = 1"


class StorageFileError(StorageError):
    """The file cannot be used: it is damaged, belongs to another program or version, is in use by another process, or cannot
    be opened. The message has the path, the reason and the remedy."""

    def __init__(self, path: Path, what: str, remedy: str) -> None:
        super().__init__(f"the data file {path} {what}; {remedy}")
        self.path = path


class SqliteStorage:
    """The storage of one file; created by :func:`open_sqlite_storage`. Only ``commit`` waits for the disk."""

    def __init__(self, database: sqlite3.Connection, path: Path, memory: MemoryStorage) -> None:
        self._database = database
        self._path = path
        self._memory = memory
        self._committed = memory.revision
        self._waiting: list[Change] = []

    @property
    def revision(self) -> int:
        return self._memory.revision

    @property
    def committed(self) -> int:
        return self._committed

    @property
    def oldest(self) -> int:
        return self._memory.oldest

    def get(self, key: Key) -> JsonObject | None:
        return self._memory.get(key)

    def record(self, key: Key) -> Record | None:
        return self._memory.record(key)

    def list(self, collection: Collection, namespace: str = "", *, at: int | None = None) -> Sequence[JsonObject]:
        return self._memory.list(collection, namespace, at=at)

    def records(
        self, collection: Collection, namespace: str = "", *, start: str = "", at: int | None = None
    ) -> Iterator[Record]:
        return self._memory.records(collection, namespace, start=start, at=at)

    def count(self, collection: Collection, namespace: str = "", *, start: str = "", at: int | None = None) -> int:
        return self._memory.count(collection, namespace, start=start, at=at)

    def put(self, key: Key, obj: JsonObject) -> Change:
        latest = self.revision
        try:
            change = self._memory.put(key, obj)
        except FormatError as error:
            raise StorageError(f"{key.collection.plural} {key.place} cannot be stored: {error}") from error
        try:
            _check_readable(change.record.body)
        except FormatError as error:
            self._memory.undo([change], latest)
            raise StorageError(f"{key.collection.plural} {key.place} cannot be stored: {error}") from error
        self._waiting.append(change)
        return change

    def delete(self, key: Key) -> Change:
        change = self._memory.delete(key)
        self._waiting.append(change)
        return change

    def changes(
        self, collection: Collection, after: int, *, limit: int | None = None, upto: int | None = None
    ) -> Sequence[Change]:
        return self._memory.changes(collection, after, limit=limit, upto=upto)

    def compact(self) -> None:
        self._memory.compact()

    def commit(self) -> None:
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        try:
            with _transaction(self._database):
                # Only the last change of each object is written.
                for change in {change.key: change for change in waiting}.values():
                    if change.type is ChangeType.DELETED:
                        self._database.execute(_DELETE, _columns(change.key))
                    else:
                        self._database.execute(_PUT, (*_columns(change.key), change.record.body))
                self._database.execute(_COUNT, (self._memory.revision,))
        except sqlite3.Error as error:
            undone = self._memory.undo(waiting, self._committed)
            message = f"the data file {self._path} cannot be written: {error}; no change was kept; check the disk"
            raise CommitError(message, undone) from error
        self._committed = self._memory.revision


@contextmanager
def open_sqlite_storage(path: Path, *, history_limit: int = HISTORY_LIMIT) -> Iterator[SqliteStorage]:
    """Open the storage in ``path`` for the block, and commit at its end; a missing file is created.

    Missing folders are created with mode 0700. ``history_limit`` bounds the changes kept in memory for watches. Raises
    StorageFileError if the file cannot be opened, and CommitError if the last commit fails.
    """
    try:
        _make(path)
        database = _connect(path)
    except OSError as error:
        raise StorageFileError(path, f"cannot be created: {error.strerror}", "choose another file") from error
    with closing(database):
        with _explaining(path):
            _prepare(database, path)
            memory = _load(database, path, history_limit)
        storage = SqliteStorage(database, path, memory)
        yield storage
        storage.commit()


def _make(path: Path) -> None:
    """Create the file with mode 0600, because SQLite would make it readable for all users. Its journal gets the same mode."""
    missing = [folder for folder in path.absolute().parents if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def _connect(path: Path) -> sqlite3.Connection:
    with _explaining(path):
        return sqlite3.connect(path, timeout=0, isolation_level=None)


def _prepare(database: sqlite3.Connection, path: Path) -> None:
    """Lock the file, check that it belongs to this program and has a known format, and create the tables of a new file."""
    database.execute("PRAGMA locking_mode = EXCLUSIVE")  # must precede the first read, or SQLite locks the file later
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    with _transaction(database):
        application, version = _pragma(database, "application_id"), _pragma(database, "user_version")
        [tables] = database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if (application, version, tables) == (0, 0, 0):
            for statement in _SCHEMA:
                database.execute(statement)
        elif application != APPLICATION_ID:
            raise StorageFileError(path, "belongs to another program", "choose another file")
        elif version != FORMAT_VERSION:
            what = f"has format {version}, but this program only knows format {FORMAT_VERSION}"
            raise StorageFileError(path, what, "use the program that wrote it, or choose another file")


def _load(database: sqlite3.Connection, path: Path, history_limit: int) -> MemoryStorage:
    """Read the whole file. Raises StorageFileError if the file has content that this module cannot have written."""
    verdict = _pragma(database, "quick_check(1)")
    if verdict != "ok":
        raise _damaged(path, str(verdict))
    row = database.execute("SELECT revision FROM counter").fetchone()
    revision = row[0] if row is not None else None
    if not isinstance(revision, int) or revision < 1:
        raise _damaged(path, "it has no revision")
    bodies: list[tuple[Key, int, bytes]] = []
    for group, plural, namespace, name, body in database.execute(_SELECT):
        try:
            given = find_str(_read(body), "metadata", "resourceVersion")
        except (FormatError, TypeError) as error:
            raise _damaged(path, f"{plural} {namespace}/{name}: {error}") from error
        if not given.isascii() or not given.isdigit() or int(given) > revision:
            raise _damaged(path, f"{plural} {namespace}/{name} has revision {given!r}, but the latest is {revision}")
        bodies.append((Key(Collection(group, plural), namespace, name), int(given), _bytes(body)))
    return MemoryStorage(history_limit=history_limit, revision=revision, bodies=bodies)


def _read(body: bytes) -> JsonObject:
    return as_object(decode_json(body, max_bytes=MAX_OBJECT_BYTES, what="the object"), "the object")


def _check_readable(body: bytes) -> None:
    """Refuse an object that could not be read back. Raises FormatError."""
    if len(body) > MAX_OBJECT_BYTES or body.count(b"[") + body.count(b"{") > MAX_DEPTH:
        _read(body)


def _bytes(body: str | bytes) -> bytes:
    return body.encode() if isinstance(body, str) else body


def _columns(key: Key) -> tuple[str, str, str, str]:
    return key.collection.group, key.collection.plural, key.namespace, key.name


def _pragma(database: sqlite3.Connection, name: str) -> object:
    with closing(database.execute(f"PRAGMA {name}")) as found:
        value: object = found.fetchone()[0]
        return value


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    """Run the block in a transaction: all of its writes are committed, or none."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


_DAMAGE: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_ERROR})
"""The result codes of a damaged file. The statements are constant, so SQLITE_ERROR can only mean that a table or a column of the
known format is missing."""
_HELD: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


@contextmanager
def _explaining(path: Path) -> Iterator[None]:
    """Convert SQLite errors that occur while a file is opened to StorageFileError."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF
        if code in _HELD:
            remedy = "stop the control plane that uses it, or choose another file"
            raise StorageFileError(path, "is in use by another process", remedy) from error
        if code in _DAMAGE:
            raise _damaged(path, str(error)) from error
        raise StorageFileError(path, f"cannot be used: {error}", "check the disk and the file's owner") from error
    except UnicodeDecodeError as error:  # SQLite's message quotes a damaged schema, which need not be UTF-8
        raise _damaged(path, "its schema is not text") from error


def _damaged(path: Path, why: str) -> StorageFileError:
    remedy = (
        f"restore a copy of it, or move it and {path.name}-wal away to start with an empty cluster "
        "(other clusters are not affected)"
    )
    return StorageFileError(path, f"is damaged ({why})", remedy)
