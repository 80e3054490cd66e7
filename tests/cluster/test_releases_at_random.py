"""Releases in random weather: upgrades that fail, are superseded, or are lost in the middle; the next good one puts all right."""

import json
import re
from random import Random

import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.cluster.client_contract import key
from tests.cluster.release_bench import Bench, bench
from tests.cluster.release_requests import config_map, deployment, request
from tests.scale import scaled
from wharfinger.cluster.errors import ClusterError
from wharfinger.cluster.release_engine import ReleaseRequest
from wharfinger.cluster.resource import name_of
from wharfinger.formats.json_value import JsonObject, as_object

pytestmark = pytest.mark.unmeasured

NAMES = "abcdef"
STEPS = 12
LIVES = ("one", "two")


def some_request(random: Random, name: str, version: int) -> tuple[ReleaseRequest, dict[str, str]]:
    """A release of some of the objects that are its own to have, and what is in them then."""
    wanted = {f"{name}-{one}": str(version) for one in NAMES if random.random() < 0.5}
    wanted[f"{name}-always"] = "0"
    return request(*(config_map(one, v=v) for one, v in wanted.items()), name=name), wanted


class Weather:
    """Breaks requests at random; ``bad`` is how many of a hundred.

    Each life has weather of its own, for the requests that name it. The others (the namespace, discovery, lists) break as in the
    worst weather of all, until a life is ``calm``: its last upgrade must not meet the weather of another.
    """

    def __init__(self, at: Bench, random: Random) -> None:
        self.bad = dict.fromkeys(LIVES, 0)
        self._calm = False
        self._random = random
        at.transport.fault = self._fault

    def calm(self, name: str) -> None:
        """Let it have good weather from now on."""
        self.bad[name] = 0
        self._calm = True

    def _bad(self, asked: httpx.Request) -> int:
        about = (
            asked.url.query.decode()
            if asked.method != "POST"
            else name_of(as_object(json.loads(asked.content), "body"))
        )
        named = re.search(rf"\b({'|'.join(LIVES)})\b", f"{asked.url.path} {about}")
        if named:
            return self.bad[named[1]]
        return 0 if self._calm else max(self.bad.values())

    def _fault(self, asked: httpx.Request) -> Exception | httpx.Response | None:
        if {"watch"} & set(asked.url.params) or self._random.randrange(100) >= self._bad(asked):
            return None
        faults: list[Exception | httpx.Response] = [
            httpx.ConnectError("refused"),
            httpx.Response(500, content=b"{}"),
            httpx.Response(409, content=b"{}"),
            httpx.Response(429, content=b"{}", headers={"retry-after": "1"}),
        ]
        return self._random.choice(faults)


async def meddle(at: Bench, random: Random, name: str) -> None:
    """What a person does: an edit, or a delete."""
    which = f"{name}-{random.choice(NAMES)}"
    try:
        if random.random() < 0.5:
            await at.client.delete(key(which))
        else:
            await at.client.get(key(which))
            metadata: JsonObject = {"name": which, "namespace": "default"}
            edit: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": "person"}}
            await at.client.apply(edit, field_manager="ann", force=True)
    except ClusterError:
        pass


async def live_many_lives(at: Bench, random: Random, weather: Weather, name: str) -> dict[str, str]:
    """Upgrades in bad weather, some cut short, some impossible; then one in good weather. What is wanted then."""
    for version in range(STEPS):
        asked, _ = some_request(random, name, version)
        if random.random() < 0.2:
            asked = request(asked.manifest, deployment("Not_A_Name"), name=name)
        weather.bad[name] = random.choice([0, 10, 40])
        try:
            with trio.move_on_after(random.choice([0.05, 0.5, 1000])):
                if random.random() < 0.1:
                    await at.engine.uninstall(name, "default")
                else:
                    await at.engine.upgrade(asked)
        except ClusterError:
            pass
        weather.bad[name] = 0
        await meddle(at, random, name)
    weather.calm(name)
    asked, wanted = some_request(random, name, STEPS)
    with trio.fail_after(10_000):
        await at.engine.upgrade(asked)
    return wanted


@pytest.mark.parametrize("seed", range(scaled(300, 8)))
async def test_the_next_good_upgrade_puts_all_right(seed: int, autojump_clock: MockClock) -> None:
    random = Random(seed)  # noqa: S311 - a story to be told again
    async with bench() as at:
        weather, wanted = Weather(at, random), dict[str, str]()

        async def live(name: str) -> None:
            wanted.update(await live_many_lives(at, random, weather, name))

        async with trio.open_nursery() as nursery:
            for name in LIVES:
                nursery.start_soon(live, name)
        await trio.sleep(700)  # whatever was edited last is mended
        there = {name: item.get("data") for name, item in (await at.config_maps()).items()}
        assert there == {name: {"v": v} for name, v in wanted.items()}
        for name in LIVES:
            statuses = [one.status.value for one in await at.engine.history(name, "default")]
            assert statuses[-1] == "deployed"
            assert statuses.count("deployed") == 1
            assert not any(status.startswith("pending") for status in statuses[:-1])
        rows = at.engine.statistics().table.rows
        assert rows == len(wanted)
        before = len(at.transport.writes)
        await trio.sleep(4000)
        assert at.transport.writes[before:] == []
