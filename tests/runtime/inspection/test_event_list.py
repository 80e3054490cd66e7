from pathlib import Path

from tests.runtime.support.world import open_world
from wharfinger.formats.json.value import JsonObject
from wharfinger.runtime.inspection.event_list import daemon_events, package_events
from wharfinger.runtime.resources.identity import AppId, package_id


def event(name: str, subject: str, second: int, **more: object) -> JsonObject:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "prod"},
        "eventTime": f"2026-05-17T12:30:{second:02}.000000Z",
        "reportingController": "wharfinger",
        "reportingInstance": "x",
        "action": "Install",
        "reason": "Installed",
        "regarding": {
            "apiVersion": "wharfinger.dev/v1alpha1",
            "kind": "Application",
            "name": subject,
            "namespace": "prod",
        },
        "note": f"note\nof {name}",
        "type": "Normal",
        **more,  # type: ignore[dict-item]
    }


async def test_events_of_a_package_and_of_the_daemon_are_listed(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        series: JsonObject = {"count": 3, "lastObservedTime": "2026-05-17T12:31:00.000000Z"}
        await world.client.create(event("a", "shop", 5, series=series))
        await world.client.create(event("b", "shop", 2))
        await world.client.create(event("c", "other", 3))
        await world.client.create(event("d", "other", 4, reportingController="somebody"))
        identity = package_id("prod.shop")
        assert isinstance(identity, AppId)
        found = await package_events(world.client, identity)
        assert [(each.message, each.count) for each in found] == [("note of b", 1), ("note of a", 3)]
        assert found[1].subject == "Application prod/shop"
        assert found[1].last is not None
        assert found[1].last.second == 0
        assert found[1].first is not None
        assert found[1].first.second == 5
        assert found[1].by == "wharfinger"
        assert [each.message for each in await daemon_events(world.client)] == ["note of b", "note of c", "note of a"]
