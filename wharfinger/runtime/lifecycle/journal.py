"""The journal of operations: the step of the running operation of each package, in the state folder's journal (DESIGN §7).

A restart begins every operation from the top. With the journal, the restart skips completed steps: a hook that is recorded as
done never runs again, and a step that was in flight runs again. If the journal is lost, every step is done again. The result is
the same, because steps that must happen once in a package's life are recorded in the cluster (`runtime.lifecycle.package_state`).

Losing the whole journal is harmless. Losing only its last rows is harmful, because steps that were undone last would be read as
done. A killed process loses no rows. A machine that loses its power may lose the last ones, and no checksum shows that they are
missing. So each row has the boot ID of the machine (``boot``), and rows of another boot are ignored and deleted: after a restart
of the machine every operation begins from the top. One risk remains: a disk fault loses the end of the file, together with the
cached pages of the file, while the machine runs. Therefore an apply that the journal has as done is skipped only if the cluster
has its release (`runtime.tasks.run_tasks`).

The rules are in `runtime.lifecycle.journal_machine`; this module has one machine for each package, and its rows in a
table. A row is written before the machine's new state counts, and a call returns after both. So the next process finds
the effect of every call that has returned.

::

    journal.begin("default.shop", Operation.UPDATE, fingerprint)
    digest = journal.completed("default.shop", Operation.UPDATE, "Download")
    if digest is None:
        journal.start("default.shop", Operation.UPDATE, "Download")
        ...  # effects
        journal.complete("default.shop", Operation.UPDATE, "Download", digest)
    journal.finish("default.shop", Operation.UPDATE)

The beginning of an operation is not written, because an operation without steps has nothing to resume. No call waits: a call
takes some tens of microseconds for a write, or writes nothing.
"""

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Final, TypeAlias

from wharfinger.process.errors import JournalFileError
from wharfinger.process.journal_file import JournalFile, JournalTable, Row, TableSpec
from wharfinger.process.ledger import boot_id
from wharfinger.runtime.lifecycle.journal_machine import (
    Begin,
    Complete,
    Drop,
    Effect,
    Event,
    Finish,
    Forget,
    Keep,
    Operation,
    Phase,
    Start,
    State,
    StepLimitError,
    completed,
    restored,
    step,
)


def _version_1(_database: sqlite3.Connection) -> Iterable[Row]:
    """Upgrade from version 1, whose rows lack the boot ID of the machine; all of them are ignored."""
    return ()


OPERATION_STEPS: Final = TableSpec(
    name="operation_steps",
    version=2,
    columns={
        "package": "TEXT",
        "operation": "TEXT",
        "step": "TEXT",
        "fingerprint": "TEXT",
        "number": "INTEGER",
        "complete": "INTEGER",
        "result": "TEXT",
        "boot": "TEXT",
    },
    keys=3,
    migrations={1: _version_1},
    loss="interrupted operations begin from the first step, and repeat steps that were complete",
)


class JournalError(Exception):
    """A step cannot be recorded: the journal cannot be written (``transient``), or a limit of the journal is exceeded."""

    def __init__(self, message: str, *, transient: bool = True) -> None:
        super().__init__(message)
        self.transient = transient


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """A recorded operation, for dumps; its steps are in the order in which they first started.

    ``earlier`` is True if a previous process left the operation and this process has not resumed it. ``interrupted`` are the
    steps that were in flight when that process ended and have not been started again.
    """

    package: str
    operation: Operation
    fingerprint: str
    earlier: bool
    completed: tuple[str, ...]
    in_flight: tuple[str, ...]
    interrupted: tuple[str, ...]


Observe: TypeAlias = Callable[[str, State, Event, State, tuple[Effect, ...]], None]
"""A callback for each step: the name of the package, and its records before and after an event with its effects."""


class Journal:
    """The operations of all packages; they are kept in memory if ``file`` is None. Every method may raise JournalError."""

    def __init__(self, file: JournalFile | None) -> None:
        self.observe: Observe | None = None
        self._table: JournalTable | None = None
        self._packages: dict[str, State] = {}
        self._boot = ""
        if file is not None:
            try:
                self._table = file.table(OPERATION_STEPS)
                self._boot = boot_id()
                self._packages = self._taken_up(self._table)
            except JournalFileError as error:
                raise JournalError(str(error)) from error

    def begin(self, package: str, operation: Operation, fingerprint: str) -> None:
        """Begin an operation. Steps of it that an earlier process completed with the same fingerprint stay complete.

        ``fingerprint`` stands for everything that the operation's steps depend on. If one process begins the operation a second
        time, it starts from the top, whatever its fingerprint. Records of other operations that this one invalidates are deleted:
        see `journal_machine`.
        """
        self._step(package, Begin(operation, fingerprint))

    def completed(self, package: str, operation: Operation, step: str) -> str | None:
        """Return the result of a step of the begun operation ("" if it has none); None if it is not complete."""
        return completed(self._packages.get(package, {}), operation, step)

    def start(self, package: str, operation: Operation, step: str) -> None:
        """Record that the step is about to have its first effect. Do nothing if the operation is not under way, or if the step is
        complete.
        """
        self._step(package, Start(operation, step))

    def complete(self, package: str, operation: Operation, step: str, result: str = "") -> None:
        """Record that the step has had its last effect. Do nothing if it is not in flight: a superseded task may report
        late.
        """
        self._step(package, Complete(operation, step, result))

    def finish(self, package: str, operation: Operation) -> None:
        """End the operation, and delete its steps."""
        self._step(package, Finish(operation))

    def forget(self, package: str) -> None:
        """Forget a removed package with all records of its operations."""
        self._step(package, Forget())

    def entries(self) -> tuple[JournalEntry, ...]:
        """Return the recorded operations, sorted by package and operation."""
        return tuple(
            JournalEntry(
                package,
                operation,
                entry.fingerprint,
                entry.earlier,
                *(
                    tuple(name for name, one in entry.steps.items() if one.phase is phase)
                    for phase in (Phase.COMPLETE, Phase.IN_FLIGHT, Phase.INTERRUPTED)
                ),
            )
            for package, state in sorted(self._packages.items())
            for operation, entry in sorted(state.items())
        )

    def _taken_up(self, table: JournalTable) -> dict[str, State]:
        """Return the records that earlier processes left since the machine was started; delete the others."""
        rows = table.rows()
        earlier = [OPERATION_STEPS.key(row) for row in rows if row[-1] != self._boot]
        if earlier:
            table.write(earlier, ())
        return _restored(row for row in rows if row[-1] == self._boot)

    def _step(self, package: str, event: Event) -> None:
        before = self._packages.get(package, {})
        try:
            state, effects = step(before, event)
        except StepLimitError as error:
            raise JournalError(f"{package}: {error}", transient=False) from error
        if effects and self._table is not None:
            drops = [(package, effect.operation.value) for effect in effects if isinstance(effect, Drop)]
            keeps = [self._row(package, effect) for effect in effects if isinstance(effect, Keep)]
            try:
                self._table.write(drops, keeps)
            except JournalFileError as error:
                raise JournalError(f"{package}: {error}") from error
        if self.observe is not None:
            self.observe(package, before, event, state, effects)
        if state:
            self._packages[package] = state
        else:
            self._packages.pop(package, None)

    def _row(self, package: str, keep: Keep) -> Row:
        where = package, keep.operation.value, keep.name
        return (*where, keep.fingerprint, keep.number, int(keep.complete), keep.result, self._boot)


def _restored(rows: Iterable[Row]) -> dict[str, State]:
    """Return the machines of a process that finds these rows, which are sorted by package."""
    return {
        str(package): restored(
            Keep(Operation(str(operation)), str(fingerprint), str(name), int(number), bool(complete), str(result))
            for _, operation, name, fingerprint, number, complete, result, _ in group
        )
        for package, group in groupby(rows, key=lambda row: row[0])
    }
