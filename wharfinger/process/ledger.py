"""The ledger of process groups that the daemon started: the next daemon ends the processes that a killed daemon left behind.

A row is written as an *intent* (the token) before the child exists, *completed* (pid and start time) once the child runs, and
*forgotten* (deleted) when no process of the run is alive any more. A daemon that is killed between two of these steps leaves at
least the token in the ledger, and every process of the run has the token in its environment.

Rows name the daemon that wrote them (the *owner*) and the boot of the machine: processes of a living owner are not touched, and
processes of an earlier boot are gone. A process is never killed only because of its pid (:mod:`wharfinger.process.descendants`
explains the necessary proof), nor because of a row that does not match its checksum: `journal_file` sets such rows aside and
keeps the others. If the file is damaged while the daemon runs, the rows are written into a new file from memory, so the next
daemon still knows the running processes.

The table is ``process_groups`` of the state folder's journal. Version 1 had no checksums; its rows are migrated, so that an
updated daemon knows the processes that the old one left running. A commit survives the death of the daemon; it need not
survive a crash of the machine, which ends all processes anyway.
"""

import os
import sqlite3
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from wharfinger.process.descendants import Mark, belonging, read_stat, scan
from wharfinger.process.errors import JournalFileError, LedgerError
from wharfinger.process.journal_file import JournalFile, Row, TableSpec
from wharfinger.process.sweep import sweep

LEFT_BEHIND_S: Final = 15.0
"""The time limit, in seconds, for killing the processes that an earlier daemon left behind. A daemon does this at its start."""


def _version_1(database: sqlite3.Connection) -> Iterable[Row]:
    """Return the rows of a table of version 1: the same columns, without checksums."""
    return database.execute("SELECT token, boot_id, owner_pid, owner_start_ticks, pid, start_ticks FROM process_groups")


PROCESS_GROUPS: Final = TableSpec(
    name="process_groups",
    version=2,
    columns={
        "token": "TEXT",
        "boot_id": "TEXT",
        "owner_pid": "INTEGER",
        "owner_start_ticks": "INTEGER",
        "pid": "INTEGER",
        "start_ticks": "INTEGER",
    },
    keys=1,
    migrations={1: _version_1},
    keep_sound=True,
    remembered=True,
    loss="child processes that the last daemon may have left running are not known and were not ended",
)


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """The row of one run. If ``pid`` is 0, only the intent was written, and it is not known whether the child was started."""

    token: str
    boot_id: str
    owner_pid: int
    owner_start_ticks: int
    pid: int
    start_ticks: int


class ProcessLedger:
    """The table of process groups in a journal. Its methods block for microseconds and may be called from any thread.

    ``file`` is the journal, which may have other tables. The constructor and all methods may raise LedgerError.
    """

    def __init__(self, file: JournalFile) -> None:
        self.file = file
        with _translating_errors():
            self._table = file.table(PROCESS_GROUPS)
        self._owner = boot_id(), os.getpid(), _start_ticks(os.getpid())

    @property
    def warning(self) -> str | None:
        """Return a text for the log about the parts of the journal that were set aside; None if there are no such parts."""
        return "; ".join(self.file.warnings) or None

    def intend(self, token: str) -> None:
        """Record that a child with this token is about to be started."""
        with _translating_errors():
            self._table.put((token, *self._owner, 0, 0))

    def complete(self, token: str, pid: int, start_ticks: int) -> None:
        """Record that the child was started as process ``pid``, at ``start_ticks`` (clock ticks since boot)."""
        with _translating_errors():
            self._table.put((token, *self._owner, pid, start_ticks))

    def forget(self, token: str) -> None:
        """Remove the entry of the run with this token, because no process of the run is alive."""
        with _translating_errors():
            self._table.delete(token)

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Return all rows, including those of other owners."""
        with _translating_errors():
            return tuple(_entry(row) for row in self._table.rows())


@contextmanager
def open_ledger(path: Path) -> Generator[ProcessLedger, None, None]:
    """Open the journal at ``path``, whose folder must exist, and yield the ledger in it. Raises LedgerError."""
    with _translating_errors():
        file = JournalFile(path)
    with closing(file):
        yield ProcessLedger(file)


@contextmanager
def _translating_errors() -> Iterator[None]:
    """Turn errors of the journal into LedgerError."""
    try:
        yield
    except JournalFileError as error:
        raise LedgerError(str(error)) from error


def _entry(row: Row) -> LedgerEntry:
    token, boot, owner_pid, owner_start_ticks, pid, start_ticks = row
    return LedgerEntry(str(token), str(boot), int(owner_pid), int(owner_start_ticks), int(pid), int(start_ticks))


async def kill_left_behind(ledger: ProcessLedger) -> int:
    """Kill the processes that dead daemons left running, and delete their rows; return the number of killed processes.

    Call this when a daemon starts, before it runs anything. Rows of a living owner (this process included) are kept, and so
    are rows of processes that cannot be killed, for the next start. Raises LedgerError.
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
    """Return the tokens of the runs that still have a living process."""
    seen = scan(0)
    return frozenset(mark.token for mark in marks if any(one.stat.alive for one in belonging(seen, mark)))


def _owner_lives(entry: LedgerEntry, this_boot: str) -> bool:
    stat = read_stat(entry.owner_pid)
    return (
        entry.boot_id == this_boot and stat is not None and stat.alive and stat.start_ticks == entry.owner_start_ticks
    )


def boot_id() -> str:
    """Return the ID of the machine's current boot (random(4)). The start times of processes are counted from the boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _start_ticks(pid: int) -> int:
    stat = read_stat(pid)
    return stat.start_ticks if stat is not None else 0
