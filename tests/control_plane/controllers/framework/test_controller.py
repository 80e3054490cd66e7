"""The task that runs all controllers. An error affects only one object, and no work is lost."""

import pytest
import trio
from trio.testing import MockClock

from tests.control_plane.support.controller_harness import config_map, open_plane
from wharfinger.control_plane.controllers.framework.controller import Ages, Controller, Runner, itself
from wharfinger.control_plane.controllers.framework.objects import CONFIG_MAPS
from wharfinger.control_plane.controllers.framework.state import ClusterState
from wharfinger.control_plane.storage.interface import Key, StorageError
from wharfinger.control_plane.wire.status import StatusError


async def test_a_failed_key_is_retried_and_does_not_stop_other_keys(autojump_clock: MockClock) -> None:
    seen: list[str] = []

    def reconcile(key: Key) -> float | None:
        seen.append(key.name)
        if key.name == "bad" and seen.count("bad") < 3:
            raise StatusError(409, "Conflict", "not now")
        return 100.0 if seen.count("good") == 1 and key.name == "good" else None

    async with open_plane(controllers=False) as (client, backend), trio.open_nursery() as nursery:
        runner = Runner([Controller("x", reconcile, {CONFIG_MAPS: itself})], backend.commit)
        state = ClusterState(backend)
        state.open(runner.notice)
        nursery.start_soon(runner.run)
        await client.create(config_map("bad"))
        await client.create(config_map("good"))
        await trio.sleep(200)
        assert (seen.count("bad"), seen.count("good")) == (3, 2)
        assert runner.statistics() == {"due": 0, "waiting": 0, "failing": 0}
        state.close()
        await client.create(config_map("unseen"))
        await trio.sleep(1)
        assert "unseen" not in seen
        nursery.cancel_scope.cancel()


async def test_a_failed_commit_is_logged(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    def commit() -> None:
        raise StorageError("the disk is full")

    async with open_plane(controllers=False) as (client, backend), trio.open_nursery() as nursery:
        runner = Runner([Controller("x", lambda _key: None, always=itself)], commit)
        ClusterState(backend).open(runner.notice)
        nursery.start_soon(runner.run)
        await client.create(config_map("a"))
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert "the disk is full" in caplog.text


async def test_ages_count_from_the_first_observation(autojump_clock: MockClock) -> None:
    ages, key = Ages(), Key(CONFIG_MAPS, "default", "a")
    assert ages.age(key, "one") == 0
    await trio.sleep(5)
    assert (ages.age(key, "one"), ages.age(key, "two")) == (5, 0)
    ages.forget(key)
    assert ages.age(key, "two") == 0
