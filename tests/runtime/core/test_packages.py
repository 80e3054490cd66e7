"""Events that tasks report: their effects on the status of a package, and on its next runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.runtime.support.notes import put
from tests.runtime.support.world import World, open_world
from wharfinger.runtime.package.events import (
    EventHookDone,
    HookDone,
    StageFailed,
    Succeeded,
    Uninstalled,
    ValuesChanged,
    Voted,
)
from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.status.failures import Failure
from wharfinger.runtime.status.package_status import Stage, Truth
from wharfinger.runtime.status.reasons import Reason
from wharfinger.runtime.status.summary import summarize

pytestmark = pytest.mark.unmeasured


async def ready(world: World) -> Instance:
    await world.push("web", "1.0.0")
    await world.repository()
    await world.create("prod", "shop")
    await world.until_state("prod", "shop", "Ready")
    return world.runtime.instances["prod.shop"]


async def test_failures_of_event_hooks_are_tracked_by_lane(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        one, packages = await ready(world), world.runtime.packages
        packages.emit(one, EventHookDone("hooks/b.sh", "hooks/main", ""))
        assert summarize(one.status)[0] == "Ready"
        packages.emit(one, EventHookDone("hooks/b.sh", "hooks/main", "b is broken"))
        packages.emit(one, EventHookDone("hooks/a.sh", "hooks/main", "a is broken"))
        assert summarize(one.status)[:2] == ("Degraded", "a is broken")
        packages.emit(one, EventHookDone("hooks/a.sh", "hooks/slow", ""))
        assert summarize(one.status)[0] == "Degraded"
        packages.emit(one, EventHookDone("hooks/a.sh", "hooks/main", ""))
        assert summarize(one.status)[:2] == ("Degraded", "b is broken")
        packages.emit(one, EventHookDone("hooks/b.sh", "hooks/main", ""))
        assert summarize(one.status)[0] == "Ready"


async def test_a_successful_stage_clears_failures_of_hooks_outside_of_lanes(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        one, packages = await ready(world), world.runtime.packages
        packages.emit(
            one, StageFailed(Stage.HOOKS, Failure(Reason.PACKAGE_HOOK_FAILED, "a is broken", permanent=False))
        )
        packages.emit(one, Succeeded(Stage.APPLIED))
        assert one.status.stages[Stage.HOOKS].truth is Truth.TRUE
        packages.emit(one, EventHookDone("hooks/a.sh", "hooks/main", "a is broken"))
        packages.emit(one, Succeeded(Stage.APPLIED))
        packages.emit(one, Succeeded(Stage.HOOKS))
        assert one.status.stages[Stage.HOOKS].truth is Truth.FALSE


async def test_runs_of_hooks_are_counted(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        one, packages = await ready(world), world.runtime.packages
        packages.emit(one, HookDone("hooks/a.sh", "exit status 1"))
        assert (one.hooks.history["hooks/a.sh"].runs, one.hooks.history["hooks/a.sh"].last_error) == (
            1,
            "exit status 1",
        )
        packages.emit(one, HookDone("hooks/a.sh", ""))
        assert (one.hooks.history["hooks/a.sh"].runs, one.hooks.history["hooks/a.sh"].last_error) == (2, "")


async def test_changed_values_order_a_run_now_or_after_the_current_one(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        one, runtime = await ready(world), world.runtime
        run = one.node.run
        runtime.packages.emit(one, ValuesChanged("hooks/a.sh"))
        assert one.node.run == run + 1
        assert runtime.lifecycle.is_applying("prod.shop")
        runtime.packages.emit(one, ValuesChanged("hooks/a.sh"))
        assert one.node.run == run + 1
        assert one.applied.dirty
        await runtime.queues.wait_idle("prod.shop")
        assert one.node.run in (run + 1, run + 2)  # the run under way may already have used the change
        assert not one.applied.dirty


async def test_the_namespace_of_a_release_is_recorded_before_it_is_written(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        one = await ready(world)
        assert one.status.namespace == "prod"
        world.runtime.packages.emit(one, Uninstalled())
        assert (one.status.namespace, one.status.version) == ("", "")


async def test_only_enabled_scripts_run_again_when_other_packages_are_loaded(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        one, runtime = await ready(world), world.runtime
        assert one.files.definition is not None

        def is_asked_again(other: str) -> bool:
            runtime.packages.unreported.unknown.add(other)
            runtime.packages.emit(one, Voted(enabled=None, reason="", failed=False))
            runtime.packages.unreported.unknown.clear()
            assert one.vote.cast is not None
            return one.vote.cast.provisional

        assert not is_asked_again("prod.other")
        put(one, files={"definition": replace(one.files.definition, enabled_script=True)})
        assert is_asked_again("prod.other")
        assert not is_asked_again("prod.shop")
