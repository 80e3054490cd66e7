"""Test cases and known weaknesses of the scheduler of the public program that spec/runtime describes. Cases that other tests of
the scheduler cover are left out.
"""

from pathlib import Path

import pytest

from tests.runtime.support.nodes import node
from tests.runtime.support.world import open_world
from wharfinger.formats.json.value import find_str
from wharfinger.runtime.scheduler.events import Completed, NodeAdded, Paused, Rescheduled, Resumed, Schedule
from wharfinger.runtime.scheduler.scheduler import Scheduler

pytestmark = pytest.mark.unmeasured

MORE_THAN_ANY_CHANNEL = 2000


def scheduled(effects: tuple[object, ...]) -> list[str]:
    """Return the names of the packages whose runs these effects request."""
    return [effect.name for effect in effects if isinstance(effect, Schedule)]


def test_any_number_of_runs_can_be_ordered_at_once() -> None:
    """The scheduler in spec/runtime sends the ordered runs to a bounded channel while it holds a lock, so many runs could block
    it. Here, `apply` returns the runs.
    """
    scheduler = Scheduler()
    names = [f"p{number:04}" for number in range(MORE_THAN_ANY_CHANNEL)]
    for name in names:
        assert scheduler.apply(NodeAdded(node(name))) == ()
    first = scheduler.apply(Resumed())
    assert scheduled(first) == names
    runs = {effect.name: effect.run for effect in first if isinstance(effect, Schedule)}
    for name in names:
        scheduler.apply(Completed(name, runs[name]))
    assert {each.state for each in scheduler.nodes()} == {"active"}


def test_the_end_of_an_older_run_does_not_complete_a_newer_one() -> None:
    """In the peer that spec/runtime describes, the end of an older run also completes a newer run of the same node. Here it
    completes nothing, and dependents wait for the end of the newer run.
    """
    scheduler = Scheduler()
    scheduler.apply(Resumed())
    (first,) = [one for one in scheduler.apply(NodeAdded(node("db"))) if isinstance(one, Schedule)]
    scheduler.apply(NodeAdded(node("app", "db")))
    (second,) = [one for one in scheduler.apply(Rescheduled("db", "SettingsChanged")) if isinstance(one, Schedule)]
    assert second.run != first.run
    assert scheduler.apply(Completed("db", first.run)) == ()
    assert [each.state for each in scheduler.nodes() if each.name == "db"] == ["scheduled"]
    assert scheduled(scheduler.apply(Completed("db", second.run))) == ["app"]


@pytest.mark.slow
async def test_all_runs_ordered_at_once_are_performed(tmp_path: Path) -> None:
    """At the end of a pause, the scheduler requests the runs of twelve packages together. All twelve packages become Ready."""
    names = [f"app{number}" for number in range(12)]
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        world.runtime.packages.send(Paused())
        for name in names:
            await world.create("prod", name)
        for name in names:
            await world.until("prod", name, lambda obj: find_str(obj, "status", "release", "namespace") == "prod")
            await world.runtime.queues.wait_idle(f"prod.{name}")
        world.runtime.packages.send(Resumed())
        for name in names:
            await world.until_state("prod", name, "Ready")
