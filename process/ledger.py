"""The journal of process groups: who runs in our name, so that the next daemon can end what a killed one left behind.

A row is written as an *intent* (the token) before the child exists, *completed* (number and start time) when it does, and
*forgotten* when nobody of the run is alive any more. A daemon killed between any two of these steps leaves at least
the token, and the token is in the environment of whoever it had started.

Rows name their owner, the daemon that wrote them, and its boot: what belongs to a living owner is left alone, and what is
from before a restart of the machine is dead. A number alone never kills anybody (``descendants`` says what proves one).

The file is shared with other tables of the state folder's journal, so this one keeps its version in ``table_versions``
instead of ``user_version``. It may be lost (DESIGN §7): a damaged file is set aside under another name, a table of an
unknown version likewise, and ``warning`` says so. WAL with ``synchronous = NORMAL``: a commit survives the death of the
daemon; it need not survive the death of the machine, which ends all processes anyway.
"""

import os
import sqlite3
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from wharfinger.process.descendants import Mark, belonging, read_stat, scan
from wharfinger.process.errors import LedgerError
from wharfinger.process.sweep import sweep

SCHEMA_VERSION: Final = 1
BUSY_S: Final = 5.0
"""How long a statement may wait for another table's writer."""
LEFT_BEHIND_S: Final = 15.0
"""How long the next start spends on killing what was left behind."""
SET_ASIDE_MAX: Final = 9
"""Damaged files kept; the last one is overwritten then."""

_SCHEMA: Final = """
CREATE TABLE process_groups (
    token TEXT PRIMARY KEY CHECK (typeof(token) = 'text'),
    boot_id TEXT NOT NULL CHECK (typeof(boot_id) = 'text'),
    owner_pid INTEGER NOT NULL CHECK (typeof(owner_pid) = 'integer'),
    owner_start_ticks INTEGER NOT NULL CHECK (typeof(owner_start_ticks) = 'integer'),
    pid INTEGER NOT NULL DEFAULT 0 CHECK (typeof(pid) = 'integer'),
    start_ticks INTEGER NOT NULL DEFAULT 0 CHECK (typeof(start_ticks) = 'integer')
) WITHOUT ROWID
"""
_SELECT: Final = (
    "SELECT token, boot_id, owner_pid, owner_start_ticks, pid, start_ticks FROM process_groups ORDER BY token"
)


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One run on record. ``pid`` 0: only intended, whether it started is not known."""

    token: str
    boot_id: str
    owner_pid: int
    owner_start_ticks: int
    pid: int
    start_ticks: int


class ProcessLedger:
    """The table ``process_groups`` of a journal. Its methods block for microseconds and may be called from any thread.

    Raises LedgerError, from the constructor too, where the file can be neither used nor set aside.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.warning: str | None = None
        """What had to be set aside on opening, for the log; None when all was well."""
        self._lock = threading.Lock()
        self._boot_id = boot_id()
        self._owner_start_ticks = _start_ticks(os.getpid())
        with self._refusing("be opened"):
            self._database = self._open()

    def close(self) -> None:
        """Close the file; the rows stay."""
        self._database.close()

    def intend(self, token: str) -> None:
        """A child with this token is about to be started."""
        row = (token, self._boot_id, os.getpid(), self._owner_start_ticks)
        self._write(
            "INSERT INTO process_groups (token, boot_id, owner_pid, owner_start_ticks) VALUES (?, ?, ?, ?)", row
        )

    def complete(self, token: str, pid: int, start_ticks: int) -> None:
        """It was started, as the leader ``pid`` that began at ``start_ticks`` (clock ticks since boot)."""
        self._write("UPDATE process_groups SET pid = ?, start_ticks = ? WHERE token = ?", (pid, start_ticks, token))

    def forget(self, token: str) -> None:
        """Nobody of this run is alive."""
        self._write("DELETE FROM process_groups WHERE token = ?", (token,))

    def entries(self) -> tuple[LedgerEntry, ...]:
        """All rows, of this owner and of others."""
        with self._refusing("be read"), self._lock:
            rows = self._database.execute(_SELECT).fetchall()
        return tuple(LedgerEntry(*row) for row in rows)

    def _write(self, statement: str, values: tuple[str | int, ...]) -> None:
        with self._refusing("be written"), self._lock:
            self._database.execute(statement, values)

    @contextmanager
    def _refusing(self, what: str) -> Iterator[None]:
        """Turn what SQLite and the file system raise into LedgerError."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise LedgerError(
                f"the journal {self.path} cannot {what}: {error}; look at the disk and at the owner of the state folder"
            ) from error

    def _open(self) -> sqlite3.Connection:
        try:
            return self._connect()
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
            aside = _set_aside(self.path)
            self.warning = (
                f"the journal {self.path} was damaged ({error}) and is now {aside}; "
                "child processes that the last daemon left running, if any, are not known and were not ended"
            )
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            with closing(database.execute("PRAGMA quick_check(1)")) as check:
                verdict = check.fetchone()[0]
            if verdict != "ok":
                raise _DamagedError(verdict)
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
            self._prepare(database)
            database.execute(_SELECT).fetchall()
        except BaseException:
            database.close()
            raise
        return database

    def _prepare(self, database: sqlite3.Connection) -> None:
        """Bring the table to SCHEMA_VERSION; a table of another version is renamed."""
        with _transaction(database):
            database.execute(
                "CREATE TABLE IF NOT EXISTS table_versions (name TEXT PRIMARY KEY, version INTEGER NOT NULL)"
            )
            found = database.execute("SELECT version FROM table_versions WHERE name = 'process_groups'").fetchone()
            exists = database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'process_groups'").fetchone()
            if exists and found == (SCHEMA_VERSION,):
                return
            if exists:
                aside = f"process_groups_set_aside_{os.urandom(4).hex()}"
                database.execute(f"ALTER TABLE process_groups RENAME TO {aside}")
                version = found[0] if found else "unknown"
                self.warning = (
                    f"the table process_groups of the journal {self.path} has version {version}, this program knows "
                    f"{SCHEMA_VERSION}; it is now {aside}, and what it says is running was not ended"
                )
            database.execute(_SCHEMA)
            database.execute("INSERT OR REPLACE INTO table_versions VALUES ('process_groups', ?)", (SCHEMA_VERSION,))


@contextmanager
def open_ledger(path: Path) -> Generator[ProcessLedger, None, None]:
    """The ledger in the journal at ``path``, whose folder must exist. Raises LedgerError."""
    with closing(ProcessLedger(path)) as ledger:
        yield ledger


async def kill_left_behind(ledger: ProcessLedger) -> int:
    """End what daemons that are dead now left running, and forget it; how many processes were killed.

    For the start of a daemon, before it runs anything. Rows of a living owner (this process included) are left alone; so
    are rows of whom cannot be killed: the next start tries again. Raises LedgerError.
    """
    return await trio.to_thread.run_sync(_kill_left_behind, ledger, limiter=trio.CapacityLimiter(1))


def _kill_left_behind(ledger: ProcessLedger) -> int:
    this_boot = boot_id()
    orphaned = [entry for entry in ledger.entries() if not _owner_lives(entry, this_boot)]
    marks = {
        entry.token: Mark(entry.token, entry.pid, entry.start_ticks) for entry in orphaned if entry.boot_id == this_boot
    }
    result = sweep(tuple(marks.values()), LEFT_BEHIND_S)
    unfinished = _still_there(tuple(marks.values())) if result.left else frozenset[str]()
    for entry in orphaned:
        if entry.token not in unfinished:
            ledger.forget(entry.token)
    return result.killed


def _still_there(marks: Sequence[Mark]) -> frozenset[str]:
    """The tokens of runs that somebody alive belongs to."""
    seen = scan(0)
    return frozenset(mark.token for mark in marks if any(one.stat.alive for one in belonging(seen, mark)))


def _owner_lives(entry: LedgerEntry, this_boot: str) -> bool:
    stat = read_stat(entry.owner_pid)
    return (
        entry.boot_id == this_boot and stat is not None and stat.alive and stat.start_ticks == entry.owner_start_ticks
    )


def boot_id() -> str:
    """Differs after every start of the machine (random(4)); start times count from it."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _start_ticks(pid: int) -> int:
    stat = read_stat(pid)
    return stat.start_ticks if stat is not None else 0


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    """Everything or nothing, against other processes that open the same journal at the same time."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


class _DamagedError(sqlite3.DatabaseError):
    """The check found the file inconsistent."""


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether the *file* is bad, rather than the disk full, the folder closed, or somebody else writing."""
    if isinstance(error, _DamagedError):
        return True
    # SQLITE_ERROR: our statements are fixed, so a table is not what its version promises.
    damage = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_FORMAT}
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF in damage


def _set_aside(path: Path) -> Path:
    """Rename the file and what belongs to it (its WAL may hold what is worth looking at)."""
    names = [path.with_name(f"{path.name}.damaged-{number}") for number in range(1, SET_ASIDE_MAX + 1)]
    aside = next((name for name in names if not name.exists()), names[-1])
    for suffix in ("-wal", "-shm", ""):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    return aside
