"""The drift monitor while a list or a read fails or hangs, or while a release is paused. All other work continues.

Weakness 15 in ``tests/spec_weaknesses.py`` must not occur: in a similar project, one failed list made all drift unknown, a lock
was held during calls, and the pause of a release was lost when its monitor was replaced.
"""

import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.cluster.support.drift_bench import yaml_object
from tests.cluster.support.drift_keeper import CONFIG, EDITED, OWNER, drift_keeper, edit, value_of
from wharfinger.cluster.objects.desired import identity_of
from wharfinger.formats.json.value import JsonObject

SECRET = "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: prod}, data: {a: eA==}}"


@pytest.fixture
def config() -> JsonObject:
    return yaml_object(CONFIG)


@pytest.fixture
def other() -> JsonObject:
    return yaml_object(CONFIG.replace("name: c", "name: d"))


async def test_a_kind_that_cannot_be_listed_does_not_affect_others(
    autojump_clock: MockClock, config: JsonObject
) -> None:
    """Kinds are compared one after the other. Here the first kind, ConfigMap, cannot be listed."""
    secret = yaml_object(SECRET)
    async with drift_keeper(full_s=600) as keeper:
        for desired in (config, secret):
            key = keeper.insert(await keeper.bench.key(desired), desired)
            await keeper.reapply(identity_of(key))
            await keeper.bench.patch("ed", desired, {"data": {"a": "eQ=="}})  # no watch reports this
        failed = httpx.ConnectError("down")
        keeper.sent.fault = lambda request: failed if request.url.path.endswith("/configmaps") else None
        await trio.sleep(601)
        assert (await value_of(keeper, secret), await value_of(keeper, config)) == ("eA==", "eQ==")
        assert keeper.tellings == ["Secret prod/s: /data/a by ed", ""]
        assert (keeper.monitor.statistics().failures, keeper.monitor.statistics().comparisons) == (1, 2)

        keeper.sent.fault = lambda _: None
        await trio.sleep(601)
        assert await value_of(keeper, config) == "x"


@pytest.mark.parametrize("hangs", ["c", "configmaps"], ids=["a read of an object", "a list"])
async def test_a_hanging_call_blocks_nothing_else(
    hangs: str, autojump_clock: MockClock, config: JsonObject, other: JsonObject
) -> None:
    """While one call gets no answer, queries about drift and pauses of corrections work, and other objects are corrected."""
    async with drift_keeper(full_s=600) as keeper:
        await keeper.put(config)
        await keeper.put(other)
        gate = keeper.sent.gates[hangs] = trio.Event()
        await keeper.bench.patch("ed", config, {"data": {"a": "theirs"}})
        await trio.sleep(601)
        keeper.sent.requests.clear()
        waiting = hangs == "c"
        assert len(keeper.monitor.drifts(OWNER)) == 0
        assert (await value_of(keeper, config) == "theirs") is waiting

        await edit(keeper, other)
        assert await value_of(keeper, other) == "x"
        keeper.monitor.pause_corrections(OWNER)
        await edit(keeper, other, "more")
        assert await value_of(keeper, other) == "more"
        keeper.monitor.resume_corrections(OWNER)
        await trio.sleep(1)
        assert await value_of(keeper, other) == "x"

        gate.set()
        await trio.sleep(1)
        assert await value_of(keeper, config) == "x"


async def test_a_pause_outlives_the_rows_at_its_beginning(autojump_clock: MockClock, config: JsonObject) -> None:
    """Rows that an upgrade removes and inserts during the pause are not corrected either. Only an explicit resume ends the
    pause.
    """
    async with drift_keeper() as keeper:
        key = await keeper.put(config)
        keeper.monitor.pause_corrections(OWNER)
        keeper.monitor.pause_corrections(OWNER)
        keeper.remove(key)
        keeper.insert(key, config)
        await keeper.reapply(identity_of(key))
        await edit(keeper, config)
        assert (keeper.tellings, keeper.corrected) == ([EDITED], [])
        keeper.insert(key, {**config, "data": {"a": "x"}})
        await keeper.reapply(identity_of(key))
        await edit(keeper, config)
        assert keeper.corrected == []

        keeper.monitor.resume_corrections(OWNER)
        await trio.sleep(1)
        assert await value_of(keeper, config) == "x"


async def test_resuming_without_a_pause_changes_nothing(autojump_clock: MockClock, config: JsonObject) -> None:
    """A resume without a pause reads each object once, and reports and writes nothing."""
    async with drift_keeper() as keeper:
        await keeper.put(config)
        keeper.sent.requests.clear()
        keeper.monitor.resume_corrections(OWNER)
        keeper.monitor.resume_corrections(OWNER)
        await trio.sleep(1)
        assert (keeper.sent.requests, keeper.tellings) == (["GET c"], [])


@pytest.mark.parametrize(("drawn", "period_s"), [(0.0, 540), (0.5, 600), (1.0, 660)])
async def test_comparisons_of_several_daemons_are_spread(
    drawn: float, period_s: int, autojump_clock: MockClock
) -> None:
    async with drift_keeper(full_s=600, draw=lambda: drawn) as keeper:
        counts = []
        for pause_s in (period_s - 1, 2, period_s - 2, 2):
            await trio.sleep(pause_s)
            counts.append(keeper.monitor.statistics().comparisons)
    assert counts == [1, 2, 2, 3]
