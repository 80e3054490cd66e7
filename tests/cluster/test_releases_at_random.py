"""Releases with random faults: upgrades fail, are superseded or are interrupted. The next successful upgrade repairs
everything.
"""

from random import Random

import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.cluster.support.client_contract import key
from tests.cluster.support.release_bench import Bench, bench
from tests.cluster.support.release_requests import config_map, deployment, request
from tests.scale import scaled
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.releases.request import ReleaseRequest
from wharfinger.formats.json.value import JsonObject, find_str

pytestmark = pytest.mark.unmeasured

NAMES = "abcdef"
STEPS = 12


def some_request(random: Random, name: str, version: int) -> tuple[ReleaseRequest, dict[str, str]]:
    """Return a release with a random selection of objects, and the content of each object."""
    wanted = {f"{name}-{one}": str(version) for one in NAMES if random.random() < 0.5}
    wanted[f"{name}-always"] = "0"
    return request(*(config_map(one, v=v) for one, v in wanted.items()), name=name), wanted


class Weather:
    """A source of random faults. ``bad`` percent of the requests, except watches, are not sent, and get an error instead."""

    def __init__(self, at: Bench, random: Random) -> None:
        self.bad = 0
        self._random = random
        at.transport.fault = self._fault

    def _fault(self, asked: httpx.Request) -> Exception | httpx.Response | None:
        if self._random.randrange(100) >= self.bad or {"watch"} & set(asked.url.params):
            return None
        faults: list[Exception | httpx.Response] = [
            httpx.ConnectError("refused"),
            httpx.Response(500, content=b"{}"),
            httpx.Response(409, content=b"{}"),
            httpx.Response(429, content=b"{}", headers={"retry-after": "1"}),
        ]
        return self._random.choice(faults)


async def meddle(at: Bench, random: Random, name: str) -> None:
    """Edit or delete an object, as a user does."""
    which = f"{name}-{random.choice(NAMES)}"
    try:
        if random.random() < 0.5:
            await at.client.delete(key(which))
        else:
            # The UID ensures that the apply does not create an object without an owner if the object was deleted meanwhile.
            uid = find_str(await at.client.get(key(which)), "metadata", "uid")
            metadata: JsonObject = {"name": which, "namespace": "default", "uid": uid}
            edit: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": "person"}}
            await at.client.apply(edit, field_manager="ann", force=True)
    except ClusterError:
        pass


async def live_many_lives(at: Bench, random: Random, weather: Weather, name: str) -> None:
    """Run upgrades and uninstalls with faults. Some of the upgrades are interrupted, and some are invalid."""
    for version in range(STEPS):
        asked, _ = some_request(random, name, version)
        if random.random() < 0.2:
            asked = request(asked.manifest, deployment("Not_A_Name"), name=name)
        weather.bad = random.choice([0, 10, 40])
        try:
            with trio.move_on_after(random.choice([0.05, 0.5, 1000])):
                if random.random() < 0.1:
                    await at.engine.uninstall(name, "default")
                else:
                    await at.engine.upgrade(asked)
        except ClusterError:
            pass
        weather.bad = 0
        await meddle(at, random, name)


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(scaled(300, 8)))
async def test_the_next_successful_upgrade_restores_the_desired_state(seed: int, autojump_clock: MockClock) -> None:
    random = Random(seed)  # noqa: S311 - a story to be told again
    async with bench() as at:
        weather, wanted = Weather(at, random), dict[str, str]()

        async with trio.open_nursery() as nursery:
            for name in ("one", "two"):
                nursery.start_soon(live_many_lives, at, random, weather, name)
        weather.bad = 0  # this applies to both releases, which share one network
        with trio.fail_after(10_000):
            async with trio.open_nursery() as nursery:
                for name in ("one", "two"):
                    asked, objects = some_request(random, name, STEPS)
                    wanted.update(objects)
                    nursery.start_soon(at.engine.upgrade, asked)
        await trio.sleep(700)  # by then, the last edit by a user is corrected
        there = {name: item.get("data") for name, item in (await at.config_maps()).items()}
        assert there == {name: {"v": v} for name, v in wanted.items()}
        for name in ("one", "two"):
            statuses = [one.status.value for one in await at.engine.history(name, "default")]
            assert statuses[-1] == "deployed"
            assert statuses.count("deployed") == 1
            assert not any(status.startswith("pending") for status in statuses[:-1])
        rows = at.engine.statistics().table.rows
        assert rows == len(wanted)
        before = len(at.transport.writes)
        await trio.sleep(4000)
        assert at.transport.writes[before:] == []
