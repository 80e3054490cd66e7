"""Shared watches on a control plane in memory: how they are shared, and when they end."""

from contextvars import ContextVar

import httpx
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.cluster.support.client_contract import CONFIG_MAP, NAMESPACE, config_map, key
from tests.cluster.support.clusters import memory_cluster
from tests.cluster.support.faulty_transport import Answer, Hang, Reply
from tests.cluster.support.watch_script import Told, WatchScript, obj, page, watch, watches_of
from wharfinger.cluster.api.raw_object import RawChange
from wharfinger.cluster.watch.shared_watches import open_shared_watches


async def test_all_subscribers_share_one_watch(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, open_shared_watches(client) as watches:
        await client.create(config_map("a"))
        first, second = Told(), Told()
        with (
            watches.subscribe(CONFIG_MAP, "default", "", "", first) as one,
            watches.subscribe(CONFIG_MAP, "default", "", "", second) as two,
        ):
            assert not one.listed
            await one.wait_first_list()
            assert (one.listed, two.listed) == (True, True)
            assert first.take() == second.take() == ["ADDED a"]
            await client.create(config_map("b"))
            await client.delete(key("a"))
            await wait_all_tasks_blocked()
            assert first.take() == second.take() == ["ADDED b", "DELETED a"]
            (statistics,) = watches.statistics()
            assert (statistics.subscribers, statistics.objects, statistics.lists, statistics.watches) == (2, 1, 1, 1)
            assert client.statistics()["watches"] == 1
        assert watches.statistics() == ()
        await wait_all_tasks_blocked()
        assert client.statistics()["watches"] == 0


async def test_a_late_subscriber_receives_everything_and_others_only_differences(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, open_shared_watches(client) as watches:
        await client.create(config_map("a"))
        first, second, third = Told(), Told(), Told()
        with watches.subscribe(CONFIG_MAP, "default", "", "", first) as one:
            await one.wait_first_list()
            await wait_all_tasks_blocked()
            first.take()
            with (
                watches.subscribe(CONFIG_MAP, "default", "", "", second) as two,
                watches.subscribe(CONFIG_MAP, "default", "", "", third),
            ):
                await two.wait_first_list()
                await wait_all_tasks_blocked()
                assert (first.take(), second.take(), third.take()) == ([], ["ADDED a"], ["ADDED a"])
                (statistics,) = watches.statistics()
                assert (statistics.lists, statistics.watches) == (2, 2)
            await client.create(config_map("b"))
            await trio.sleep(1)
            assert (first.take(), second.take()) == (["ADDED b"], [])


async def test_different_selectors_have_different_watches(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, open_shared_watches(client) as watches:
        told = {name: Told() for name in ("all", "labels", "fields", "everywhere", "namespaces")}
        with (
            watches.subscribe(CONFIG_MAP, "default", "", "", told["all"]),
            watches.subscribe(CONFIG_MAP, "default", "app=x", "", told["labels"]),
            watches.subscribe(CONFIG_MAP, "default", "", "metadata.name=b", told["fields"]),
            watches.subscribe(CONFIG_MAP, "", "app=x", "", told["everywhere"]),
            watches.subscribe(NAMESPACE, "ignored", "", "metadata.name=default", told["namespaces"]),
            watches.subscribe(NAMESPACE, "", "", "metadata.name=default", Told()),
        ):
            await wait_all_tasks_blocked()
            assert told["namespaces"].take() == ["ADDED default"]
            assert [one.subscribers for one in watches.statistics()] == [1, 1, 1, 1, 2]
            await client.create(config_map("a", labels={"app": "x"}))
            await client.create(config_map("b"))
            await client.create(config_map("c", "kube-public", labels={"app": "x"}))
            await wait_all_tasks_blocked()
        assert {name: one.take() for name, one in told.items()} == {
            "all": ["ADDED a", "ADDED b"],
            "labels": ["ADDED a"],
            "fields": ["ADDED b"],
            "everywhere": ["ADDED a", "ADDED c"],
            "namespaces": [],
        }


async def test_a_subscriber_after_the_last_one_left_starts_a_new_watch(autojump_clock: MockClock) -> None:
    script = WatchScript([page(obj("a", 1), version=5), page(obj("a", 1), version=6)])
    async with watches_of(script) as (watches, _):
        for version in (5, 6):
            told = Told()
            with watches.subscribe(CONFIG_MAP, "default", "", "", told) as subscription:
                await subscription.wait_first_list()
                await wait_all_tasks_blocked()
            assert told.take() == ["ADDED a"]
            assert script.take() == ["list limit", f"watch {version}"]


async def test_a_subscriber_may_leave_and_another_join_at_once(autojump_clock: MockClock) -> None:
    script = WatchScript([Reply(200, [Hang()]), page(obj("a", 1), version=6)])
    async with watches_of(script) as (watches, _):
        with watches.subscribe(CONFIG_MAP, "default", "", "", Told()):
            await wait_all_tasks_blocked()
        told = Told()
        with watches.subscribe(CONFIG_MAP, "default", "", "", told) as subscription:
            await subscription.wait_first_list()
            assert (told.take(), len(watches.statistics())) == (["ADDED a"], 1)


async def test_leaving_the_block_ends_requests_in_progress(autojump_clock: MockClock) -> None:
    script = WatchScript([Reply(200, [Hang()])])
    async with watches_of(script) as (watches, transport):
        subscription = watches.subscribe(CONFIG_MAP, "default", "", "", Told())
        with subscription:
            await wait_all_tasks_blocked()
            assert transport.open_streams == 1
    script = WatchScript([Reply(200, [Hang()])])
    with trio.move_on_after(5):
        async with watches_of(script) as (watches, _):
            with watches.subscribe(CONFIG_MAP, "default", "", "", Told()) as one:
                await one.wait_first_list()


async def test_an_exception_of_a_subscriber_ends_the_block_after_others_were_notified(
    autojump_clock: MockClock,
) -> None:
    script = WatchScript([page(version=5)], [watch(("ADDED", obj("a", 6)), then=Hang())])
    bug, told = KeyError("a bug"), Told()

    def broken(_change: RawChange) -> None:
        raise bug

    with pytest.RaisesGroup(pytest.RaisesGroup(pytest.RaisesExc(KeyError, match="a bug"))):
        async with watches_of(script) as (watches, _):
            with (
                watches.subscribe(CONFIG_MAP, "default", "", "", broken),
                watches.subscribe(CONFIG_MAP, "default", "", "", told),
            ):
                await trio.sleep_forever()
    assert told.take() == ["ADDED a"]


async def test_a_stream_runs_outside_of_any_package_context(autojump_clock: MockClock) -> None:
    package = ContextVar("package", default="")
    seen: list[str] = []

    class Noting(WatchScript):
        def __call__(self, request: httpx.Request) -> Answer:
            seen.append(package.get())
            return super().__call__(request)

    async with watches_of(Noting([page(version=5)])) as (watches, _):
        package.set("shop")
        with watches.subscribe(CONFIG_MAP, "default", "", "", Told()):
            await wait_all_tasks_blocked()
    assert seen == ["", ""]


async def test_a_relist_period_is_passed_to_the_stream(autojump_clock: MockClock) -> None:
    script = WatchScript([page(version=5), page(version=6)])
    async with watches_of(script) as (watches, _):
        with watches.subscribe(CONFIG_MAP, "default", "", "", Told(), relist_s=30):
            await trio.sleep(45)
    assert script.asked == ["list limit", "watch 5", "list limit", "watch 6"]
