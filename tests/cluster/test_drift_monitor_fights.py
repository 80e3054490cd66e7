"""The drift monitor while another manager repeats its change, and while the corrections of a release are paused."""

import pytest
import trio
from trio.testing import MockClock

from tests.cluster.support.drift_bench import yaml_object
from tests.cluster.support.drift_keeper import CONFIG, EDITED, OWNER, RULES, drift_keeper, edit, value_of
from wharfinger.formats.json.value import JsonObject


@pytest.fixture
def config() -> JsonObject:
    return yaml_object(CONFIG)


async def test_a_fight_is_reported_with_the_other_writer_until_it_ends(
    autojump_clock: MockClock, config: JsonObject
) -> None:
    async with drift_keeper() as keeper:
        await keeper.put(config)
        for number in range(RULES.limit):
            await edit(keeper, config, str(number))
            assert await value_of(keeper, config) == "x"
        assert keeper.told == ((), ())

        await edit(keeper, config, "again")
        assert await value_of(keeper, config) == "again"
        assert [fight.by for fight in keeper.monitor.fights(OWNER)] == [("ed",)]
        assert keeper.told == (keeper.monitor.drifts(OWNER), keeper.monitor.fights(OWNER))
        assert keeper.monitor.statistics().fights == 1

        await trio.sleep(RULES.first_delay_s)
        assert await value_of(keeper, config) == "x"
        await trio.sleep(RULES.window_s)
        assert (keeper.monitor.fights(OWNER), keeper.told) == ((), ((), ()))
        assert len(keeper.corrected) == RULES.limit + 1


async def test_drift_of_a_paused_owner_is_corrected_after_the_resume(
    autojump_clock: MockClock, config: JsonObject
) -> None:
    async with drift_keeper() as keeper:
        await keeper.put(config)
        keeper.monitor.pause_corrections(OWNER)
        await edit(keeper, config)
        assert (keeper.tellings, keeper.corrected) == ([EDITED], [])

        keeper.monitor.resume_corrections(OWNER)
        await trio.sleep(1)

        assert (keeper.tellings, await value_of(keeper, config)) == ([EDITED, ""], "x")


async def test_a_correction_interrupted_by_a_pause_is_made_after_the_resume(
    autojump_clock: MockClock, config: JsonObject
) -> None:
    async with drift_keeper() as keeper:
        await keeper.put(config)
        keeper.corrects = False
        await edit(keeper, config)
        keeper.monitor.pause_corrections(OWNER)
        keeper.unsettled.clear()
        keeper.corrects = True

        keeper.monitor.resume_corrections(OWNER)
        await trio.sleep(1)

        assert await value_of(keeper, config) == "x"
