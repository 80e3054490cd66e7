"""What follows from what tasks say."""

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


async def test_event_hooks_fail_and_recover_lane_by_lane(tmp_path: Path) -> None:
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


async def test_a_stage_that_ran_through_has_no_failed_hook_but_those_in_lanes(tmp_path: Path) -> None:
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


async def test_what_hooks_did_is_counted(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        one, packages = await ready(world), world.runtime.packages
        packages.emit(one, HookDone("hooks/a.sh", "exit status 1"))
        assert (one.hooks.history["hooks/a.sh"].runs, one.hooks.history["hooks/a.sh"].last_error) == (
            1,
            "exit status 1",
        )
        packages.emit(one, HookDone("hooks/a.sh", ""))
        assert (one.hooks.history["hooks/a.sh"].runs, one.hooks.history["hooks/a.sh"].last_error) == (2, "")


async def test_changed_values_ask_for_a_run_now_or_after_the_one_that_runs(tmp_path: Path) -> None:
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
        assert one.node.run in (run + 1, run + 2)  # the run that was on its way may have seen the change
        assert not one.applied.dirty


async def test_a_release_is_placed_before_anything_is_written(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        one = await ready(world)
        assert one.status.namespace == "prod"
        world.runtime.packages.emit(one, Uninstalled())
        assert (one.status.namespace, one.status.version) == ("", "")


async def test_only_packages_with_a_script_are_asked_again_when_others_are_loaded(tmp_path: Path) -> None:
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
