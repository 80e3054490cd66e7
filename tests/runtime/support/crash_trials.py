"""Trials of `kill -9`: a daemon dies at a chosen moment of one operation on a package, and the next daemon continues.

A trial has its own state folder and its own control plane. The control plane runs in this process, is served over TCP, and keeps
its state in an SQLite file. Except in a trial of an installation, the state folder and the control plane begin as copies
of those of an installed package. All trials of one `Ground` use the same paths, one after the other, so that recorded paths are
the same, too. The daemons are real processes
(`tests.runtime.support.crashing`), forked from a process that has imported their code (`tests.runtime.support.daemon_forks`).

A daemon that has to die is killed by SIGKILL: before or after the N-th write of operation steps to its journal, after the answer
to the N-th write to the cluster for its package, or by a running hook.
"""

import json
import os
import shutil
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import trio

from tests.programs import PATIENCE_S
from tests.runtime.support.crash_outcome import outcome
from tests.runtime.support.crash_package import crash_package
from tests.runtime.support.daemon_forks import DaemonForks
from tests.runtime.support.killing import Watched, watched
from tests.runtime.support.objects import application
from wharfinger.cluster.api.connection import Connection, bearer
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.cluster.watch.informer import open_informer
from wharfinger.control_plane.service import LOCAL
from wharfinger.control_plane.serving import parse_address, serve_control_plane
from wharfinger.control_plane.storage.sqlite import open_sqlite_storage
from wharfinger.formats.json.value import JsonObject, find_int, find_object, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.registry.oci_layout import OciLayout
from wharfinger.packages.registry.pusher import load_package, push_package
from wharfinger.process.descendants import read_stat
from wharfinger.process.journal_file import JournalFile
from wharfinger.process.ledger import ProcessLedger
from wharfinger.runtime.lifecycle.journal import Journal, JournalEntry
from wharfinger.runtime.lifecycle.package_state import state_record
from wharfinger.runtime.resources.identity import AppId
from wharfinger.runtime.resources.resources import APPLICATION

APP = ObjectKey(APPLICATION, "default", "app")
READY = "default/app: Ready"
TOKEN = "crash"


class Phase(StrEnum):
    """The operation during which the daemon is killed."""

    INSTALL = "install"
    UPGRADE = "upgrade"
    SETTINGS = "settings"
    REMOVAL = "removal"


@dataclass(slots=True)
class Daemon:
    """A daemon as a process. ``lines`` contains the lines of its output that were read so far."""

    pid: int
    descriptor: int
    """A pidfd of the process, which never refers to another process."""
    output: trio.lowlevel.FdStream
    forks: DaemonForks
    returncode: int | None = None
    lines: list[str] = field(default_factory=list)
    rest: bytes = b""

    async def wait_line(self, text: str) -> None:
        """Wait for a line that contains ``text``."""
        while True:
            while b"\n" in self.rest:
                line, _, self.rest = self.rest.partition(b"\n")
                self.lines.append(line.decode(errors="replace"))
                if text in self.lines[-1]:
                    return
            chunk = await self.output.receive_some(65536)
            assert chunk, f"it ended before it said {text!r}:\n{self.said()}"
            self.rest += chunk

    async def wait_ended(self, status: int) -> None:
        """Wait until the daemon has ended, and check its status."""
        ended = await self.read_to_end()
        assert ended == status, f"it ended with {ended}:\n{self.said()}"

    async def read_to_end(self) -> int:
        """Read all output of the daemon to its end, and return its status."""
        async for chunk in self.output:
            self.rest += chunk
        await trio.lowlevel.wait_readable(self.descriptor)
        self.returncode = self.forks.status(self.pid)
        return self.returncode

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the daemon."""
        signal.pidfd_send_signal(self.descriptor, number)

    def said(self) -> str:
        """Return the daemon's output that was read so far."""
        return "\n".join([*self.lines, self.rest.decode(errors="replace")])


@dataclass(frozen=True, slots=True)
class Death:
    """The state at the daemon's death.

    It contains the entries of the daemon's journal, the notes of the hooks, and the one-time hooks that were done. ``groups``
    contains the process groups in the journal, each as its leader's process ID and start time.
    """

    entries: tuple[JournalEntry, ...]
    groups: frozenset[tuple[int, int]]
    notes: tuple[str, ...]
    started: frozenset[str]

    def hook_in_flight(self) -> bool:
        """Return whether a hook had begun to run, but its end was not recorded."""
        journalled = any(step.endswith(".sh") for entry in self.entries for step in entry.interrupted)
        return journalled or (self.notes[-1:] == ("onStartup",) and not self.started)

    def complete(self) -> frozenset[tuple[str, str, str]]:
        """Return the steps that were recorded as complete, each as operation, fingerprint, and step."""
        return frozenset(
            (entry.operation, entry.fingerprint, step) for entry in self.entries for step in entry.completed
        )


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a trial: the final state in the cluster and on the disk, and the hooks that ran.

    ``writes`` tells how often the first daemon wrote steps of operations to its journal. ``requests`` tells how often it wrote
    to the cluster for the package. ``started`` contains the steps that the last daemon began, each as operation, fingerprint,
    and step.
    """

    outcome: JsonObject
    notes: tuple[str, ...]
    writes: int
    requests: int
    started: tuple[tuple[str, str, str], ...]
    death: Death | None = None


@dataclass(frozen=True, slots=True)
class Ground:
    """A folder in which trials are made, one after the other."""

    folder: Path
    forks: DaemonForks

    @property
    def trial(self) -> Path:
        """Return the folder of the current or the last trial."""
        return self.folder / "trial"

    async def prepare(self) -> Result:
        """Create the packages and the initial state for trials, by an undisturbed installation."""
        layout = OciLayout(self.folder / "packages")
        for version in ("1.0.0", "2.0.0"):
            package = await load_package(crash_package(self.folder / version, version), "crash")
            await push_package(package, layout, "crash", version)
        installed = await self.attempt(Phase.INSTALL)
        for name in ("notes", "armed", "first"):
            (self.trial / name).unlink()
        self.trial.rename(self.folder / "installed")
        return installed

    async def attempt(self, phase: Phase, at: str = "") -> Result:
        """Make one trial.

        ``at`` is the moment of the daemon's death. ``before 3`` and ``after 3`` mean the third write to the journal, ``answered
        3`` the answer to the third write to the cluster, and ``during 3`` the hook run that writes the third note. Without
        ``at``, the daemon does not die.
        """
        shutil.rmtree(self.trial, ignore_errors=True)
        if phase is Phase.INSTALL:
            self.trial.mkdir()
        else:
            shutil.copytree(self.folder / "installed", self.trial, symlinks=True)
        try:
            return await self._made(phase, at)
        except BaseExceptionGroup as group:
            # Every service around the body wraps the error in another group, and the report would end before it shows the error
            # itself.
            leaf: BaseException = group
            while isinstance(leaf, BaseExceptionGroup) and len(leaf.exceptions) == 1:
                leaf = leaf.exceptions[0]
            self._explain(leaf)
            raise leaf from None
        except Exception as error:
            self._explain(error)
            raise

    async def _made(self, phase: Phase, at: str) -> Result:
        death: Death | None = None
        with trio.fail_after(2 * PATIENCE_S):
            async with self._cluster() as client:
                async with self._daemon("first", at) as first:
                    await self._desired(client, phase, first)
                    if at:
                        await first.wait_ended(-signal.SIGKILL)
                    else:
                        await _finish(client, phase, first)
                if at:
                    death = await self._go_on(client, phase, at)
                found = await outcome(client, self.trial / "state")
        said = [line["event"] for line in self._trace("first")]
        started = self._started("second" if at else "first")
        return Result(found, self._notes(), said.count("write"), said.count("request"), started, death)

    async def _desired(self, client: HttpClusterClient, phase: Phase, daemon: Daemon) -> None:
        """Request the operation of the phase as soon as the daemon has nothing else to do."""
        await daemon.wait_line("ready:" if phase is Phase.INSTALL else READY)
        assert self._notes() == ()  # The daemon does not repeat what an earlier process has done.
        (self.trial / "armed").touch()
        match phase:
            case Phase.INSTALL:
                await client.create(_repository(self.folder / "packages"))
                await client.create(_application())
            case Phase.UPGRADE:
                await client.merge_patch(APP, {"spec": {"packageVersion": "2.0.0"}})
            case Phase.SETTINGS:
                await client.merge_patch(APP, {"spec": {"settings": {"mode": "loud"}}})
            case Phase.REMOVAL:
                await client.delete(APP)

    async def _go_on(self, client: HttpClusterClient, phase: Phase, at: str) -> Death:
        """Run the second daemon, and return the state at the first daemon's death.

        The second daemon ends the interrupted work before it is ready, and then completes the operation.
        """
        with self._held() as held:
            assert len(held) == (2 if at.startswith("during") else 0)
            death = await self._death(client)
            for leader in held[:1]:
                stat = read_stat(leader.pid)
                assert stat is not None
                # If the daemon was killed right after the start, it may have recorded only the intent, which has no process ID
                # yet.
                assert {(leader.pid, stat.start_ticks), (0, 0)} & death.groups
            async with self._daemon("second", "") as second:
                await second.wait_line("ready:")
                assert all(process.ended() for process in held)
                if phase is not Phase.REMOVAL:
                    await second.wait_line(READY)
                await _finish(client, phase, second)
        return death

    @asynccontextmanager
    async def _cluster(self) -> AsyncIterator[HttpClusterClient]:
        """Yield a client for a control plane in this process that has the trial's data."""
        with open_sqlite_storage(self.trial / "data.db") as storage:
            listen = parse_address("127.0.0.1:0")
            async with (
                serve_control_plane(listen, self.trial / "kubeconfig", TOKEN, storage=storage) as serving,
                open_client(Connection(LOCAL, bearer(TOKEN)), transport=serving.control_plane.transport()) as client,
            ):
                yield client

    @asynccontextmanager
    async def _daemon(self, trace: str, at: str) -> AsyncIterator[Daemon]:
        where = {"TRACE": trace, "ARMED": "armed", "NOTES": "notes", "HELD": "held"}
        environment = {f"CRASH_{name}": str(self.trial / path) for name, path in where.items()}
        state, kubeconfig, packages = self.trial / "state", self.trial / "kubeconfig", self.folder / "packages"
        asked = ("--hook-env", "CRASH_*", "--application-scope", "cluster")
        arguments = ("--kubeconfig", kubeconfig, "--state-dir", state, "--local-packages", packages, *asked)
        readable, writable = os.pipe()
        async with trio.lowlevel.FdStream(readable) as output:
            pid = self.forks.start(
                ("run", *map(str, arguments)), {**os.environ, **environment, "CRASH_AT": at}, writable
            )
            os.close(writable)
            daemon = Daemon(pid, os.pidfd_open(pid), output, self.forks)
            try:
                yield daemon
            finally:
                if daemon.returncode is None:
                    daemon.send(signal.SIGKILL)
                    with trio.move_on_after(PATIENCE_S, shield=True):
                        await daemon.read_to_end()
                os.close(daemon.descriptor)
                (self.trial / f"{trace}.log").write_text(daemon.said())

    async def _death(self, client: HttpClusterClient) -> Death:
        """Return the state at the daemon's death. The journal is copied before it is read, because the second daemon has to find
        it unchanged.
        """
        for path in sorted((self.trial / "state").glob("journal.db*")):
            shutil.copy(path, self.trial / path.name.replace("journal", "death"))
        recorded = await state_record(client, AppId("default", "app")).read()
        with closing(JournalFile(self.trial / "death.db")) as file:
            groups = frozenset((entry.pid, entry.start_ticks) for entry in ProcessLedger(file).entries())
            return Death(Journal(file).entries(), groups, self._notes(), recorded.started)

    @contextmanager
    def _held(self) -> Iterator[list[Watched]]:
        """Yield the processes of the hook that killed its daemon. They are alive when the block begins, and are killed at its
        end.
        """
        path = self.trial / "held"
        pids = path.read_text().split() if path.exists() else []
        with ExitStack() as stack:
            held = [stack.enter_context(watched(int(pid))) for pid in pids]
            try:
                yield held
            finally:
                for process in held:
                    if not process.ended():
                        signal.pidfd_send_signal(process.descriptor, signal.SIGKILL)

    def _explain(self, error: BaseException) -> None:
        for log in sorted(self.trial.glob("*.log")):
            error.add_note(f"{log.name}:\n{log.read_text()}")

    def _notes(self) -> tuple[str, ...]:
        """Return the notes of the hooks that have run since the operation was requested, in order."""
        path = self.trial / "notes"
        return tuple(path.read_text().splitlines()) if path.exists() else ()

    def _trace(self, name: str) -> list[dict[str, str]]:
        return [json.loads(line) for line in (self.trial / name).read_text().splitlines()]

    def _started(self, name: str) -> tuple[tuple[str, str, str], ...]:
        begun: dict[str, str] = {}
        started: list[tuple[str, str, str]] = []
        for line in self._trace(name):
            if line["event"] == "begin":
                begun[line["operation"]] = line["fingerprint"]
            elif line["event"] == "start":
                started.append((line["operation"], begun[line["operation"]], line["step"]))
        return tuple(started)


async def _finish(client: HttpClusterClient, phase: Phase, daemon: Daemon) -> None:
    """Wait until the operation is complete, and stop the daemon gracefully, so that it finishes all its work first."""

    def holds(obj: JsonObject | None) -> bool:
        if phase is Phase.REMOVAL or obj is None:
            return obj is None and phase is Phase.REMOVAL
        seen = find_int(obj, "status", "observedGeneration") == find_int(obj, "metadata", "generation")
        return seen and find_str(obj, "status", "summary", "state") == "Ready"

    async with open_informer(client, APPLICATION) as informer:
        await informer.wait_synced()
        with informer.changes() as changes:
            while not holds(informer.get(APP)):
                await changes.wait()
    daemon.send(signal.SIGTERM)
    await daemon.wait_ended(0)


def _repository(path: Path) -> JsonObject:
    return {
        "apiVersion": "wharfinger.dev/v1alpha1",
        "kind": "PackageRepository",
        "metadata": {"name": "default"},
        "spec": {"layout": {"path": str(path)}},
    }


def _application() -> JsonObject:
    obj = application("default", "app", package="crash", settings={"mode": "plain"})
    for name in ("uid", "generation"):
        find_object(obj, "metadata").pop(name)
    return obj
