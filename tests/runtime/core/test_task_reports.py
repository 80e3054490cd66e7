"""What follows from what tasks say."""

from pathlib import Path

import pytest

from tests.runtime.support.world import World, open_world
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
        one, reports = await ready(world), world.runtime.reports
        reports.event_hook_done(one, "hooks/b.sh", "hooks/main", "")
        assert summarize(one.status)[0] == "Ready"
        reports.event_hook_done(one, "hooks/b.sh", "hooks/main", "b is broken")
        reports.event_hook_done(one, "hooks/a.sh", "hooks/main", "a is broken")
        assert summarize(one.status)[:2] == ("Degraded", "a is broken")
        reports.event_hook_done(one, "hooks/a.sh", "hooks/slow", "")
        assert summarize(one.status)[0] == "Degraded"
        reports.event_hook_done(one, "hooks/a.sh", "hooks/main", "")
        assert summarize(one.status)[:2] == ("Degraded", "b is broken")
        reports.event_hook_done(one, "hooks/b.sh", "hooks/main", "")
        assert summarize(one.status)[0] == "Ready"


async def test_a_stage_that_ran_through_has_no_failed_hook_but_those_in_lanes(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        one, reports = await ready(world), world.runtime.reports
        reports.failed(one, Stage.HOOKS, Failure(Reason.PACKAGE_HOOK_FAILED, "a is broken", permanent=False))
        reports.succeeded(one, Stage.APPLIED)
        assert one.status.stages[Stage.HOOKS].truth is Truth.TRUE
        reports.event_hook_done(one, "hooks/a.sh", "hooks/main", "a is broken")
        reports.succeeded(one, Stage.APPLIED)
        reports.succeeded(one, Stage.HOOKS)
        assert one.status.stages[Stage.HOOKS].truth is Truth.FALSE


async def test_what_hooks_did_is_counted(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        one, reports = await ready(world), world.runtime.reports
        reports.hook_ran(one, "hooks/a.sh", "exit status 1")
        assert (one.history["hooks/a.sh"].runs, one.history["hooks/a.sh"].last_error) == (1, "exit status 1")
        reports.hook_ran(one, "hooks/a.sh", "")
        assert (one.history["hooks/a.sh"].runs, one.history["hooks/a.sh"].last_error) == (2, "")


async def test_changed_values_ask_for_a_run_now_or_after_the_one_that_runs(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        one, runtime = await ready(world), world.runtime
        run = one.run
        runtime.reports.values_changed(one, "hooks/a.sh")
        assert one.run == run + 1
        assert runtime.lifecycle.is_applying("prod.shop")
        runtime.reports.values_changed(one, "hooks/a.sh")
        assert one.run == run + 1
        assert one.dirty
        await runtime.queues.wait_idle("prod.shop")
        assert one.run in (run + 1, run + 2)  # the run that was on its way may have seen the change
        assert not one.dirty


async def test_a_release_is_placed_before_anything_is_written(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        one = await ready(world)
        assert one.status.namespace == "prod"
        world.runtime.reports.uninstalled(one)
        assert (one.status.namespace, one.status.version) == ("", "")
