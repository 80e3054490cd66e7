"""A short story that is always the same: a package waits for another one, is installed, breaks, and is removed."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from tests.runtime.support.nodes import node
from tests.runtime.support.recorded import MemoryLog
from wharfinger.queue import events as queue_events
from wharfinger.queue.machine import step as queue_step
from wharfinger.queue.state import QueueState
from wharfinger.runtime.lifecycle.desired_state import DesiredState
from wharfinger.runtime.lifecycle.journal import Journal
from wharfinger.runtime.lifecycle.journal_machine import Operation
from wharfinger.runtime.lifecycle.store import LifecycleStore
from wharfinger.runtime.package.around import Around
from wharfinger.runtime.package.events import Changed
from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.package.state import Package
from wharfinger.runtime.recording.log_file import file_name
from wharfinger.runtime.recording.recorder import Recorder
from wharfinger.runtime.resources.identity import AppId
from wharfinger.runtime.scheduler import events as scheduler_events
from wharfinger.runtime.scheduler.scheduler import Scheduler
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.package_status import PackageStatus, Stage

T0: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
WEB: Final = "shop.web"
DB: Final = "shop.db"
V1: Final = DesiredState("oci://registry/packages", "web", "1.0.0", "sha256:aa")


class Install:
    """The recorded story of two packages, which is played when an object of this class is created. ``times`` contains the time
    at which each part of the story ended.
    """

    def __init__(self) -> None:
        self.log = MemoryLog()
        self.clock = T0
        self.times: dict[str, datetime] = {}
        self.recorder = Recorder(lambda _: ("hunter2-planted",), self.log, self._now)
        self.store = LifecycleStore(observe=self.recorder.lifecycle)
        self.scheduler = Scheduler()
        self.scheduler.observe = self.recorder.scheduler
        self.journal = Journal(None)
        self.journal.observe = self.recorder.journal
        self.statuses: dict[str, PackageStatus] = {}
        self.instances: dict[str, Instance] = {}
        self.queue = QueueState()
        self._begin()
        self._wait()
        self._install()
        self._break()
        self._remove()

    def _now(self) -> float:
        return self.clock.timestamp()

    def _at(self, part: str) -> None:
        self.times[part] = self.clock
        self.clock += timedelta(seconds=1)

    def _task(self, event: queue_events.Event) -> None:
        before, (self.queue, effects) = self.queue, queue_step(self.queue, event)
        self.recorder.queue(WEB, 1, before, event, self.queue, effects)
        self.clock += timedelta(milliseconds=250)

    def _status(self, name: str, after: PackageStatus) -> None:
        around = Around(self.clock, self.store.package(name))
        self.instances[name].take(Changed(after), around)
        self.statuses[name] = after

    def _begin(self) -> None:
        self.scheduler.apply(scheduler_events.Resumed(), self.clock)
        for name in (WEB, DB):
            self.statuses[name] = statuses.fresh(1, self.clock)
            state = Package(AppId(*name.split(".")), self.statuses[name])
            self.instances[name] = Instance(state, observe=self.recorder.package)
        self.store.reconcile(WEB, V1)
        self.store.begin_update(WEB)
        self._status(WEB, statuses.update_started(self.statuses[WEB], 1, self.clock, version="1.0.0"))
        self.journal.begin(WEB, Operation.UPDATE, "sha256:f1")
        for number, task in enumerate(("Download", "Load"), 1):
            self._task(queue_events.Enqueued(number, task, -1, 1.0))
        self.journal.start(WEB, Operation.UPDATE, "Download")
        self._task(queue_events.Failed(1, "cannot log in with hunter2-planted", False, 2.0, 0.5))
        text = "cannot log in with hunter2-planted"
        failed = statuses.failed(
            self.statuses[WEB], Stage.FETCHED, "RegistryRefused", text, self.clock, permanent=False
        )
        self._status(WEB, failed)
        self._at("refused")
        self._task(queue_events.RetryDue(99.0))
        self._task(queue_events.Finished(2))
        self._task(queue_events.Completed(2))
        self.journal.complete(WEB, Operation.UPDATE, "Download", "sha256:d1")
        self._status(WEB, statuses.succeeded(self.statuses[WEB], Stage.FETCHED, self.clock))

    def _wait(self) -> None:
        self.store.complete_update(WEB)
        self._status(WEB, statuses.succeeded(self.statuses[WEB], Stage.LOADED, self.clock))
        self.scheduler.apply(scheduler_events.NodeAdded(node(WEB, DB)), self.clock)
        decided = self.scheduler.decision(WEB)
        assert decided is not None
        self._status(WEB, statuses.required(self.statuses[WEB], decided.reason, decided.message, self.clock, met=False))
        self._at("waits")

    def _install(self) -> None:
        self.scheduler.apply(scheduler_events.NodeAdded(node(DB)), self.clock)
        started = statuses.update_started(self.statuses[DB], 1, self.clock, version="1.0.0")
        self._status(DB, started)
        self._status(WEB, statuses.required(self.statuses[WEB], "", "", self.clock, met=True))
        self._at("db runs")
        self.scheduler.apply(scheduler_events.Completed(DB, 1), self.clock)
        self.store.begin_reconciliation(WEB, "Scheduled")
        for stage in (Stage.CONFIGURED, Stage.HOOKS, Stage.APPLIED, Stage.SCALED):
            self._status(WEB, statuses.succeeded(self.statuses[WEB], stage, self.clock))
        self._status(WEB, statuses.released(self.statuses[WEB], "1.0.0", "sha256:d1", 1))
        self.scheduler.apply(scheduler_events.Completed(WEB, 2), self.clock)
        self.store.complete_run(WEB)
        self._at("ready")

    def _break(self) -> None:
        failed = statuses.failed(
            self.statuses[WEB],
            Stage.SCALED,
            "WorkloadFailed",
            "Deployment prod/web crashes",
            self.clock,
            permanent=False,
        )
        self._status(WEB, failed)
        self._at("broken")

    def _remove(self) -> None:
        self.store.begin_removal(WEB)
        self._status(WEB, statuses.removing(self.statuses[WEB], "Removing", "uninstalling", self.clock))
        self.scheduler.apply(scheduler_events.NodeRemoved(WEB), self.clock)
        self._at("removing")
        self.store.finish_removal(WEB)
        self.store.complete_removal(WEB)
        self.journal.forget(WEB)
        self._at("gone")

    def write(self, folder: Path) -> Path:
        """Write the recording to a folder."""
        folder.mkdir()
        (folder / file_name(1)).write_bytes(self.log.as_file())
        return folder
