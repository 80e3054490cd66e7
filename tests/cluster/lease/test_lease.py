"""A Lease on a control plane in memory: how it is acquired, held and lost."""

from datetime import UTC, datetime

import httpx
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.cluster.support.clusters import memory_cluster
from tests.cluster.support.release_faults import Faulty, two_ways
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.lease.fencing import Holder
from wharfinger.cluster.lease.lease import Lease, LeaseLostError, open_lease
from wharfinger.cluster.lease.record import LEASE_API, LeaseRecord, read_lease
from wharfinger.formats.json.value import JsonObject, find, find_str
from wharfinger.kube.resource import ObjectKey


def now() -> datetime:
    """Return the same wall-clock time at each call, because no decision about a Lease may depend on it."""
    return datetime(2026, 1, 1, tzinfo=UTC)


async def key_of(client: ClusterClient) -> ObjectKey:
    return ObjectKey(await client.resource_type(*LEASE_API), "default", "wharfinger")


async def live(client: ClusterClient) -> LeaseRecord:
    return read_lease(await client.get(await key_of(client)))


async def test_the_lease_is_held_renewed_and_released(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        async with open_lease(client, "default", "wharfinger", "us", now=now) as lease:
            first = await live(client)
            assert (lease.identity, lease.fence, first.holder, first.fence) == ("us", 1, "us", 1)
            assert lease.holder == Holder("us", 1, f"default/wharfinger/{first.uid}")
            await trio.sleep(62)
            assert (await live(client)).renewed_us == first.renewed_us + 12
            assert not lease.lost.is_set()
        assert ((await live(client)).holder, (await live(client)).fence) == ("", 1)
        started = trio.current_time()
        async with open_lease(client, "default", "wharfinger", "other", now=now) as lease:
            assert (lease.fence, trio.current_time() - started) == (2, 0)


async def test_an_unreachable_server_at_the_start_is_waited_for(autojump_clock: MockClock) -> None:
    said: list[str] = []
    async with two_ways() as at:
        away = [httpx.ConnectError("refused")] * 8
        at.faulty.fault = lambda request: away.pop() if away and request.url.path in {"/api", "/apis"} else None
        async with open_lease(at.broken, "default", "wharfinger", "us", now=now, waiting=said.append) as lease:
            assert lease.fence == 1
        assert "Leases: not discovered yet" in said[0]


async def test_foreign_labels_on_the_lease_stay_and_do_not_end_it(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, open_lease(client, "default", "wharfinger", "us", now=now) as lease:
        await client.merge_patch(await key_of(client), {"metadata": {"labels": {"team": "x"}}})
        await trio.sleep(60)
        assert not lease.lost.is_set()
        assert find(await client.get(await key_of(client)), "metadata", "labels") == {"team": "x"}


async def test_another_holder_is_waited_for_and_our_own_former_one_is_not(autojump_clock: MockClock) -> None:
    said: list[str] = []
    async with two_ways() as at:
        client = at.client
        await hold_and_die(at.broken, at.faulty)
        assert (await live(client)).holder == "us"
        started = trio.current_time()
        async with open_lease(client, "default", "wharfinger", "us", now=now, waiting=said.append) as lease:
            assert (lease.fence, trio.current_time() - started) == (2, 0)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(wait_for_it, client, said)
                await trio.sleep(40)
                assert said == ["Lease default/wharfinger: not acquired yet: us holds it"]
                nursery.cancel_scope.cancel()


async def wait_for_it(client: ClusterClient, said: list[str]) -> None:
    async with open_lease(client, "default", "wharfinger", "other", now=now, waiting=said.append):
        raise AssertionError("two holders at once")


async def hold_and_die(client: ClusterClient, faulty: Faulty) -> None:
    """Hold the Lease and end like a killed process, without releasing it."""
    scope = trio.CancelScope()
    with scope:
        async with open_lease(client, "default", "wharfinger", "us", now=now):
            faulty.fault = lambda _: httpx.ConnectError("killed")
            scope.cancel()
            await trio.sleep_forever()


async def test_the_lease_of_a_killed_holder_expires(autojump_clock: MockClock) -> None:
    async with two_ways() as at:
        await hold_and_die(at.broken, at.faulty)
        started = trio.current_time()
        async with open_lease(at.client, "default", "wharfinger", "other", now=now) as lease:
            assert lease.fence == 2
            assert 15 <= trio.current_time() - started <= 16


async def test_a_disconnected_holder_stops_before_another_begins(autojump_clock: MockClock) -> None:
    ends: list[tuple[str, float]] = []

    async def hold(client: ClusterClient, identity: str) -> None:
        try:
            async with open_lease(client, "default", "wharfinger", identity, now=now):
                ends.append((f"{identity} begins", trio.current_time()))
                await trio.sleep_forever()
        except LeaseLostError as error:
            ends.append((str(error), trio.current_time()))

    async with two_ways() as at, trio.open_nursery() as nursery:
        nursery.start_soon(hold, at.broken, "us")
        await wait_all_tasks_blocked(0.01)
        at.faulty.fault = lambda _: httpx.ConnectError("no route")
        nursery.start_soon(hold, at.client, "other")
        await trio.sleep(60)
        nursery.cancel_scope.cancel()
    (first, _), (lost, _), (second, _) = ends
    assert (first, second) == ("us begins", "other begins")
    assert lost.startswith(
        "Lease default/wharfinger: us does not hold it any more: it could not be renewed within 10 seconds: "
    )
    assert "no route" in lost
    assert lost.endswith("running work was stopped, and continues when a daemon is started again")
    begun, ended, taken = (when for _, when in ends)
    assert ended - begun == pytest.approx(10)
    assert taken - ended >= 4


async def test_a_hanging_request_does_not_outlast_the_deadline(autojump_clock: MockClock) -> None:
    async with two_ways() as at:
        started = trio.current_time()
        with pytest.raises(LeaseLostError, match="no answer within 2"):
            async with open_lease(at.broken, "default", "wharfinger", "us", now=now) as lease:
                at.faulty.fault = lambda _: trio.Event()
                await trio.sleep_forever()
        assert lease.lost.is_set()
        assert trio.current_time() - started <= 10 + 2


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"spec": {"holderIdentity": "thief", "leaseTransitions": 9}}, "thief holds it now"),
        (None, "the Lease was deleted"),
    ],
)
async def test_the_lease_is_lost_if_it_is_taken_or_deleted(
    change: JsonObject | None, reason: str, autojump_clock: MockClock
) -> None:
    async with memory_cluster() as client:
        with pytest.raises(LeaseLostError, match=reason):
            async with open_lease(client, "default", "wharfinger", "us", now=now):
                if change is None:
                    await client.delete(await key_of(client))
                else:
                    await client.merge_patch(await key_of(client), change)
                await trio.sleep_forever()


async def test_errors_before_the_acquisition_are_reported_and_retried(autojump_clock: MockClock) -> None:
    said: list[str] = []
    async with memory_cluster() as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(hold_in, client, "later", said)
            await trio.sleep(5)
            namespace: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "later"}}
            await client.create(namespace)
        assert len(said) == 1
        assert 'namespaces "later" not found' in said[0]


async def hold_in(client: ClusterClient, namespace: str, said: list[str]) -> None:
    async with open_lease(client, namespace, "wharfinger", "us", now=now, waiting=said.append) as lease:
        assert lease.fence == 1


async def test_of_simultaneous_candidates_only_one_holds_the_lease(autojump_clock: MockClock) -> None:
    held: list[Lease] = []

    async def hold(client: ClusterClient, identity: str) -> None:
        async with open_lease(client, "default", "wharfinger", identity, now=now) as lease:
            held.append(lease)
            assert (await live(client)).holder == identity
            await trio.sleep(20)
            assert not lease.lost.is_set()

    async with memory_cluster() as client, trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(hold, client, f"c{number}")
    assert [lease.fence for lease in held] == [1, 2, 3]
    assert len({lease.identity for lease in held}) == 3


async def test_an_error_of_the_block_is_raised_and_the_lease_is_released(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        with pytest.raises(ExceptionGroup) as caught:
            async with open_lease(client, "default", "wharfinger", "us", now=now):
                raise ClusterError("x")
        assert str(caught.value.exceptions[0]) == "x"
        assert find_str(await client.get(await key_of(client)), "spec", "holderIdentity") == ""
