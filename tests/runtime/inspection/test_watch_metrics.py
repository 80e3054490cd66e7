"""The metrics of watches (when each of them last received something), and of the limit on requests."""

from contextlib import ExitStack

from trio.testing import MockClock

from tests.cluster.support.clusters import memory_cluster
from wharfinger.cluster.traffic.heartbeats import Followed
from wharfinger.cluster.watch.informer import open_informer, wait_listed
from wharfinger.kube.resource import ResourceType
from wharfinger.runtime.inspection import watch_metrics
from wharfinger.runtime.inspection.watch_metrics import (
    MAX_WATCHES,
    OTHERS,
    WATCH_METRICS,
    stale_watches,
    watch_families,
)

CONFIG_MAP = ResourceType("", "v1", "ConfigMap", "configmaps", namespaced=True)
NOW = 1_000_000.0


async def test_each_watch_has_the_time_of_its_last_event(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, open_informer(client, CONFIG_MAP, "default", "a=b") as informer:
        await wait_listed(informer)
        found = {described.name: dict(rows) for described, rows in watch_families([("main", client)], NOW)}
        assert found.keys() == {described.name for described in WATCH_METRICS}
        heard = found["wharfinger_watch_last_heard_timestamp_seconds"]
        assert list(heard) == [("ConfigMap", "default", "a=b", "")]
        assert NOW - 60 < heard[("ConfigMap", "default", "a=b", "")] <= NOW
        assert found["wharfinger_watch_stale"] == {(): 0}
        assert found["wharfinger_api_requests_limit"] == {("main",): 32}
        assert found["wharfinger_api_requests_refused_total"] == {("main",): 0}
        assert stale_watches([("main", client)]) == ()


async def test_hanging_watches_are_shown_and_rows_are_bounded(autojump_clock: MockClock) -> None:
    clock = [0.0]
    async with memory_cluster() as client:
        client.heartbeats._clock = lambda: clock[0]
        with ExitStack() as stack:
            for number in range(MAX_WATCHES + 3):
                stack.enter_context(client.heartbeats.follow(Followed("Pod", f"n{number}"))).received()
            beat = stack.enter_context(client.heartbeats.follow(Followed("Pod", "z")))
            beat.begin("watching", 10.0)
            clock[0] = 71.0
            for one in client.heartbeats._beating[:-1]:
                one.received()
            assert stale_watches([("main", client)]) == (
                "the watch of Pod in z hangs: no sign of life for 71 s while watching, the limit is 70 s",
            )
            found = {described: dict(rows) for described, rows in watch_families([("main", client)], NOW)}
        assert found[watch_metrics.STALE] == {(): 1}
        heard = found[watch_metrics.HEARD]
        assert len(heard) == MAX_WATCHES + 1
        assert heard[OTHERS] == 0
