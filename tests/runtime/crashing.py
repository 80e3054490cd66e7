"""`python -m tests.runtime.crashing ARGUMENTS`: the real command line, watched at its journal, and killed there when told to.

What `tests.runtime.crash_trials` runs in place of ``wharfinger``. It is told by environment variables:

``CRASH_TRACE``   a file to which every beginning of an operation, and every start, completion and write of a step, is appended,
                  one JSON object a line
``CRASH_ARMED``   a file; writes are counted from when it is there
``CRASH_AT``      ``before 3`` or ``after 3``: at the third write of operation steps the process kills itself with SIGKILL,
                  before or after the write is made. Another moment, or nothing, kills nobody here

Hooks find the daemon's process number in ``CRASH_DAEMON``. A write is made in one transaction, and the kill comes before or after
it in the same thread, so nothing is between them but what runs in others.
"""

import json
import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from unittest import mock

from wharfinger.__main__ import main
from wharfinger.process.journal_file import JournalTable, Row
from wharfinger.runtime.journal import OPERATION_STEPS, Journal, Operation


class Trace:
    """Where what happens is written down; each line is with the kernel when the method returns."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def say(self, event: str, **what: str) -> None:
        """Append a line."""
        os.write(self._descriptor, json.dumps({"event": event, **what}).encode() + b"\n")


class TracedJournal(Journal):
    """A journal that says what it was told, after it has taken it."""

    trace: Trace

    def begin(self, package: str, operation: Operation, fingerprint: str) -> None:
        super().begin(package, operation, fingerprint)
        self.trace.say("begin", operation=operation, fingerprint=fingerprint)

    def start(self, package: str, operation: Operation, step: str) -> None:
        super().start(package, operation, step)
        self.trace.say("start", operation=operation, step=step)

    def complete(self, package: str, operation: Operation, step: str, result: str = "") -> None:
        super().complete(package, operation, step, result)
        self.trace.say("complete", operation=operation, step=step)


class Killer:
    """Counts the writes of operation steps, and ends the process at one of them."""

    def __init__(self, trace: Trace, armed: Path, at: str) -> None:
        self._trace, self._armed, self._at = trace, armed, at
        self._count = 0
        self._write = JournalTable.write

    def write(self, table: JournalTable, deletes: Iterable[Row], puts: Iterable[Row]) -> None:
        """In place of `JournalTable.write`."""
        if table._spec is not OPERATION_STEPS or not self._armed.exists():
            self._write(table, deletes, puts)
            return
        deletes, puts = tuple(deletes), tuple(puts)
        self._count += 1
        self._die("before")
        self._write(table, deletes, puts)
        self._trace.say("write", rows=repr((deletes, puts)))
        self._die("after")

    def _die(self, moment: str) -> None:
        if self._at == f"{moment} {self._count}":
            os.kill(os.getpid(), signal.SIGKILL)


def run() -> int:
    """Run the command line, watched."""
    trace = TracedJournal.trace = Trace(Path(os.environ["CRASH_TRACE"]))
    killer = Killer(trace, Path(os.environ["CRASH_ARMED"]), os.environ["CRASH_AT"])
    os.environ["CRASH_DAEMON"] = str(os.getpid())

    def write(table: JournalTable, deletes: Iterable[Row], puts: Iterable[Row]) -> None:
        killer.write(table, deletes, puts)

    with (
        mock.patch.object(JournalTable, "write", write),
        mock.patch("wharfinger.runtime.daemon.Journal", TracedJournal),
    ):
        return main()


if __name__ == "__main__":
    sys.exit(run())
