"""The journal of process groups that the daemon started, so that the next daemon can end the processes that a killed one
left behind.

A row is written as an *intent* (the token) before the child exists, *completed* (number and start time) when it does, and
*forgotten* when no process of the run is alive any more. A daemon killed between any two of these steps leaves at least the
token, and the token is in the environment of every process it had started.

Rows name their owner, the daemon that wrote them, and its boot: processes of a living owner are not touched, and those from
before a restart of the machine are dead. A number alone is never a reason to kill (``descendants`` says what proves one),
and neither is a row that does not match its checksum: `journal_file` sets such rows aside and keeps the others. If the file
itself is damaged while the daemon runs, the rows are written again from memory, so the next start knows the processes that
run now.

The table is ``process_groups`` of the state folder's journal. Version 1 had no checksums; its rows are migrated, so that an
updated daemon knows the processes that the old one left running. A commit survives the death of the daemon; it need not
survive the death of the machine, which ends all processes anyway.
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
"""The time that the next start spends on killing processes of the last daemon."""


def _version_1(database: sqlite3.Connection) -> Iterable[Row]:
    """Return the rows of the first version: the same columns, no checksums."""
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
    loss="child processes that it names, if the last daemon left any running, are not known and were not ended",
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
    """The process groups of a journal. Its methods block for microseconds and may be called from any thread.

    ``file`` is the journal, which other tables may share. Raises LedgerError, from the constructor too.
    """

    def __init__(self, file: JournalFile) -> None:
        self.file = file
        with _refusing():
            self._table = file.table(PROCESS_GROUPS)
        self._owner = boot_id(), os.getpid(), _start_ticks(os.getpid())

    @property
    def warning(self) -> str | None:
        """Return what of the journal had to be set aside, for the log; None if nothing had to."""
        return "; ".join(self.file.warnings) or None

    def intend(self, token: str) -> None:
        """Record that a child with this token is about to be started."""
        with _refusing():
            self._table.put((token, *self._owner, 0, 0))

    def complete(self, token: str, pid: int, start_ticks: int) -> None:
        """Record that it was started, as the leader ``pid`` that began at ``start_ticks`` (clock ticks since boot)."""
        with _refusing():
            self._table.put((token, *self._owner, pid, start_ticks))

    def forget(self, token: str) -> None:
        """Record that no process of this run is alive."""
        with _refusing():
            self._table.delete(token)

    def entries(self) -> tuple[LedgerEntry, ...]:
        """All rows, of this owner and of others."""
        with _refusing():
            return tuple(_entry(row) for row in self._table.rows())


@contextmanager
def open_ledger(path: Path) -> Generator[ProcessLedger, None, None]:
    """Open the ledger in the journal at ``path``, whose folder must exist; the journal is its ``file``. Raises LedgerError."""
    with _refusing():
        file = JournalFile(path)
    with closing(file):
        yield ProcessLedger(file)


@contextmanager
def _refusing() -> Iterator[None]:
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

    Call it at the start of a daemon, before anything is run. Rows of a living owner (this process included) are kept; so are
    rows of processes that cannot be killed, for the next start. Raises LedgerError.
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
    """Return the tokens of the runs to which a living process belongs."""
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
