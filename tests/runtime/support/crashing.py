"""`python -m tests.runtime.support.crashing ARGUMENTS`: the real command line, killed at a chosen write.

`tests.runtime.support.crash_trials` runs this program in place of ``wharfinger``. Environment variables configure it:

``CRASH_TRACE``   a file to which events are appended, one JSON object per line: operations that begin, and steps that are
                  started or completed. Once the program is armed, it also appends writes to the journal and to the cluster
``CRASH_ARMED``   a file. Once it exists, the program is armed, so it counts writes
``CRASH_AT``      the moment at which the process kills itself with SIGKILL. ``before 3`` and ``after 3`` are the moments before
                  and after the third write of operation steps. ``answered 3`` is the moment after the answer to the third
                  write to the cluster for packages. With any other text, this program does not kill itself

Hooks find the process ID of the daemon in ``CRASH_DAEMON``. A write is one transaction. The kill comes before or after the
write in the same thread, so only other threads can do anything in between.
"""

import json
import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from unittest import mock

from wharfinger.__main__ import main
from wharfinger.cluster.api.client import Propagation
from wharfinger.cluster.releases import revision_record
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import ObjectKey
from wharfinger.process.journal_file import JournalTable, Row
from wharfinger.runtime.daemon import daemon
from wharfinger.runtime.daemon.limited_client import LimitedClient
from wharfinger.runtime.lifecycle.journal import OPERATION_STEPS, Journal
from wharfinger.runtime.lifecycle.journal_machine import Operation

SLOW_S = 300.0
"""A limit above the duration of every change, so that a change is always recorded by one write, and the number of writes does
not depend on the machine.
"""


class Trace:
    """A file to which events are appended. When `say` returns, the line has been passed to the kernel."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def say(self, event: str, **what: str) -> None:
        """Append an event as a line."""
        os.write(self._descriptor, json.dumps({"event": event, **what}).encode() + b"\n")


class TracedJournal(Journal):
    """A journal that traces each change after it has been made."""

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
    """A counter of writes that kills the process at the chosen moment. It counts nothing before it is armed."""

    def __init__(self, trace: Trace, armed: Path, at: str) -> None:
        self._trace, self._armed, self._at = trace, armed, at
        self._counts = {"write": 0, "request": 0}
        self._write = JournalTable.write

    def write(self, table: JournalTable, deletes: Iterable[Row], puts: Iterable[Row]) -> None:
        """Replace `JournalTable.write`: count the write, and kill the process if this is the chosen moment."""
        counted = table._spec is OPERATION_STEPS and self._armed.exists()
        if counted:
            self._die("before", self._counts["write"] + 1)
        self._write(table, deletes, puts)
        if counted:
            self._die("after", self._count("write"))

    def answered(self) -> None:
        """Count a write to which the cluster has answered. If this answer is the chosen moment, kill the process."""
        if self._armed.exists():
            self._die("answered", self._count("request"))

    def _count(self, what: str) -> int:
        self._trace.say(what)
        self._counts[what] += 1
        return self._counts[what]

    def _die(self, moment: str, number: int) -> None:
        if self._at == f"{moment} {number}":
            os.kill(os.getpid(), signal.SIGKILL)


class CrashingClient(LimitedClient):
    """The client for packages, which counts its writes. The writes of the controllers are not counted, because their times
    vary.
    """

    killer: Killer

    async def create(self, obj: JsonObject) -> JsonObject:
        return self._answered(await super().create(obj))

    async def replace(self, obj: JsonObject, *, subresource: str = "") -> JsonObject:
        return self._answered(await super().replace(obj, subresource=subresource))

    async def apply(
        self, obj: JsonObject, *, field_manager: str, force: bool = False, dry_run: bool = False
    ) -> JsonObject:
        return self._answered(await super().apply(obj, field_manager=field_manager, force=force, dry_run=dry_run))

    async def merge_patch(self, key: ObjectKey, patch: JsonObject, *, subresource: str = "") -> JsonObject:
        return self._answered(await super().merge_patch(key, patch, subresource=subresource))

    async def delete(self, key: ObjectKey, *, uid: str = "", propagation: Propagation = Propagation.BACKGROUND) -> bool:
        is_gone = await super().delete(key, uid=uid, propagation=propagation)
        self.killer.answered()
        return is_gone

    def _answered(self, obj: JsonObject) -> JsonObject:
        self.killer.answered()
        return obj


def run() -> int:
    """Run the command line in this process, trace its journal, and kill the process at the moment that CRASH_AT names."""
    trace = TracedJournal.trace = Trace(Path(os.environ["CRASH_TRACE"]))
    killer = CrashingClient.killer = Killer(trace, Path(os.environ["CRASH_ARMED"]), os.environ["CRASH_AT"])
    os.environ["CRASH_DAEMON"] = str(os.getpid())

    def write(table: JournalTable, deletes: Iterable[Row], puts: Iterable[Row]) -> None:
        killer.write(table, deletes, puts)

    with (
        mock.patch.object(JournalTable, "write", write),
        mock.patch.object(daemon, "Journal", TracedJournal),
        mock.patch.object(daemon, "LimitedClient", CrashingClient),
        mock.patch.object(revision_record, "QUICK_S", SLOW_S),
    ):
        return main()


if __name__ == "__main__":
    sys.exit(run())
