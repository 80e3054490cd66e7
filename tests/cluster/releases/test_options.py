"""The options of an engine, and its statistics."""

from datetime import UTC

from trio.testing import MockClock

from tests.cluster.support.release_bench import bench
from tests.cluster.support.release_requests import config_map, request
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.releases.options import EngineOptions, unattributed, utc_now


def test_options_have_defaults() -> None:
    options = EngineOptions()
    assert (options.field_manager, options.force) == ("wharfinger", False)
    assert options.now().tzinfo is UTC
    assert utc_now().utcoffset() is not None
    with unattributed(Owner("web", "default")):
        pass


async def test_operations_run_in_the_context_of_their_release(autojump_clock: MockClock) -> None:
    at_work: list[str] = []

    def during(owner: Owner) -> "Entering":
        return Entering(at_work, str(owner))

    async with bench(options=EngineOptions(during=during)) as at:
        await at.engine.upgrade(request(config_map("a"), config_map("b")))
    assert at_work == ["default/web", "default/web"]


class Entering:
    """A context manager that records the owner of its release each time it is entered."""

    def __init__(self, told: list[str], who: str) -> None:
        self._told = told
        self._who = who

    def __enter__(self) -> None:
        self._told.append(self._who)

    def __exit__(self, *_: object) -> None:
        return None


async def test_statistics_count_rows_objects_and_drift(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(request(config_map("a"), config_map("b")))
        told = at.engine.statistics()
        assert (told.table.rows, told.whole, told.busy) == (2, 1, 0)
        assert told.live.objects == {"ConfigMap/v1": 2}
        assert told.drift.open == 0
