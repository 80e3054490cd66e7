"""The journal of operations: the steps of the running operations of each package, stored in the state folder.

After a restart of the daemon, every operation begins from its first step, but steps that the journal records as complete are
skipped. A step that was in flight runs again. If the journal is lost, every step is done again. The result is the same, because
steps that must happen only once in a package's life are recorded in the cluster (`runtime.lifecycle.package_state`).

The loss of the whole journal is harmless. The loss of only the last writes would be harmful: for example, if a deletion of rows
were lost, steps that were undone would count as done. A killed process loses no writes. A power failure may lose the last
writes, and no checksum shows that they are missing. So each row has the boot ID of the machine (``boot``), and rows of another
boot are ignored and deleted: after a restart of the machine, every operation does all of its steps. One risk
remains: while the machine runs, a disk fault could lose the end of the file together with its cached pages. Therefore an
apply that the journal records as done is skipped only if the cluster has the release (`runtime.tasks.run_tasks`).

The rules are in `runtime.lifecycle.journal_machine`; this module has a state machine for each package, and stores the rows of
the state machines in a table. A row is written before the new state is adopted, and a call returns after both. So the next
process finds the effect of every call that has returned.

::

    journal.begin("default.shop", Operation.UPDATE, fingerprint)
    digest = journal.completed("default.shop", Operation.UPDATE, "Download")
    if digest is None:
        journal.start("default.shop", Operation.UPDATE, "Download")
        ...  # effects
        journal.complete("default.shop", Operation.UPDATE, "Download", digest)
    journal.finish("default.shop", Operation.UPDATE)

The beginning of an operation is not written, because an operation without steps has nothing to resume. A call does not await:
it takes some tens of microseconds if it writes a row, and less if it writes nothing.
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
    """Upgrade a table of version 1: none of its rows is kept, because they lack the boot ID of the machine."""
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
    """A step cannot be recorded, because the journal cannot be written (``transient``), or because a limit of the journal is
    exceeded.
    """

    def __init__(self, message: str, *, transient: bool = True) -> None:
        super().__init__(message)
        self.transient = transient


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """A recorded operation, for dumps; its steps are in the order in which they first started.

    ``earlier`` is True if an earlier process began the operation, and this process has not resumed it. ``interrupted`` has the
    steps that were in flight when the earlier process ended, and have not been started again.
    """

    package: str
    operation: Operation
    fingerprint: str
    earlier: bool
    completed: tuple[str, ...]
    in_flight: tuple[str, ...]
    interrupted: tuple[str, ...]


Observe: TypeAlias = Callable[[str, State, Event, State, tuple[Effect, ...]], None]
"""A callback for each event. It gets the name of the package, its records before the event, the event, its records after the
event, and the effects.
"""


class Journal:
    """The recorded steps of the operations of all packages. If ``file`` is None, they are kept only in memory. The constructor
    and all methods that record something may raise JournalError.
    """

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
        """Begin an operation. Its steps that an earlier process completed with the same fingerprint stay complete.

        ``fingerprint`` is a checksum of everything on which the operation's steps depend. If the same process begins the
        operation a second time, all steps are done again, whatever the fingerprint is. Records of other operations that
        become untrue are deleted: see `journal_machine`.
        """
        self._step(package, Begin(operation, fingerprint))

    def completed(self, package: str, operation: Operation, step: str) -> str | None:
        """Return the result of a step of an operation that was begun ("" if the step has no result); None if the step is not
        complete.
        """
        return completed(self._packages.get(package, {}), operation, step)

    def start(self, package: str, operation: Operation, step: str) -> None:
        """Record that the step is about to have its first effect. Do nothing if the operation is not under way, or if the step is
        complete.
        """
        self._step(package, Start(operation, step))

    def complete(self, package: str, operation: Operation, step: str, result: str = "") -> None:
        """Record that the step has had its last effect. Do nothing if the step is not in flight: a superseded task may report
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
        """Return the records that earlier processes have written since this computer was booted; delete older records."""
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
    """Return the state of each package in a process that starts now, and finds these rows of an earlier process. The rows are
    sorted by package.
    """
    return {
        str(package): restored(
            Keep(Operation(str(operation)), str(fingerprint), str(name), int(number), bool(complete), str(result))
            for _, operation, name, fingerprint, number, complete, result, _ in group
        )
        for package, group in groupby(rows, key=lambda row: row[0])
    }
