"""The diff of a package (`wharfinger diff`): the changes that the next apply would make, or the reason why there is no diff."""

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from tests.runtime.support.world import open_world
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.inspection.difference import NO_CHART, NOT_LOADED, difference_of
from wharfinger.runtime.package_details import DifferenceSnapshot
from wharfinger.runtime.resources.resources import CONFIG_MAP


@pytest.mark.slow
async def test_the_diff_shows_the_changes_of_the_next_apply(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.push("broken", "1.0.0", {"templates/fail.yaml": '{{ fail "on purpose" }}'})
        await world.repository()
        await world.create("prod", "shop", settings={"text": "one"})
        await world.create("prod", "broken", package="broken")
        await world.create("prod", "absent", package="absent")
        for name, state in (("shop", "Ready"), ("broken", "Failed"), ("absent", "Failed")):
            await world.until_state("prod", name, state)

        async def difference(name: str) -> DifferenceSnapshot:
            instance = world.runtime.instances[f"prod.{name}"]
            return await difference_of(instance, world.runtime.tools, world.runtime.packages)

        applied = world.runtime.instances["prod.shop"].applied
        assert await difference("shop") == DifferenceSnapshot("prod.shop", unchanged=1)
        assert world.runtime.instances["prod.shop"].applied is applied  # a prediction does not store anything
        assert "on purpose" in (await difference("broken")).problem
        assert (await difference("absent")).problem == NOT_LOADED
        await world.change("prod", "shop", {"suspend": True})
        await world.until_state("prod", "shop", "Suspended")
        (key,) = world.runtime.instances["prod.shop"].applied.objects
        await world.client.merge_patch(ObjectKey(CONFIG_MAP, "prod", key.name), {"data": {"text": "two"}})
        found = await difference("shop")
        (change,) = found.changes
        assert (change.object, change.change, change.by) == (f"ConfigMap prod/{key.name}", "change", "dry run")
        assert [(each.pointer, each.before, each.after) for each in change.fields] == [("/data/text", '"two"', '"one"')]
        (note,) = found.notes
        assert note.endswith("suspended: nothing is applied before it is resumed with `wharfinger resume prod.shop`")
        await world.client.delete(ObjectKey(CONFIG_MAP, "prod", key.name))
        (change,) = (await difference("shop")).changes
        assert change.change == "create"
        instance = world.runtime.instances["prod.shop"]
        files = structs.replace(instance.files, definition=replace(instance.loaded(), chart=None))
        instance.state = structs.replace(instance.state, files=files)
        assert (await difference("shop")).problem == NO_CHART
