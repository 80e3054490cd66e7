"""The journal of the state folder: one SQLite file with several tables. Only rows with a valid checksum are used.

After a ``kill -9`` of the daemon, the journal decides which of the remaining processes are killed, and which work is *not*
repeated, so it must never be wrong. The daemon also works if the journal is lost, so a bad journal must never keep the daemon
from starting.

Invariants:

* When a method returns, its change is in the file, even if the process is killed. The file uses WAL with
  ``synchronous = NORMAL``. (A power cut may remove the last commits, but never a part of a commit, because SQLite reads its log
  up to the first incomplete frame. The loss cannot be detected. A table whose older rows would be wrong after a power cut must
  store the boot ID in its rows.)
* Every row contains a checksum of itself, of its table's name and of that table's version. So every row that is returned was
  written by this program for this version of the table.
* Each table has a version, in ``table_versions``. A table of an older version is migrated if its `TableSpec` has a reader for
  that version; the table and its version change in one transaction. A table of any other version is set aside: it is renamed,
  and a new one begins empty.
* A table with rows that do not match their checksums is set aside in the same way. If its `TableSpec` sets ``keep_sound``, the
  other rows are kept; otherwise no row is kept, because one damaged row makes the whole table doubtful.
* A damaged file is renamed together with its WAL files, and a new file is begun. This happens when the file is opened, and also
  while the file is in use. In the second case, the call that found the damage fails, and can be repeated. Tables that are
  ``remembered`` lose no rows then, because their rows are written again from memory.
* For each file or table that was set aside, ``warnings`` contains one sentence, and the callback of `report_to` gets it.

The journal's methods block for microseconds and may be called from any thread. If another process is writing to the file, opening
the file or a table waits up to BUSY_S. Other calls wait only up to BUSY_IN_USE_S, because their callers block other tasks and can
retry.
"""

import hashlib
import json
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

from wharfinger.process.errors import JournalFileError

BUSY_S: Final = 5.0
"""The time, in seconds, for which opening the file, or one of its tables, may wait while another process writes."""
BUSY_IN_USE_S: Final = 0.05
"""The time, in seconds, for which a call on the open file may wait while another process writes."""
MAX_WARNINGS: Final = 100
SET_ASIDE_MAX: Final = 9
"""The maximum number of damaged journal files that are kept, and of unusable copies that are kept of each table. When this
number is reached, the next file or copy replaces the newest one.
"""

Row: TypeAlias = tuple[str | int, ...]
Reader: TypeAlias = Callable[[sqlite3.Connection], Iterable[Row]]
"""A function that reads a table of an older version, and returns rows of the current version."""


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table: ``columns`` in order with their types; the first ``keys`` of them are its primary key."""

    name: str
    version: int
    columns: Mapping[str, Literal["TEXT", "INTEGER"]]
    keys: int
    migrations: Mapping[int, Reader] = field(default_factory=dict)
    """The older versions of the table that can be read. Each version number is mapped to the function that reads its rows."""
    keep_sound: bool = False
    """True if the sound rows of a table are kept when other rows are damaged."""
    remembered: bool = False
    """True if the rows are also kept in memory, because they are few, describe the current state, and cannot be computed."""
    loss: str = ""
    """The consequence of losing the rows, as a clause for the warnings."""

    def checksum(self, row: Row) -> str:
        """Return the BLAKE2b-128 of the canonical row, in hexadecimal."""
        plain = (int(value) if isinstance(value, int) else value for value in row)  # SQLite has no booleans
        text = json.dumps([self.name, self.version, *plain], separators=(",", ":"))
        return hashlib.blake2b(text.encode("ascii"), digest_size=16).hexdigest()

    def key(self, row: Row) -> Row:
        """Return the key of a row."""
        return row[: self.keys]

    def create(self) -> str:
        """Return the statement that creates the table."""
        columns = ", ".join(f"{name} {kind} NOT NULL" for name, kind in self.columns.items())
        key = ", ".join(list(self.columns)[: self.keys])
        return f"CREATE TABLE {self.name} ({columns}, checksum TEXT NOT NULL, PRIMARY KEY ({key})) WITHOUT ROWID"

    def select(self) -> str:
        """Return the statement that reads the rows in the order of their keys. The checksum is the last column."""
        key = ", ".join(list(self.columns)[: self.keys])
        return f"SELECT {', '.join(self.columns)}, checksum FROM {self.name} ORDER BY {key}"  # noqa: S608  our own names

    def put(self, row: Row) -> "Statement":
        """Return the statement that inserts a row, or replaces the row with the same key."""
        marks = ", ".join("?" * (len(self.columns) + 1))
        return f"INSERT OR REPLACE INTO {self.name} VALUES ({marks})", (*row, self.checksum(row))  # noqa: S608

    def delete(self, prefix: Row) -> "Statement":
        """Return the statement that deletes the rows whose key begins with ``prefix``."""
        names = list(self.columns)[: len(prefix)]
        where = " AND ".join(f"{name} = ?" for name in names)
        return f"DELETE FROM {self.name} WHERE {where}", prefix  # noqa: S608


Statement: TypeAlias = tuple[str, Row]


class JournalTable:
    """One table of a journal. Made by `JournalFile.table`."""

    def __init__(self, file: "JournalFile", spec: TableSpec) -> None:
        self._file = file
        self._spec = spec

    def rows(self) -> tuple[Row, ...]:
        """Return all rows in the order of their keys. Raises JournalFileError, also if a row does not match its checksum."""
        sound, damaged = self._file.read(self._spec)
        if damaged:
            raise JournalFileError(
                f"the table {self._spec.name} of the journal {self._file.path} was damaged while it was in use "
                f"({damaged} rows); restart the daemon, which sets the table aside"
            )
        return sound

    def put(self, row: Row) -> None:
        """Insert a row, or replace the row with the same key. Raises JournalFileError if nothing was written."""
        self._file.change(self._spec, (), (row,))

    def delete(self, *prefix: str | int) -> None:
        """Delete the rows whose key begins with ``prefix``, if there are any. Raises JournalFileError."""
        self._file.change(self._spec, (prefix,), ())

    def write(self, deletes: Iterable[Row], puts: Iterable[Row]) -> None:
        """Apply the deletes (prefixes of keys), then the puts, all or nothing. Raises JournalFileError."""
        self._file.change(self._spec, tuple(deletes), tuple(puts))


class JournalFile:
    """An open journal file, in an existing folder. The constructor and all methods may raise JournalFileError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._warnings: deque[str] = deque(maxlen=MAX_WARNINGS)
        self._report: Callable[[str], None] = lambda _: None
        self._specs: dict[str, TableSpec] = {}
        self._remembered: dict[str, dict[Row, Row]] = {}  # by table and key
        self._lock = threading.Lock()
        self._busy_s = BUSY_S
        with self._translating_errors("be opened"):
            self._database = self._open()
            self._wait_at_most(BUSY_IN_USE_S)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return a sentence for each file or table that was set aside; at most the last MAX_WARNINGS."""
        return tuple(self._warnings)

    def report_to(self, report: Callable[[str], None]) -> None:
        """Call ``report`` immediately with each existing warning, and later with each new one, from any thread."""
        self._report = report
        for warning in self.warnings:
            report(warning)

    def close(self) -> None:
        """Close the file; the rows stay."""
        self._database.close()

    def table(self, spec: TableSpec) -> JournalTable:
        """Open the table, migrated to the version of ``spec``. Raises JournalFileError."""
        with self._translating_errors("be opened"), self._lock, self._waiting_longer():
            try:
                self._prepare(self._database, spec)
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                if not _is_damage(error):
                    raise
                self._database.close()
                self._database = self._begin_anew(error)
                self._prepare(self._database, spec)
            if spec.remembered:
                self._remembered[spec.name] = {spec.key(row): row for row in _read(self._database, spec)[0]}
            self._specs[spec.name] = spec
        return JournalTable(self, spec)

    def read(self, spec: TableSpec) -> tuple[tuple[Row, ...], int]:
        """Return the rows that match their checksums, and the number of those that do not. Raises JournalFileError."""
        with self._translating_errors("be read"), self._lock, self._replacing_if_damaged():
            return _read(self._database, spec)

    def change(self, spec: TableSpec, deletes: Sequence[Row], puts: Sequence[Row]) -> None:
        """Apply the deletes (prefixes of keys), then the puts, all or nothing. Raises JournalFileError."""
        statements = (*map(spec.delete, deletes), *map(spec.put, puts))
        with self._translating_errors("be written"), self._lock, self._replacing_if_damaged():
            if len(statements) == 1:
                self._database.execute(*statements[0])
            else:
                with _transaction(self._database):
                    for statement in statements:
                        self._database.execute(*statement)
            if spec.remembered:
                rows = self._remembered[spec.name]
                for prefix in deletes:
                    for key in [key for key in rows if key[: len(prefix)] == prefix]:
                        del rows[key]
                rows.update((spec.key(row), row) for row in puts)

    @contextmanager
    def _replacing_if_damaged(self) -> Iterator[None]:
        """Replace the file by a new one if the block finds it damaged. In this case, raise JournalFileError; the block can be
        retried.
        """
        try:
            yield
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if not _is_damage(error):
                raise
            self._database.close()
            self._database = self._begin_anew(error)
            raise JournalFileError(f"{self._warnings[-1]}; retry the call") from error

    @contextmanager
    def _translating_errors(self, what: str) -> Iterator[None]:
        """Turn errors of SQLite and of the file system, and errors about values that SQLite refuses, into JournalFileError."""
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeError, OverflowError) as error:
            raise JournalFileError(
                f"the journal {self.path} cannot {what}: {error}; check the disk and the owner of the state folder"
            ) from error

    @contextmanager
    def _waiting_longer(self) -> Iterator[None]:
        """Let statements in the block wait up to BUSY_S for another writer. The block is part of a start of the daemon, where
        such a wait does no harm.
        """
        self._wait_at_most(BUSY_S)
        try:
            yield
        finally:
            # The database is closed if no new file could be begun; the error about that is raised.
            with suppress(sqlite3.ProgrammingError):
                self._wait_at_most(BUSY_IN_USE_S)

    def _wait_at_most(self, seconds: float) -> None:
        self._database.execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}")
        self._busy_s = seconds

    def _open(self) -> sqlite3.Connection:
        try:
            return self._connect()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if not _is_damage(error):
                raise
            return self._begin_anew(error)

    def _begin_anew(self, error: Exception) -> sqlite3.Connection:
        """Set the damaged file aside, and begin a new one with the tables that are in use and the rows that are remembered."""
        aside = _set_aside(self.path)
        if self._specs:
            lost = "; ".join(spec.loss for spec in self._specs.values() if spec.loss and not spec.remembered)
            restored = ", ".join(self._remembered) or "no table"
            loss = f"a new one begins with the rows of {restored}, which were in memory" + (f"; {lost}" if lost else "")
        else:
            loss = (
                "a new one begins empty: child processes that the last daemon may have left running are not known and were "
                "not ended, and operations begin anew"
            )
        self._warn(f"the journal {self.path} was damaged ({error}) and was renamed to {aside}; {loss}")
        database = self._connect()
        for spec in self._specs.values():
            self._prepare(database, spec)
        with _transaction(database):
            for name, rows in self._remembered.items():
                for row in rows.values():
                    database.execute(*self._specs[name].put(row))
        return database

    def _warn(self, warning: str) -> None:
        self._warnings.append(warning)
        self._report(warning)

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(self.path, timeout=self._busy_s, isolation_level=None, check_same_thread=False)
        database.text_factory = _text
        try:
            with closing(database.execute("PRAGMA quick_check(1)")) as check:
                verdict = check.fetchone()[0]
            if verdict != "ok":
                raise _DamagedError(verdict)
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute(
                "CREATE TABLE IF NOT EXISTS table_versions (name TEXT PRIMARY KEY, version INTEGER NOT NULL)"
            )
        except BaseException:
            database.close()
            raise
        return database

    def _prepare(self, database: sqlite3.Connection, spec: TableSpec) -> None:
        """Create the table, migrate it to this version, or set it aside; all in one transaction."""
        with _transaction(database):
            found = database.execute("SELECT version FROM table_versions WHERE name = ?", (spec.name,)).fetchone()
            version = found[0] if found else None
            sound: tuple[Row, ...] = ()
            if _exists(database, spec.name):
                sound, why_not = _contents(database, spec, version)
                if why_not:
                    self._set_table_aside(database, spec, why_not)
                elif version == spec.version:
                    return
                else:
                    database.execute(f"DROP TABLE {spec.name}")
            database.execute(spec.create())
            for row in sound:
                database.execute(*spec.put(row))
            database.execute("INSERT OR REPLACE INTO table_versions VALUES (?, ?)", (spec.name, spec.version))

    def _set_table_aside(self, database: sqlite3.Connection, spec: TableSpec, what: str) -> None:
        names = [f"{spec.name}_set_aside_{number}" for number in range(1, SET_ASIDE_MAX + 1)]
        aside = next((name for name in names if not _exists(database, name)), names[-1])
        database.execute(f"DROP TABLE IF EXISTS {aside}")
        database.execute(f"ALTER TABLE {spec.name} RENAME TO {aside}")
        self._warn(f"the table {spec.name} of the journal {self.path} {what}; it was renamed to {aside}: {spec.loss}")


def _contents(database: sqlite3.Connection, spec: TableSpec, version: int | None) -> tuple[tuple[Row, ...], str]:
    """Return the usable rows of a table, in the form of the current version, and the reason why the table must be set aside (""
    if there is none).
    """
    if version == spec.version:
        sound, damaged = _read(database, spec)
    elif version is not None and version in spec.migrations:
        rows = tuple(spec.migrations[version](database))
        sound = tuple(row for row in rows if _is_typed(spec, row))
        damaged = len(rows) - len(sound)
    else:
        return (
            (),
            f"has {'no version' if version is None else f'version {version}'}; this program reads version {spec.version}",
        )
    if not damaged:
        return sound, ""
    kept = sound if spec.keep_sound else ()
    return kept, f"has {damaged} damaged rows ({len(kept)} of the {len(sound)} undamaged rows were kept)"


def _read(database: sqlite3.Connection, spec: TableSpec) -> tuple[tuple[Row, ...], int]:
    with closing(database.execute(spec.select())) as found:
        rows: list[Row] = found.fetchall()
    sound = tuple(row[:-1] for row in rows if _is_typed(spec, row[:-1]) and row[-1] == spec.checksum(row[:-1]))
    return sound, len(rows) - len(sound)


def _is_typed(spec: TableSpec, row: Row) -> bool:
    """Return whether each value is of its column's type. SQLite does not enforce that, and a user may have edited the file."""
    kinds = {"TEXT": str, "INTEGER": int}
    return all(isinstance(value, kinds[kind]) for value, kind in zip(row, spec.columns.values(), strict=True))


def _text(data: bytes) -> str:
    """Decode text. Damaged text is decoded too, because the checksum detects the damage."""
    return data.decode(errors="backslashreplace")


def _exists(database: sqlite3.Connection, table: str) -> bool:
    return database.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (table,)).fetchone() is not None


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    """Run the block as one transaction: other processes see all of its changes or none."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:  # SQLite may have rolled it back already, for example because the disk is full
            database.execute("ROLLBACK")
        raise


class _DamagedError(sqlite3.DatabaseError):
    """The check found the file inconsistent."""


def _is_damage(error: Exception) -> bool:
    """Return whether the error means that the *file* is damaged, and not that the disk is full, a permission is missing, or
    another process holds a lock.

    A UnicodeDecodeError counts as damage: SQLite's message may contain bytes of the damaged file that Python cannot decode.
    """
    if isinstance(error, _DamagedError | UnicodeDecodeError):
        return True
    # All statements here are correct, so SQLITE_ERROR and SQLITE_CONSTRAINT mean that the table has other columns than its
    # version should have.
    damage = {
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_CONSTRAINT,
    }
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF in damage


def _set_aside(path: Path) -> Path:
    """Rename the file and its side files, the file last, and return the file's new name. The WAL is kept because a repair may
    need it.
    """
    names = [path.with_name(f"{path.name}.damaged-{number}") for number in range(1, SET_ASIDE_MAX + 1)]
    aside = next((name for name in names if not name.exists()), names[-1])
    for suffix in ("-wal", "-shm", ""):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.replace(aside.with_name(aside.name + suffix))
    return aside
