"""``ClusterState``, through which controllers read and write objects."""

from datetime import timedelta

import pytest
import trio
from trio.testing import MockClock

from tests.control_plane.support.controller_harness import config_map, listed, open_plane
from wharfinger.control_plane.controllers.framework.objects import CONFIG_MAPS, PODS
from wharfinger.control_plane.controllers.framework.state import EVENT_LIFE, ClusterState
from wharfinger.control_plane.storage.interface import Key
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import find


async def test_the_index_of_dependents_follows_changes(autojump_clock: MockClock) -> None:
    async with open_plane(controllers=False) as (client, backend):
        owner = await client.create(config_map("owner"))
        await client.create(config_map("before", owner))
        state = ClusterState(backend)
        state.open(lambda _change: None)
        await client.create(config_map("after", owner))
        uid = str(find(owner, "metadata", "uid"))
        assert [key.name for key, _ in state.dependents(uid)] == ["after", "before"]
        found = state.get(Key(CONFIG_MAPS, "default", "after"))
        assert found is not None
        state.delete(Key(CONFIG_MAPS, "default", "after"), found)
        state.delete(Key(CONFIG_MAPS, "default", "after"), found)
        assert [key.name for key, _ in state.dependents(uid)] == ["before"]
        assert list(state.owned(CONFIG_MAPS, owner)) == []
        assert state.owner_key("x", {"apiVersion": "v1", "kind": "Node", "name": "n"}) is not None
        assert state.owner_key("x", {"apiVersion": "example.com/v1", "kind": "What", "name": "n"}) is None


async def test_unchanged_and_missing_objects_are_not_written(autojump_clock: MockClock) -> None:
    async with open_plane(controllers=False) as (_, backend):
        state = ClusterState(backend)
        made = state.create(config_map("a"))
        assert made is not None
        assert state.create(config_map("a")) is None
        key = Key(CONFIG_MAPS, "default", "a")
        revision = backend.storage.revision
        assert state.update(key, made) == made
        assert backend.storage.revision == revision
        assert find(made, "metadata", "name") == "a"
        gone = Key(CONFIG_MAPS, "default", "gone")
        assert state.update(gone, made) == made
        state.end_pod(Key(PODS, "default", "gone"), made)
        with pytest.raises(StatusError):
            state.create({"apiVersion": "example.com/v1", "kind": "What", "metadata": {"name": "a"}})


async def test_repeated_events_are_counted_and_old_events_are_deleted(autojump_clock: MockClock) -> None:
    async with open_plane(controllers=False) as (client, backend):
        state = ClusterState(backend)
        made = state.create(config_map("a"))
        assert made is not None
        for _ in range(3):
            state.record_event(made, "a-controller", "Happened", "it happened")
        (event,) = await listed(client, "v1", "Event")
        assert (event["count"], event["type"], find(event, "source", "component")) == (3, "Normal", "a-controller")
        await trio.sleep((EVENT_LIFE + timedelta(seconds=1)).total_seconds())
        state.record_event(made, "a-controller", "Other", "it happened", warning=True)
        (event,) = await listed(client, "v1", "Event")
        assert (event["reason"], event["type"]) == ("Other", "Warning")
