"""The metrics of the release engine: its renders and applies are counted."""

from pathlib import Path

from tests.runtime.support.world import open_world
from wharfinger.runtime.inspection.release_metrics import RELEASE_METRICS, release_families


async def test_renders_and_applies_are_counted(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
        found = {described.name: dict(rows) for described, rows in release_families(world.runtime.tools)}
    assert found.keys() == {described.name for described in RELEASE_METRICS}
    assert found["wharfinger_renders_total"] == {("memory",): 0, ("disk",): 0, ("helm",): 1, ("uncached",): 0}
    objects = found["wharfinger_release_objects"]
    assert objects[("done",)] > 0
    assert (objects[("pending",)], objects[("refreshing",)], objects[("failing",)]) == (0, 0, 0)
    assert found["wharfinger_apply_operations_total"][("apply",)] == objects[("done",)]
    assert found["wharfinger_apply_errors_total"][("apply",)] == 0
    assert found["wharfinger_drifted_objects"] == {(): 0}
    assert found["wharfinger_live_kinds"][()] > 0
