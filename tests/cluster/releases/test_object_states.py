from trio.testing import MockClock, wait_all_tasks_blocked

from tests.cluster.support.client_contract import key
from tests.cluster.support.release_bench import bench
from tests.cluster.support.release_requests import config_map, request
from wharfinger.cluster.reconciler.status import Kind
from wharfinger.cluster.releases.object_states import object_states
from wharfinger.cluster.watch.readiness import Current


async def test_the_states_of_all_objects_of_a_release_are_listed(autojump_clock: MockClock) -> None:
    async with bench() as at:
        wanted = request(config_map("b", "labels: {x: z}"), config_map("a"))
        await at.engine.upgrade(wanted)
        await at.engine.wait_ready("web", "default")
        first, second = at.engine.object_states(wanted.owner)
        assert [state.key.name for state in (first, second)] == ["a", "b"]
        assert first.readiness == Current()
        assert first.status is not None
        assert first.status.kind is Kind.DONE
        assert "x=z" in second.labels
        at.engine.suspend(wanted.owner)
        await at.client.delete(key("a"))
        await wait_all_tasks_blocked()
        gone = at.engine.object_states(wanted.owner)[0]
        assert gone.drift is not None
        assert gone.drift.missing
        assert object_states((), lambda _: Current(), lambda _: None, ()) == ()
