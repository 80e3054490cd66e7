"""Random sequences of events, which real state machines process while a recorder observes them. A seed determines a sequence."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Final

from msgspec import structs

from tests.runtime.support.nodes import group, node
from wharfinger.formats.json.value import JsonObject
from wharfinger.packages.definition.definition import Definition, Layout
from wharfinger.packages.definition.requirements import NO_REQUIREMENTS
from wharfinger.packages.rendering.chart_use import ChartUse
from wharfinger.packages.sources.source import FolderSource
from wharfinger.queue import events as queue_events
from wharfinger.queue.machine import QueueFull
from wharfinger.queue.machine import step as queue_step
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.state import BackingOff, Completing, Ending, QueueState, Rules, Running
from wharfinger.runtime.lifecycle.desired_state import Decision, DecisionKind, DesiredState
from wharfinger.runtime.lifecycle.journal import Journal
from wharfinger.runtime.lifecycle.journal_machine import Operation
from wharfinger.runtime.lifecycle.store import LifecycleStore
from wharfinger.runtime.package import events, findings
from wharfinger.runtime.package.around import Around
from wharfinger.runtime.package.enabled_vote import KeptVote
from wharfinger.runtime.package.facts import DesiredGiven
from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.package.state import Brought, Package
from wharfinger.runtime.recording.log_file import MAGIC, frame
from wharfinger.runtime.recording.record import FORMAT, HeadRecord, Lines, Record, encoded, lines_of, read_record
from wharfinger.runtime.recording.record_writer import Log
from wharfinger.runtime.recording.recorder import Recorder
from wharfinger.runtime.resources.identity import AppId, ModuleId, PackageId
from wharfinger.runtime.resources.release_policy import DeletionPolicy
from wharfinger.runtime.resources.resources import Directives
from wharfinger.runtime.resources.settings import ResolvedSettings
from wharfinger.runtime.resources.upgrade_policy import UpgradePolicy
from wharfinger.runtime.scheduler import events as scheduler_events
from wharfinger.runtime.scheduler.graph import CycleError
from wharfinger.runtime.scheduler.rules import Facts
from wharfinger.runtime.scheduler.scheduler import Scheduler
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.failures import Failure
from wharfinger.runtime.status.package_status import PackageStatus, Stage
from wharfinger.runtime.status.reasons import Reason
from wharfinger.runtime.versions.rollback_note import RollbackNote

T0: Final = datetime(2026, 1, 1, tzinfo=UTC)
NAMES: Final = ("shop.web", "shop.db", "ingress", "shop.cache")
STEPS: Final = ("Download", "Load", "Configure", "Run")
SECRETS: Final = ("hunter2-planted", "s3cr3t value with spaces", "ünïcödé-sécret", 'quo"ted\\secret')

DEFINITION: Final = Definition(
    Layout.PACKAGE, None, "web", "1.0.0", "", "", NO_REQUIREMENTS, 900, critical=False, chart=None,
    static_values={}, settings_schema=None, values_schema=None, helm_schema=None, hooks=False, enabled_script=False,
    crds=False, images={},
)  # fmt: skip


@dataclass(slots=True)
class MemoryLog:
    """A log in memory, in which a test decides when another file begins."""

    file: int = 1
    drains: set[Callable[[], None]] = field(default_factory=set)
    _records: list[bytes] = field(default_factory=list)

    @property
    def records(self) -> list[bytes]:
        """Return the records that were made so far."""
        self.drain()
        return self._records

    def expect(self, drain: Callable[[], None]) -> None:
        self.drains.add(drain)

    def drain(self) -> None:
        for drain in self.drains:
            drain()

    def append(self, *records: Lines | Callable[[], bytes]) -> None:
        for record in records:
            if isinstance(record, Lines):
                lines = lines_of(record.data)
                assert len(lines) == record.records
                self._records += lines
            else:
                self._records.append(record())

    def begin_file(self) -> None:
        """Begin another file, so that the whole state of the machines is recorded again."""
        self.drain()
        self.file += 1
        self._records.append(encoded(HeadRecord(0, T0.timestamp(), FORMAT, "0.0.0", 1, first=False)))

    def read(self) -> list[Record]:
        return [read_record(data) for data in self.records]

    def as_file(self) -> bytes:
        head = encoded(HeadRecord(0, T0.timestamp(), FORMAT, "0.0.0", 1, first=True))
        return MAGIC + b"".join(frame(each + b"\n") for each in (head, *self.records))


@dataclass(slots=True)
class _Lane:
    state: QueueState
    number: int
    tasks: int = 0


class Story:
    """A random story of a few packages: in each step, one event happens to one of them."""

    def __init__(self, seed: int, *, secrets: tuple[str, ...] = (), log: Log | None = None) -> None:
        self.random = Random(seed)  # noqa: S311 - a story
        self.secrets = secrets
        self.log = MemoryLog()
        self.clock = T0
        self.recorder = Recorder(lambda _: self.secrets, log or self.log, self._now)
        self.lifecycle = LifecycleStore(observe=self.recorder.lifecycle)
        self.scheduler = Scheduler()
        self.scheduler.observe = self.recorder.scheduler
        self.journal = Journal(None)
        self.journal.observe = self.recorder.journal
        self.instances: dict[str, Instance] = {}
        self.queues: dict[str, _Lane] = {}
        self.queues_begun = 0
        self.scheduler.apply(scheduler_events.FactsChanged(Facts("1.31.0", "1.70.0")), self.clock)
        self.scheduler.apply(scheduler_events.Resumed(), self.clock)

    def tell(self, steps: int) -> "Story":
        """Make this many random steps of the state machines, and record them."""
        kinds = (
            self._lifecycle,
            self._scheduler,
            self._scheduler,
            self._journal,
            self._queue,
            self._queue,
            self._package,
            self._package,
        )
        for _ in range(steps):
            self.clock += timedelta(milliseconds=self.random.randrange(5_000))
            self.random.choice(kinds)(self.random.choice(NAMES))
            if self.random.random() < 0.02:
                self.log.begin_file()
        return self

    def _now(self) -> float:
        return self.clock.timestamp()

    def text(self) -> str:
        """Return a random error text, which sometimes contains a secret."""
        secret = self.random.choice(self.secrets or ("no secret",))
        return self.random.choice(
            ("timed out", f"cannot log in with {secret}", "password=planted-by-form", f"x{secret}y: refused", "")
        )

    def _lifecycle(self, name: str) -> None:
        draw = self.random.randrange(12)
        store = self.lifecycle
        match draw:
            case 0 | 1 | 2:
                version = self.random.choice(("1.0.0", "2.0.0"))
                checksum = self.random.choice(("sha256:a", "sha256:b"))
                suspended = self.random.random() < 0.1
                store.reconcile(
                    name, DesiredState("oci://r/x", "web", version, checksum, self.text(), suspended=suspended)
                )
            case 3:
                store.begin_update(name)
            case 4:
                store.begin_reconciliation(name, self.text() or "again")
            case 5:
                store.begin_disable(name)
            case 6:
                store.begin_vote(name)
            case 7:
                store.begin_suspend(name)
            case 8:
                store.complete_update(name)
            case 9:
                store.complete_run(name)
            case 10:
                store.begin_removal(name)
                store.restart_removal(name)
            case _:
                store.finish_removal(name)
                if store.complete_removal(name):
                    self.instances.pop(name, None)

    def _scheduler(self, name: str) -> None:
        events = scheduler_events
        run = self.random.randrange(max(1, self.recorder.records // 10 + 2))
        needed = self.random.choice(NAMES)
        others = [f"{needed} >=1"] if needed != name and self.random.random() < 0.5 else []
        script = self.random.random() < 0.3
        groups = [group("any", *NAMES[:2])] if self.random.random() < 0.2 else []
        added = node(
            name, *others, version=self.random.choice(("1.0.0", "2.0.0-rc1")), order=self.random.choice((1, 5, 999)),
            script=script, any_of=groups,
        )  # fmt: skip
        current = self.scheduler.snapshot(name)
        event: scheduler_events.Event = self.random.choice(
            (
                events.NodeAdded(added),
                events.NodeAdded(added),
                events.NodeRemoved(name),
                events.Completed(name, current.run if current is not None else run),
                events.Completed(name, current.run if current is not None else run),
                events.Failed(name, current.run if current is not None else run),
                events.Rescheduled(name, "SettingsChanged"),
                events.IntentSet(name, self.random.choice((True, False, None))),
                events.FlagSet(name, self.random.choice((True, False, None))),
                events.ScriptVoted(name, self.random.choice((True, False, None)), self.text()),
                events.ScriptVoted(name, None, error=self.text() or "failed"),
                events.FactsChanged(Facts(self.random.choice(("1.31.0", "1.32.0")), "1.70.0")),
                events.Paused(),
                events.Resumed(),
            )
        )
        with contextlib.suppress(CycleError):  # in this case, nothing has changed
            self.scheduler.apply(event, self.clock)

    def _journal(self, name: str) -> None:
        operation = self.random.choice(tuple(Operation))
        step = self.random.choice(STEPS)
        match self.random.randrange(9):
            case 0 | 1 | 2:
                self.journal.begin(name, operation, self.random.choice(("sha256:1", "sha256:2")))
            case 3 | 4:
                self.journal.start(name, operation, step)
            case 5 | 6:
                self.journal.start(name, operation, step)
                self.journal.complete(name, operation, step, self.text())
            case 7:
                self.journal.finish(name, operation)
            case _:
                self.journal.forget(name)

    def _queue(self, name: str) -> None:
        lane = self.queues.get(name)
        if lane is None:
            self.queues_begun += 1
            lane = self.queues[name] = _Lane(QueueState(Rules(max_tasks=20)), self.queues_begun)
        now = (self.clock - T0).total_seconds()
        for event in self._queue_events(lane, now):
            before = lane.state
            try:
                lane.state, effects = queue_step(before, event)
            except QueueFull:
                continue
            self.recorder.queue(name, lane.number, before, event, lane.state, effects)
            if not lane.state.lanes:
                self.queues.pop(name, None)
                return

    def _queue_events(self, lane: _Lane, now: float) -> list[queue_events.Event]:
        heads = [each.head for each in lane.state.lanes.values()]
        active = [head for head in heads if isinstance(head, Running | Completing | Ending)]
        draw = self.random.randrange(10)
        if draw < 4 or not heads:
            lane.tasks += 1
            task = self.random.choice(STEPS)
            where = self.random.choice(("main", "main", "vote"))
            unique, tells = self.random.random() < 0.2, self.random.random() < 0.5
            return [queue_events.Enqueued(lane.tasks, task, self.random.randrange(3), now, where, unique, tells)]
        if draw < 8 and active:
            head = self.random.choice(active)
            failed = queue_events.Failed(head.run, self.text(), self.random.random() < 0.3, now, self.random.random())
            match head:
                case Completing():
                    return [queue_events.Completed(head.run)]
                case Ending():
                    return [queue_events.Interrupted(head.run)]
                case Running():
                    return [self.random.choice((queue_events.Finished(head.run), failed))]
        if draw == 8:
            if any(isinstance(head, BackingOff) for head in heads):
                return [queue_events.RetryDue(now)]
            return [queue_events.InputChanged()]
        return [
            self.random.choice(
                (
                    queue_events.ScopeCancelled(self.random.randrange(3), self.text() or "superseded"),
                    queue_events.InputChanged(),
                    queue_events.Draining("the daemon is stopping", interrupt=self.random.random() < 0.5),
                )
            )
        ]

    def _package(self, name: str) -> None:
        namespace, dot, own = name.partition(".")
        identity: PackageId = AppId(namespace, own) if dot else ModuleId(name)
        instance = self.instances.get(name)
        if instance is None:
            fresh = Package(identity, statuses.fresh(1, self.clock))
            instance = self.instances[name] = Instance(fresh, observe=self.recorder.package)
        event = self._finding(instance) if self.random.random() < 0.4 else self._event(name, instance)
        instance.take(event, Around(self.clock, self.lifecycle.package(name)))

    def _settings(self) -> ResolvedSettings:
        secret = self.text() or "nothing"
        return ResolvedSettings(
            {"password": secret, "size": self.random.randrange(3)}, (secret,), frozenset({("password",)})
        )

    def _definition(self) -> Definition:
        draw = self.random.random
        return replace(
            DEFINITION, version=self.random.choice(("1.0.0", "2.0.0")), crds=draw() < 0.5, enabled_script=draw() < 0.5
        )

    def _scope(self) -> WorkScope:
        scope = WorkScope(self.random.choice(("update of x", "vote of x")))
        if self.random.random() < 0.2:
            scope.cancel("superseded")
        return scope

    def _directives(self) -> Directives:
        choice, text = self.random.choice, self.text()
        note = RollbackNote(choice((0, 3)), "1.0.0", "2.0.0", "UpgradeFailed", text)
        return Directives(
            requested=text,
            account=choice(("", "package")),
            upgrade=UpgradePolicy(rollback=choice((True, False))),
            asked=choice(("sha256:1", "sha256:2")),
            rolled_back=choice((note, None)),
        )

    def _adopted_desired(self) -> DesiredGiven:
        source, first = FolderSource(Path("/packages")), self.random.random() < 0.5
        return DesiredGiven(
            "web", self.random.choice(("1.0.0", "2.0.0")), source, self._settings(), self._directives(), first=first
        )

    def _finding(self, instance: Instance) -> findings.Finding:
        text = self.text()
        values: JsonObject = {"auth": {"token": self.text()}}
        definition, settings, key = self._definition(), self._settings(), self.random.choice(("a", "b"))
        kinds: tuple[findings.Finding, ...] = (
            findings.FoundInstalled("web", "1.0.0", self._directives() if self.random.random() < 0.5 else None),
            findings.AccountGiven(self.random.choice(("", "deployer"))),
            findings.DeletionChosen(DeletionPolicy.ORPHAN),
            findings.Unpacked(Path("/store/a")),
            findings.PackageRead(definition, ()),
            findings.PackageRead(definition, ()),
            findings.ChartSearched("sha256:a", ChartUse()),
            findings.WebhooksSearched("sha256:a", mentioned=True),
            findings.ScriptAsked((key,)),
            findings.ScriptAnswered(KeptVote("k", True, text)),
            findings.VoteReported(settings.checksum),
            findings.SettingsConverted(settings),
            findings.Configured(definition, settings, settings.settings, values),
            findings.AdoptedForRemoval(settings, values),
            findings.ValuesPatched(values),
            findings.ObjectsKnown(()),
            findings.ChartApplied((), "sha256:i", Brought("sha256:i", "f")),
            findings.OverridesMatched((text,)),
            findings.ValuesRead(),
            findings.Verified(),
            findings.HooksStarting(self._scope()),
            findings.HooksStopped(),
            findings.StartupHookDone(key),
            findings.CrdsEstablished(("v1/A",)),
            findings.Renamed(instance.id),
        )
        return self.random.choice(kinds)

    def _event(self, name: str, instance: Instance) -> events.Event:
        text, draw, choice = self.text(), self.random.random, self.random.choice
        stage, key, run, on = choice(tuple(Stage)), choice(("a", "b")), self.random.randrange(5), draw() < 0.5
        failure = Failure(choice((Reason.RENDER_FAILED, Reason.HOOK_FAILED)), text, permanent=on)
        definition = instance.files.definition or self._definition()
        vote = scheduler_events.ScriptVoted(name, on, text)
        kind = choice(
            (
                DecisionKind.NONE,
                DecisionKind.RECONFIGURE,
                DecisionKind.UPDATE,
                DecisionKind.RESUME,
                DecisionKind.SUSPEND,
            )
        )
        kinds: tuple[events.Event, ...] = (
            *(events.Changed(self._any_status(instance.status)) for _ in range(12)),
            events.Progressed(stage, "Pending", text),
            events.Succeeded(stage),
            events.StageFailed(stage, failure),
            events.StageFailed(stage, failure),
            events.Placed(),
            events.Released(run),
            events.Tracked(("a",), (text or "b",)),
            events.Reachable((("https://shop.example", text),)),
            events.WarnedOf(key, (text,)),
            events.Uninstalled(),
            events.Removing("Waiting", text),
            events.Voted(on, text, failed=draw() < 0.5),
            events.HookDone(key, text),
            events.EventHookDone(key, "main", text),
            events.ValuesChanged(key),
            events.HealthSeen(failed=text, any_stalled=on),
            events.DriftReported((text,), (text,) if on else ()),
            events.ForeignRevision(text),
            events.Troubled((text,)),
            events.UpdateStarted(self._scope(), run),
            events.NodeAccepted(definition, fresh=on, stored=draw() < 0.1),
            events.NodeRefused(failure, fresh=on, established=()),
            events.NodeSettled(enabled=on, unwanted=draw() < 0.5),
            events.VoteRecorded(vote),
            events.VoteStarted(self._scope(), "again", (key,) if on else None),
            events.VoteDone("again"),
            events.VoteRepeated(),
            events.ReconciliationStarted(run, self._scope() if on else None),
            events.RunDone(run),
            events.DisableStarted("Unwanted", on, self._scope(), updating=draw() < 0.5),
            events.DisableDone(),
            events.SuspendStarted(self._scope()),
            events.StoredLoaded(),
            events.CrdsStarted(self._scope()),
            events.RemovalStarted(
                self._scope(), self._settings(), DeletionPolicy.ORPHAN if on else None, disowned=False
            ),
            events.RemovalDone(),
            *(self._adopted(kind, run) for _ in range(4)),
            *((events.UpdateDone(),) if instance.files.definition is not None else ()),
            events.UpdateWanted(run),
            events.NeedsChanged(),
            events.OthersTurned((key,), forced=on),
            events.DecisionReported(scheduler_events.Decided(name, on, "DependencyNotEnabled", text)),
            events.DecisionMade(on),
            events.RunOrdered(run, "Loaded"),
            events.DisableOrdered("Unwanted", uninstall=on),
            events.DeletionChanged(DeletionPolicy.DELETE_ALL),
            events.RemovalAccountChanged(self.random.choice(("", "deployer"))),
            events.SkipDeleteHooks(),
        )
        return choice(kinds)

    def _adopted(self, kind: DecisionKind, generation: int) -> events.DesiredAdopted:
        scope = self._scope() if kind in (DecisionKind.UPDATE, DecisionKind.RESUME) else None
        new_login, needs_changed = self.random.random() < 0.5, self.random.random() < 0.5
        return events.DesiredAdopted(
            self._adopted_desired(), Decision(kind), generation, scope, new_login, needs_changed
        )

    def _any_status(self, before: PackageStatus) -> PackageStatus:
        stage, now, text = self.random.choice(tuple(Stage)), self.clock, self.text()
        generation = before.generation + self.random.randrange(2)
        permanent = self.random.random() < 0.3
        changes: tuple[Callable[[], PackageStatus], ...] = (
            lambda: statuses.succeeded(before, stage, now),
            lambda: statuses.succeeded(before, stage, now),
            lambda: self._all_done(before),
            lambda: statuses.failed(before, stage, "RenderFailed", text, now, permanent=permanent),
            lambda: statuses.progressing(before, stage, "Pending", text, now),
            lambda: statuses.rolling_out(before, text, now),
            lambda: statuses.rolled_back(before, RollbackNote(2, "1.0.0", "2.0.0", "Requested", text), now),
            lambda: statuses.update_started(before, generation, now, version="2.0.0"),
            lambda: statuses.reconfigure_started(before, generation, now),
            lambda: statuses.observed(before, generation, now),
            lambda: statuses.released(before, "2.0.0", "sha256:aa", before.revision + 1),
            lambda: statuses.required(before, "DependencyNotEnabled", text, now, met=permanent),
            lambda: statuses.stopped(before, now),
            lambda: statuses.placed(before, "shop"),
            lambda: statuses.uninstalled(before, now),
            lambda: statuses.blocked(before, generation, "SpecInvalid", text, now),
            lambda: statuses.removal_held(before, generation, "HasDependents", text, now),
            lambda: statuses.removing(before, "Removing", text, now),
            lambda: statuses.suspended(before, now, suspended=not before.suspended),
            lambda: statuses.suspended(statuses.observed(before, generation, now), now, suspended=not before.suspended),
            lambda: statuses.set_maintenance(before, "NoResourceReconciliation" if permanent else "", now),
            lambda: statuses.tracking(before, ["a"], [text or "b"], now),
            lambda: statuses.warned(before, [text], now),
            lambda: statuses.reachable(before, [("https://shop.example", text)], now),
            lambda: statuses.restored(generation, statuses.external(before), now),
            lambda: structs.replace(before, ready_kept=None),
        )
        return self.random.choice(changes)()

    def _all_done(self, status: PackageStatus) -> PackageStatus:
        for stage in Stage:
            status = statuses.succeeded(status, stage, self.clock)
        return status
