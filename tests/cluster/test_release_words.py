"""The progress that an operation reports: the objects of the release that are not finished yet, and nothing else."""

import httpx
from trio.testing import MockClock

from tests.cluster.support.release_bench import bench
from tests.cluster.support.release_requests import config_map, deployment, request
from wharfinger.cluster.watch.object_waits import Laggards


async def test_progress_lists_only_unfinished_objects_of_the_release(autojump_clock: MockClock) -> None:
    """The progress does not list the release's records, its Lease, objects that are only read, or finished objects."""
    told: list[list[str]] = []

    def tell(laggards: Laggards) -> None:
        told.append([f"{key.resource.kind} {key.name}" for key in laggards])

    wanted = {"ConfigMap a", "ConfigMap b", "Deployment web"}
    async with bench() as at:
        left = {"a": 2, "b": 1}

        def fault(asked: httpx.Request) -> Exception | None:
            name = asked.url.path.rpartition("/")[2]
            if asked.method != "PATCH" or not left.get(name):
                return None
            left[name] -= 1
            return httpx.ConnectError("refused")

        at.transport.fault = fault
        await at.engine.upgrade(request(config_map("a"), config_map("b"), deployment("web")), progress=tell)
    assert {name for names in told for name in names} == wanted
    assert all(len(names) == len(set(names)) for names in told)
    assert any(names == ["ConfigMap a"] for names in told), "b was applied before and is not listed again"


async def test_an_unchanged_upgrade_reports_no_progress(autojump_clock: MockClock) -> None:
    told: list[Laggards] = []
    async with bench() as at:
        await at.engine.upgrade(request(config_map("a")))
        await at.engine.upgrade(request(config_map("a")), progress=told.append)
    assert not any(told)
