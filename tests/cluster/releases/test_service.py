"""The release engine as a service, which runs for the duration of an ``async with`` block.

The next engine continues its work.
"""

from trio.testing import MockClock

from tests.cluster.support.client_contract import key
from tests.cluster.support.release_bench import cluster
from tests.cluster.support.release_requests import config_map, request
from wharfinger.cluster.releases.options import EngineOptions
from wharfinger.cluster.releases.service import open_release_engine
from wharfinger.cluster.watch.shared_watches import open_shared_watches


async def test_a_release_continues_with_the_next_engine(autojump_clock: MockClock) -> None:
    wanted = request(config_map("a", v="1"))
    async with cluster() as (client, transport), open_shared_watches(client) as watches:
        async with open_release_engine(client, watches) as engine:
            first = await engine.upgrade(wanted)
            assert engine.object_states(wanted.owner)[0].key == key("a")
        written = len(transport.writes)
        async with open_release_engine(client, watches, EngineOptions()) as engine:
            assert engine.object_states(wanted.owner) == ()
            assert await engine.restore("web", "default") == first.objects
            assert [str(each.key) for each in engine.object_states(wanted.owner)] == ["ConfigMap default/a"]
        assert len(transport.writes) == written
