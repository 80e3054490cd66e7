"""A snapshot of one package: it contains all that users can query, and no secrets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import trio
import trio.testing

from tests.runtime.package.test_instance import WRITE_ONLY
from tests.runtime.support.notes import NO_TOOLS, Notes, instance, put
from tests.runtime.support.world import open_world
from tests.runtime.tasks.test_hook_runs import bash, config_map, hooked
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.objects.desired import Identity
from wharfinger.cluster.reconciler.retries import Failure, Outcome
from wharfinger.hooks.config.config import read_hook_config
from wharfinger.hooks.running.discovery import Hook
from wharfinger.queue.dump import QueueDump
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.slots import Slots
from wharfinger.queue.slots_machine import Kind, SlotLimits
from wharfinger.runtime.core.package_snapshot import (
    AWAIT_CRDS,
    Surroundings,
    failure_line,
    package_snapshot,
    surrounded,
    surroundings,
    waiting_queue,
)
from wharfinger.runtime.inspector import (
    ACCEPTED,
    REMOVED,
    MonitorSnapshot,
    OperationSnapshot,
    ProgressSnapshot,
    QueueSnapshot,
    TaskSnapshot,
)
from wharfinger.runtime.lifecycle.journal import Journal
from wharfinger.runtime.lifecycle.journal_machine import Operation
from wharfinger.runtime.package.first_attempts import Tries
from wharfinger.runtime.package.instance import Tools
from wharfinger.runtime.resources.settings import ResolvedSettings
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.tasks.pipeline import Pipeline

BUSY = (
    "configVersion: v1\nonStartup: 3\nafterHelm: 1\nschedule: [{name: often, crontab: '* * * * *'}]\n"
    "kubernetes: [{name: maps, kind: ConfigMap}]\n"
)


def test_a_new_package_has_a_pending_snapshot() -> None:
    snapshot = package_snapshot(instance(), QueueDump("prod.shop", ()))
    assert (snapshot.name, snapshot.kind, snapshot.namespace) == ("prod.shop", "Application", "prod")
    assert (snapshot.state, snapshot.digest, snapshot.release_revision) == ("Pending", "", 0)
    # Optional stages count as done until their task reports otherwise.
    assert [condition.type for condition in snapshot.conditions if condition.status == "True"] == [
        "CustomResourcesApplied", "WebhooksEnsured",
    ]  # fmt: skip
    assert {condition.status for condition in snapshot.conditions} == {"Unknown", "True"}
    assert snapshot.queue.tasks == ()
    assert snapshot.hooks == ()


def test_a_blocked_spec_and_a_held_removal_have_conditions_of_their_own() -> None:
    one = instance()
    assert not {ACCEPTED, REMOVED} & {
        each.type for each in package_snapshot(one, QueueDump("prod.shop", ())).conditions
    }
    put(one, statuses.blocked(one.status, 1, "SpecInvalid", "no such field", NOW))
    blocked = package_snapshot(one, QueueDump("prod.shop", ())).conditions[-1]
    assert (blocked.type, blocked.status, blocked.reason) == (ACCEPTED, "False", "SpecInvalid")
    put(one, statuses.removal_held(one.status, 1, "WouldBreakDependents", "the removal would break it", NOW))
    held = package_snapshot(one, QueueDump("prod.shop", ())).conditions[-1]
    assert (held.type, held.reason, held.message) == (REMOVED, "WouldBreakDependents", "the removal would break it")
    put(one, statuses.removing(one.status, "Removing", "the release is being uninstalled", NOW))
    removed = package_snapshot(one, QueueDump("prod.shop", ())).conditions[-1]
    assert (removed.type, removed.message, removed.last_transition) == (
        REMOVED,
        "the release is being uninstalled",
        NOW,
    )


def test_hooks_are_shown_with_bindings_and_runs() -> None:
    one = instance()
    config = read_hook_config(BUSY.encode(), hook="hooks/a.sh")
    put(one, files={"hooks": (Hook("hooks/a.sh", Path("/x"), (), Path("/"), config),)})
    (hook,) = package_snapshot(one, QueueDump("prod.shop", ())).hooks
    assert hook.bindings == ("onStartup 3", "afterHelm 1", "kubernetes maps", "schedule often * * * * *")
    assert (hook.runs, hook.last_run, hook.last_error) == (0, None, "")


def test_secrets_are_hidden_by_path_and_by_text() -> None:
    one = instance()
    settings = ResolvedSettings(
        {"login": {"key": "hunter2", "pin": 1234}, "note": "it is hunter2", "mode": "fast"},
        ("hunter2",),
        frozenset({("login", "key"), ("login", "pin")}),
    )
    put(one, desired={"settings": settings}, configuration={"values": settings.settings})
    snapshot = package_snapshot(one, QueueDump("prod.shop", ()))
    for shown in (snapshot.settings, snapshot.values):
        assert shown["mode"] == "fast"
        assert "hunter2" not in str(shown)
        assert "1234" not in str(shown)


async def test_the_error_of_a_failed_hook_is_shown_and_masked(tmp_path: Path) -> None:
    """A secret in the output of a hook is masked in the error of the hook."""
    hooks = {
        "a-good.sh": bash("{configVersion: v1, onStartup: 1}", "true"),
        "b-bad.sh": bash("{configVersion: v1, onStartup: 2}", 'jq -r .hooked.token "$CONFIG_VALUES_PATH" >&2; exit 3'),
    }
    files = {
        "openapi/settings.yaml": WRITE_ONLY,
        "openapi/values.yaml": "x-extend: {schema: settings.yaml}\ntype: object\nproperties: {seen: {type: integer}}\n",
    }
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", hooks, files=files), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked", settings={"token": "hunter2222", "mode": "fast"})
        failed = await world.until_state("prod", "app", "Failed")
        snapshot = world.runtime.dump_by_name("prod.app")
        assert snapshot is not None
        good, bad = snapshot.hooks
        assert (good.name, good.runs, good.last_error) == ("hooks/a-good.sh", 1, "")
        assert good.last_run is not None
        assert (bad.name, bad.runs) == ("hooks/b-bad.sh", 1)
        assert "exit status 3" in bad.last_error
        assert snapshot.settings["mode"] == "fast"
        shown = (snapshot.settings, snapshot.values, snapshot.hooks, snapshot.queue, snapshot.message)
        assert "hunter2222" not in str((shown, failed["status"]))


NOW = datetime(2026, 1, 1, tzinfo=UTC)
ONE_SLOT = SlotLimits(work=1, downloads=1, renders=1, hooks=1, loads=1, api=1)


def running(name: str, index: int = 1, lane: str = "main") -> TaskSnapshot:
    return TaskSnapshot(index, name, lane, 1.0, 1, running=True, retry_in_s=None, error="", cause="")


@asynccontextmanager
async def waiting(slots: Slots, *packages: str) -> AsyncIterator[None]:
    """Occupy the only slot for renders, so that the given packages wait for it."""

    over = trio.Event()

    async def ask(package: str, until: trio.Event | None = None) -> None:
        async with slots.use(Kind.RENDER, package):
            if until is not None:
                await until.wait()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, "other.package", over)
        await trio.testing.wait_all_tasks_blocked()
        for package in packages:
            nursery.start_soon(ask, package)
        await trio.testing.wait_all_tasks_blocked()
        yield
        over.set()


def test_maintenance_progress_warnings_and_definitions_are_shown() -> None:
    one = instance()
    put(one, statuses.set_maintenance(one.status, "NoResourceReconciliation", NOW))
    put(one, statuses.tracking(one.status, ("ConfigMap a",), ("Deployment b",), NOW))
    put(one, statuses.warned(one.status, ("settings.old: is deprecated",), NOW))
    put(one, crds={"established": ("example.com/v1/Thing",)}, applied={"unmatched": ("Deployment gone",)})
    snapshot = package_snapshot(one, QueueDump("prod.shop", ()))
    assert (snapshot.suspended, snapshot.maintenance) == (False, "NoResourceReconciliation")
    assert snapshot.progress == ProgressSnapshot(1, 1, ("Deployment b",))
    assert snapshot.warnings == ("settings.old: is deprecated",)
    assert (snapshot.crds, snapshot.unmatched) == (("example.com/v1/Thing",), ("Deployment gone",))
    put(one, crds={"established": None})
    put(one, statuses.suspended(one.status, NOW, suspended=True))
    snapshot = package_snapshot(one, QueueDump("prod.shop", ()))
    assert (snapshot.suspended, snapshot.state, snapshot.crds) == (True, "Suspended", None)


async def test_operations_and_limits_of_the_package_are_shown() -> None:
    slots = Slots(ONE_SLOT)
    entry = OperationSnapshot("update", ("download",), ("install",), (), earlier=False)
    around = Surroundings({"prod.shop": (entry,), "prod.other": ()}, slots, ())
    one = package_snapshot(instance(), QueueDump("prod.shop", ()))
    assert surrounded(one, around) == replace(one, operations=(entry,))
    async with waiting(slots, "prod.shop"):
        found = surrounded(replace(one, queue=QueueSnapshot("prod.shop", (running("Run"),))), around)
        assert found.waits_for == ("renders",)
        assert found.queue.tasks[0].waits_for == "a slot: renders"
    assert surrounded(one, around).waits_for == ()


async def test_a_running_task_shows_the_limit_that_it_waits_for() -> None:
    slots = Slots(ONE_SLOT)
    around = Surroundings({}, slots, ())
    waits = replace(running("Load", 2), running=False)
    one = QueueSnapshot("prod.shop", (running("Run"), waits))
    two = QueueSnapshot("prod.shop", (running("Run"), waits, running("hook", 3, "hooks/q")))
    assert waiting_queue(one, around, established=True) == one
    async with waiting(slots, "prod.shop"):
        assert [task.waits_for for task in waiting_queue(one, around, established=True).tasks] == [
            "a slot: renders", "",
        ]  # fmt: skip
        perhaps = "a slot (for this task, or for another of the 2 running tasks): renders"
        assert [task.waits_for for task in waiting_queue(two, around, established=True).tasks] == [
            perhaps, "", perhaps,
        ]  # fmt: skip
        others = QueueSnapshot("prod.other", one.tasks)
        assert waiting_queue(others, around, established=True) == others
        resting = QueueSnapshot("prod.shop", (waits,))
        assert waiting_queue(resting, around, established=True) == resting


@pytest.mark.parametrize(
    ("trying", "established", "says"),
    [
        ((), True, ""),
        ((), False, "the custom resource definitions of prod.shop"),
        (("prod.shop",), False, "the custom resource definitions of prod.shop"),
        (("ingress", "metrics"), True, "the custom resource definitions of ingress, metrics"),
    ],
)
def test_a_task_that_waits_for_definitions_names_their_packages(
    trying: tuple[str, ...], established: bool, says: str
) -> None:
    queue = QueueSnapshot("prod.shop", (running(AWAIT_CRDS), replace(running("Run", 2), running=False)))
    found = waiting_queue(queue, Surroundings({}, Slots(ONE_SLOT), trying), established=established)
    assert [task.waits_for for task in found.tasks] == [says, ""]


async def test_watches_of_hooks_and_waiting_events_are_shown(tmp_path: Path) -> None:
    """In its run for an event, the hook waits for a file. The event stays queued until this run is over."""
    config = "{configVersion: v1, kubernetes: [{name: maps, kind: ConfigMap, labelSelector: {matchLabels: {a: b}}}]}"
    gate = tmp_path / "gate"
    body = f'if grep -q Event "$BINDING_CONTEXT_PATH"; then until [ -e {gate} ]; do sleep 0.02; done; fi'
    async with open_world(tmp_path) as world:
        await world.client.create(config_map("first", {"a": "b"}))
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", {"a.sh": bash(config, body)}), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        await world.until_state("prod", "app", "Ready")
        await world.client.create(config_map("second", {"a": "b"}))
        try:
            with trio.fail_after(60):
                while not (found := world.runtime.dump_by_name("prod.app")) or not any(
                    task.running for task in found.queue.tasks
                ):
                    await trio.lowlevel.checkpoint()
        finally:
            gate.touch()  # otherwise the hook would wait for ever
        assert found.monitors == (MonitorSnapshot("hooks/a.sh", "maps", True, False, 2, 1, 0, 1, 0, ""),)
        assert (found.hooks[0].waiting, found.hooks[0].reduced) == (1, 0)


def test_a_failing_object_is_shown_with_its_attempts_and_history() -> None:
    failure = Failure(
        Identity("ConfigMap", "prod", "front"),
        ClusterError("no quota"),
        attempts=4,
        next_at=113.0,
        permanent=False,
        since=90.0,
        history=(Outcome(91.0, "no route", 2), Outcome(100.0, "no quota", 2)),
    )
    today = datetime(2026, 1, 1, 12, 7, 7, tzinfo=UTC)
    before = "before: no route (2 times)"
    text = failure_line(failure, 100.0, today)
    assert text == f"ConfigMap prod/front: no quota; attempt 4 failed, next at 12:07:20 UTC (in 13 s); {before}"
    text = failure_line(replace(failure, history=failure.history[1:]), 114.0, today)
    assert text == "ConfigMap prod/front: no quota; attempt 4 failed, attempt 5 is under way"


async def test_operations_of_different_packages_are_separate() -> None:
    journal = Journal(None)
    for package, operation in (
        ("prod.app", Operation.UPDATE),
        ("prod.app", Operation.RECONCILIATION),
        ("prod.shop", Operation.UPDATE),
    ):
        journal.begin(package, operation, "x")
        journal.start(package, operation, "one")
        journal.complete(package, operation, "one")
        journal.start(package, operation, "two")
    releases = SimpleNamespace(failures=dict)
    tools = cast("Tools", SimpleNamespace(journal=journal, slots=Slots(ONE_SLOT), crd_phase=Tries(), releases=releases))
    around = surroundings(tools, datetime.now(UTC))
    assert around.operations["prod.shop"] == (OperationSnapshot("update", ("one",), ("two",), (), earlier=False),)
    assert [each.operation for each in around.operations["prod.app"]] == ["reconciliation", "update"]
    assert around.trying_crds == ()


def test_the_task_that_waits_for_definitions_is_one_of_the_pipeline() -> None:
    tasks = Pipeline(instance(), NO_TOOLS, Notes(), WorkScope("x")).reconciliation()
    assert AWAIT_CRDS in [task.name for task in tasks]
