"""Hooks that run at events, in their lanes: the events that they get, the rate of their runs, and their failures."""

from pathlib import Path
from typing import cast

import pytest
import trio
import trio.testing

from tests.runtime.support.notes import NO_TOOLS, Notes, instance, put
from tests.runtime.support.world import open_world
from tests.runtime.tasks.test_hook_runs import bash, config_map, hooked
from tests.runtime.tasks.test_start_tasks import notes, noting
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.watch.shared_watches import SharedWatches
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.hooks.config.config import read_hook_config
from wharfinger.hooks.running.discovery import Hook
from wharfinger.hooks.running.inbox import Inbox, Occurrence
from wharfinger.hooks.running.package_hooks import PackageHooks
from wharfinger.hooks.watching.filters import Filters
from wharfinger.kube.resource import ObjectKey
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.task import TaskFailed
from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.resources.resources import CONFIG_MAP
from wharfinger.runtime.resources.settings import ResolvedSettings
from wharfinger.runtime.status.failures import HookRunError
from wharfinger.runtime.tasks.event_tasks import EventHookTask, failed_event

WATCHING = "configVersion: v1\nkubernetes: [{kind: ConfigMap, labelSelector: {matchLabels: {a: b}}, queue: %s}]\n"


def a_hook(config: str) -> Hook:
    return Hook("hooks/a.sh", Path("a.sh"), (), Path(), read_hook_config(config.encode(), hook="hooks/a.sh"))


def package_hooks(hook: Hook) -> PackageHooks:
    """Return the hooks of a package, without watches for their events."""
    client, watches, filters = cast("ClusterClient", None), cast("SharedWatches", None), cast("Filters", None)
    return PackageHooks(
        "prod.shop", (hook,), client, watches, filters, namespace=None, on_event=lambda _hooks, _inbox: None
    )


@pytest.mark.slow
async def test_a_version_0_hook_gets_each_event_in_a_separate_run(tmp_path: Path) -> None:
    config = "onKubernetesEvent: [{name: maps, kind: ConfigMap, selector: {matchLabels: {a: b}}, event: [add]}]"
    hook = bash(config, f'jq -r ".[].resourceName" "$BINDING_CONTEXT_PATH" >>"{tmp_path}/notes"')
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", {"old.sh": hook}), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        await world.until_state("prod", "app", "Ready")
        wanted = {f"m{number}" for number in range(6)}
        for name in sorted(wanted):
            await world.client.create(config_map(name, {"a": "b"}))
        await world.until_notes(tmp_path / "notes", wanted)
        assert len(notes(tmp_path)) == len(wanted)


async def test_a_failure_lasts_until_its_own_lane_succeeds(tmp_path: Path) -> None:
    """A hook fails in one lane. The success of another hook in another lane does not clear this failure."""
    hooks = {
        "bad.sh": noting(tmp_path, WATCHING % "one", "bad"),
        "good.sh": noting(tmp_path, WATCHING % "two", "good"),
    }
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", hooks), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        await world.until_state("prod", "app", "Ready")
        (tmp_path / "fail-bad").touch()
        await world.client.create(config_map("m1", {"a": "b"}))
        degraded = await world.until_state("prod", "app", "Degraded")
        assert "hooks/bad.sh" in find_str(degraded, "status", "summary", "message")
        await world.client.create(config_map("m2", {"a": "b"}))
        await world.until_notes(tmp_path / "notes", {"good", "bad"})
        status = world.runtime.status("prod.app")
        assert status is not None
        assert world.runtime.instances["prod.app"].hooks.failing.keys() == {("hooks/bad.sh", "hooks/one")}


@pytest.mark.slow
async def test_a_busy_hook_does_not_block_the_apply_of_its_package(tmp_path: Path) -> None:
    """Each run of the hook requests another reconciliation, but does not interrupt the current one."""
    busy = bash(
        "configVersion: v1\nkubernetes: [{kind: ConfigMap, labelSelector: {matchLabels: {a: b}}, queue: busy}]",
        'seen=$(jq .hooked.seen "$VALUES_PATH"); '
        'echo "{\\"op\\":\\"add\\",\\"path\\":\\"/hooked/seen\\",\\"value\\":$(( (seen + 1) % 5 ))}" >"$VALUES_JSON_PATCH_PATH"\n'
        'echo "{operation: MergePatch, apiVersion: v1, kind: ConfigMap, namespace: prod, name: loop, '
        'mergePatch: {data: {seen: \\"$seen\\"}}}" >"$KUBERNETES_PATCH_PATH"',
    )
    slow = noting(tmp_path, "{configVersion: v1, beforeHelm: 1}", "before")
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.client.create(config_map("loop", {"a": "b"}))
        await world.push_folder(hooked(tmp_path / "hooked", {"busy.sh": busy, "slow.sh": slow}), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        await world.until("prod", "app", lambda obj: find_str(obj, "status", "currentVersion", "version") == "1.0.0")
        await world.client.delete(ObjectKey(CONFIG_MAP, "prod", "loop"))


async def test_an_allowed_failure_of_a_hook_is_logged_masked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="wharfinger")
    config = (
        "configVersion: v1\nkubernetes: [{kind: ConfigMap, labelSelector: {matchLabels: {a: b}}, allowFailure: true}]\n"
    )
    hook = bash(config, "echo cannot log in with hunter2-secret >&2; echo hunter2-secret; exit 1")
    folder = hooked(tmp_path / "hooked", {"a.sh": hook})
    schema = folder / "openapi" / "settings.yaml"
    schema.write_text("type: object\nproperties: {token: {type: string, writeOnly: true}}\n")
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(folder, "hooked", "1.0.0")
        token: JsonObject = {"token": "hunter2-secret"}
        await world.create("prod", "app", package="hooked", settings=token)
        await world.until_state("prod", "app", "Ready")
        assert "its binding allows failures" in caplog.text
        assert "cannot log in with" in caplog.text
        assert "hunter2-secret" not in caplog.text


async def test_an_allowed_failure_of_an_event_is_not_in_the_status(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Check that only the log mentions the failure, because the binding allows failures."""
    config = (WATCHING % "main").replace("queue: main", "executeHookOnSynchronization: false, allowFailure: true")
    hook = bash(config, f'echo ran >>"{tmp_path}/notes"; exit 1')
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", {"a.sh": hook}), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        await world.until_state("prod", "app", "Ready")
        await world.client.create(config_map("m1", {"a": "b"}))
        await world.until_notes(tmp_path / "notes", {"ran"})
        await world.runtime.queues.wait_idle("prod.app")
    assert "its binding allows failures" in caplog.text
    assert "EventHookFailed" not in caplog.text


async def test_an_unexpected_exception_is_retried_and_reported() -> None:
    notes_, one = Notes(), instance()
    put(one, desired={"settings": ResolvedSettings({"p": "hunter22"}, ("hunter22",), frozenset({("p",)}))})
    hook = a_hook(WATCHING % "main")
    hooks = package_hooks(hook)
    inbox = Inbox(hook, "main")
    inbox.add(Occurrence(hook.config.kubernetes[0], None))  # no monitor would send such an event
    with pytest.raises(TaskFailed) as caught:
        await EventHookTask(hook, inbox, hooks, one, NO_TOOLS, notes_, WorkScope("hooks")).execute()
    assert not caught.value.permanent
    assert notes_.said[-1] == ("event hook hooks/a.sh in hooks/main", None)
    assert "Internal" in notes_.messages[-1]
    assert len(inbox.waiting) == 1


async def test_a_hook_without_events_is_not_run() -> None:
    notes_, hook = Notes(), a_hook(WATCHING % "main")
    task = EventHookTask(
        hook, Inbox(hook, "main"), package_hooks(hook), instance(), NO_TOOLS, notes_, WorkScope("hooks")
    )
    await task.execute()
    assert notes_.said == []


def throttled(interval: str) -> Hook:
    return a_hook(f"settings: {{executionMinInterval: {interval}, executionBurst: 1}}\n" + WATCHING % "main")


async def begun(hook: Hook, one: Instance, queue: str = "main") -> float:
    """Return the time at which the hook is run for a waiting event. The run fails immediately."""
    inbox = Inbox(hook, queue)
    inbox.add(Occurrence(hook.config.kubernetes[0], None))
    with pytest.raises(TaskFailed):
        await EventHookTask(hook, inbox, package_hooks(hook), one, NO_TOOLS, Notes(), WorkScope("hooks")).execute()
    return trio.current_time()


async def test_the_rate_of_runs_is_limited_by_the_hook(autojump_clock: trio.testing.MockClock) -> None:
    hook, one, start = throttled("1h"), instance(), trio.current_time()
    assert [await begun(hook, one) - start for _ in range(3)] == [0, 3600, 7200]


async def test_the_rate_limit_covers_all_queues_of_a_hook(autojump_clock: trio.testing.MockClock) -> None:
    hook, one, start = throttled("1h"), instance(), trio.current_time()
    times: list[float] = []

    async def note(queue: str) -> None:
        times.append(await begun(hook, one, queue) - start)

    async with trio.open_nursery() as nursery:
        for queue in ("one", "two", "three"):
            nursery.start_soon(note, queue)
    assert times == [0, 3600, 7200]


async def test_empty_and_interrupted_runs_do_not_count_for_the_rate(
    autojump_clock: trio.testing.MockClock,
) -> None:
    hook, one, start = throttled("1h"), instance(), trio.current_time()
    idle = EventHookTask(hook, Inbox(hook, "main"), package_hooks(hook), one, NO_TOOLS, Notes(), WorkScope("hooks"))
    await idle.execute()
    assert await begun(hook, one) == start
    with trio.move_on_after(60):
        await begun(hook, one)
    assert await begun(hook, one) - start == 3600


async def test_a_new_version_of_a_hook_has_its_own_rate(autojump_clock: trio.testing.MockClock) -> None:
    one = instance()
    await begun(throttled("1h"), one)
    new = throttled("1s")
    first = await begun(new, one)
    assert await begun(new, one) - first == 1


def test_a_failed_event_is_reported_until_its_scope_is_cancelled() -> None:
    notes_ = Notes()
    hook, error, scope = a_hook(WATCHING % "main"), HookRunError("hooks/a.sh", "x"), WorkScope("hooks")
    told = failed_event(instance(), notes_, hook, "hooks/main", error, scope)
    assert (str(told), told.permanent) == ("hooks/a.sh: x", False)
    assert notes_.messages == ["hooks/a.sh: x"]
    scope.cancel("they are put to rest")
    assert str(failed_event(instance(), notes_, hook, "hooks/main", error, scope)) == "hooks/a.sh: x"
    assert notes_.messages == ["hooks/a.sh: x"]
