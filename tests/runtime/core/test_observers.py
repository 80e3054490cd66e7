"""Check that each state machine of the runtime has an observer, which sees the events of a real install."""

from pathlib import Path

from tests.runtime.support.world import open_world
from wharfinger.runtime.core.observers import UNOBSERVED, Observers


def test_observers_are_off_by_default() -> None:
    assert Observers(None, None, None, None) == UNOBSERVED


async def test_each_machine_is_observed(tmp_path: Path) -> None:
    seen: list[str] = []
    observers = Observers(
        lifecycle=lambda name, *_: seen.append(f"lifecycle {name}"),
        scheduler=lambda _before, event, *_: seen.append(f"scheduler {type(event).__name__}"),
        package=lambda _before, event, *_: seen.append(f"package {type(event).__name__}"),
        queue=lambda name, _number, _before, event, *_: seen.append(f"queue {name} {type(event).__name__}"),
    )
    async with open_world(tmp_path, observers=observers) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
    assert {"lifecycle prod.shop", "scheduler Resumed", "scheduler NodeAdded", "queue prod.shop Enqueued"} <= set(seen)
    findings_and_others = {"package DesiredAdopted", "package Downloaded", "package UpdateDone", "package RunDone"}
    assert findings_and_others <= set(seen)
