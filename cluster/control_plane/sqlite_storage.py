"""Storage in a file, for a control plane whose state outlives its process: everything in memory, every write in SQLite first.

A write is committed to the file before it is made in memory, and the verb answers after both: what a client was told is in
the file, whatever kills the process. Reads never touch the file, so lists cost what they cost in memory. History is not
kept: after a start all older revisions are compacted, watches of before are answered 410, and clients list again.

Invariants:

* Memory holds exactly what the file holds: an object goes into memory as it is read back from the bytes that were stored.
* A revision is written in the same transaction as the change that took it, so it never goes back.
* The file belongs to one process: SQLite's exclusive locking mode, which the kernel lifts when that process ends.

The journal is a WAL with ``synchronous = FULL``: a commit waits for the disk, so that an answer outlives a power cut too.
Revisions would go back otherwise, and a client that saw a later one would wait for what never comes. Measured on a virtual
disk, objects of 2 kB: 0.14 ms for a write (99 % within 0.4 ms), against 0.02 ms without waiting (``NORMAL``, which a power
cut may undo). A disk without a write cache needs some milliseconds, during which nothing else is answered; a control plane
on a laptop writes a few objects a second.

The file's format: SQLite, ``application_id`` 0x77686172 ("whar"), the format's version in ``user_version``; a table
``objects`` (key and JSON, as stamped) and a table ``counter`` of one row, the revision. Secrets are in it: it is made 0600.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from wharfinger.cluster.control_plane.memory_storage import HISTORY_LIMIT, MemoryStorage, stamped
from wharfinger.cluster.control_plane.storage import Change, Collection, Key, StorageError
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import JsonObject, as_object, decode_json, encode_json, find_str

APPLICATION_ID: Final = 0x77686172
FORMAT_VERSION: Final = 1
MAX_OBJECT_BYTES: Final = 16 * 1024 * 1024
"""Of one stored object; a request's body is at most 3 MiB, and managed fields make it longer."""

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
    """The file cannot be used: damaged, of another program or version, held by another process, or not to be opened."""

    def __init__(self, path: Path, what: str, remedy: str) -> None:
        super().__init__(f"the data file {path} {what}; {remedy}")
        self.path = path


class SqliteStorage:
    """The storage of one file; made by :func:`open_sqlite_storage`. Its methods block for as long as the disk does."""

    def __init__(self, database: sqlite3.Connection, path: Path, memory: MemoryStorage) -> None:
        self._database = database
        self._path = path
        self._memory = memory

    @property
    def revision(self) -> int:
        return self._memory.revision

    @property
    def oldest(self) -> int:
        return self._memory.oldest

    def get(self, key: Key) -> JsonObject | None:
        return self._memory.get(key)

    def list(self, collection: Collection, namespace: str = "", *, at: int | None = None) -> tuple[JsonObject, ...]:
        return self._memory.list(collection, namespace, at=at)

    def put(self, key: Key, obj: JsonObject) -> Change:
        try:
            body = encode_json(stamped(obj, self.revision + 1))
            stored = _read(body)
        except FormatError as error:
            raise StorageError(f"{key.collection.plural} {key.place} cannot be stored: {error}") from error
        self._write(_PUT, (*_columns(key), body))
        return self._memory.put(key, stored)

    def delete(self, key: Key) -> Change:
        if self._memory.get(key) is None:
            raise KeyError(key)
        self._write(_DELETE, _columns(key))
        return self._memory.delete(key)

    def changes(self, collection: Collection, after: int) -> Sequence[Change]:
        return self._memory.changes(collection, after)

    def compact(self) -> None:
        self._memory.compact()

    def _write(self, statement: str, values: tuple[str | bytes, ...]) -> None:
        try:
            with _transaction(self._database):
                self._database.execute(statement, values)
                self._database.execute(_COUNT, (self.revision + 1,))
        except sqlite3.Error as error:
            raise StorageError(
                f"the data file {self._path} cannot be written: {error}; nothing was changed; look at the disk"
            ) from error


@contextmanager
def open_sqlite_storage(path: Path, *, history_limit: int = HISTORY_LIMIT) -> Iterator[SqliteStorage]:
    """The storage in ``path``, held while the block runs; a new one is made where there is none. Raises StorageFileError.

    Missing folders are made with mode 0700. ``history_limit`` bounds the changes kept in memory for watches.
    """
    try:
        _make(path)
        database = _connect(path)
    except OSError as error:
        raise StorageFileError(path, f"cannot be made: {error.strerror}", "choose another") from error
    with closing(database):
        with _explaining(path):
            _prepare(database, path)
            memory = _load(database, path, history_limit)
        yield SqliteStorage(database, path, memory)


def _make(path: Path) -> None:
    """Make the file before SQLite does, which would let everybody read it; its journal takes its mode from it."""
    missing = [folder for folder in path.absolute().parents if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def _connect(path: Path) -> sqlite3.Connection:
    with _explaining(path):
        return sqlite3.connect(path, timeout=0, isolation_level=None)


def _prepare(database: sqlite3.Connection, path: Path) -> None:
    """Take hold of the file, see that it is whole and ours, and lay out a new one."""
    database.execute("PRAGMA locking_mode = EXCLUSIVE")  # before anything is read, or the lock comes later
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    with _transaction(database):
        application, version = _pragma(database, "application_id"), _pragma(database, "user_version")
        [tables] = database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if (application, version, tables) == (0, 0, 0):
            for statement in _SCHEMA:
                database.execute(statement)
        elif application != APPLICATION_ID:
            raise StorageFileError(path, "is of another program", "choose another file")
        elif version != FORMAT_VERSION:
            what = f"has format {version}, and this program knows format {FORMAT_VERSION}"
            raise StorageFileError(path, what, "use the program that wrote it, or choose another file")


def _load(database: sqlite3.Connection, path: Path, history_limit: int) -> MemoryStorage:
    """Read the file whole. Raises StorageFileError where something in it cannot have been written here."""
    verdict = _pragma(database, "quick_check(1)")
    if verdict != "ok":
        raise _damaged(path, str(verdict))
    row = database.execute("SELECT revision FROM counter").fetchone()
    revision = row[0] if row is not None else None
    if not isinstance(revision, int) or revision < 1:
        raise _damaged(path, "it has no revision")
    objects: dict[Key, JsonObject] = {}
    for group, plural, namespace, name, body in database.execute(_SELECT):
        try:
            obj = _read(body)
            given = find_str(obj, "metadata", "resourceVersion")
        except (FormatError, TypeError) as error:
            raise _damaged(path, f"{plural} {namespace}/{name}: {error}") from error
        if not given.isascii() or not given.isdigit() or int(given) > revision:
            raise _damaged(path, f"{plural} {namespace}/{name} bears revision {given!r}, the latest is {revision}")
        objects[Key(Collection(group, plural), namespace, name)] = obj
    return MemoryStorage(history_limit=history_limit, revision=revision, objects=objects.items())


def _read(body: bytes) -> JsonObject:
    return as_object(decode_json(body, max_bytes=MAX_OBJECT_BYTES, what="the object"), "the object")


def _columns(key: Key) -> tuple[str, str, str, str]:
    return key.collection.group, key.collection.plural, key.namespace, key.name


def _pragma(database: sqlite3.Connection, name: str) -> object:
    with closing(database.execute(f"PRAGMA {name}")) as found:
        value: object = found.fetchone()[0]
        return value


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    """Everything or nothing."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


_DAMAGE: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_ERROR})
"""SQLITE_ERROR too: the statements are fixed, so a table is not what the version promises."""
_HELD: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


@contextmanager
def _explaining(path: Path) -> Iterator[None]:
    """What SQLite raises when a file is opened, as StorageFileError."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF
        if code in _HELD:
            remedy = "stop the control plane that uses it, or choose another file"
            raise StorageFileError(path, "is in use by another process", remedy) from error
        if code in _DAMAGE:
            raise _damaged(path, str(error)) from error
        raise StorageFileError(path, f"cannot be used: {error}", "look at the disk and at its owner") from error


def _damaged(path: Path, why: str) -> StorageFileError:
    remedy = (
        f"put a copy of it back, or move it and {path.name}-wal away to begin with an empty cluster "
        "(what runs elsewhere is not touched)"
    )
    return StorageFileError(path, f"is damaged ({why})", remedy)
