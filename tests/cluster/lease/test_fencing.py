"""The check whether the daemon that wrote a pending record may still be at work."""

from datetime import UTC, datetime

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from tests.cluster.support.clusters import memory_cluster
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.lease.fencing import (
    ABANDONED_AFTER_S,
    NOBODY,
    Abandoned,
    AtWork,
    Fencing,
    Holder,
    Sightings,
    Verdict,
    judge,
)
from wharfinger.cluster.lease.lease import open_lease
from wharfinger.cluster.lease.record import LEASE_API
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import ObjectKey

LEASE = "default/wharfinger/uid-1"
US = Holder("us", 5, LEASE)
LOG = "default/other/uid-9"


def now() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("theirs", "verdict"),
    [
        (US, Abandoned("the daemon was ended")),
        (Holder("us", 4, LEASE), Abandoned("the daemon was ended")),
        (Holder("us", 9, "default/wharfinger/uid-0"), Abandoned("the daemon was ended")),
        (Holder("us"), Abandoned("the daemon was ended")),
        (Holder("us", 6, LEASE), AtWork("a later start of the Wharfinger daemon us", "it replaced this one")),
        (
            Holder("them", 4, LEASE),
            Abandoned("the Wharfinger daemon them does not hold the Lease any more: us holds it"),
        ),
        (Holder("them", 6, LEASE), AtWork("the Wharfinger daemon them", "it took the Lease over from this daemon")),
        (Holder("them", 9, LOG), None),
        (Holder("them", 1, "default/wharfinger/uid-0"), None),
        (Holder("them"), None),
        (NOBODY, None),
    ],
)
def test_a_verdict_is_reached_from_the_two_holders_alone(theirs: Holder, verdict: Verdict | None) -> None:
    assert judge(theirs, US) == verdict


@pytest.mark.parametrize(
    ("lease", "handed_over"),
    [
        ("default/wharfinger-blue/uid-3", True),
        ("default/wharfinger/uid-0", True),
        ("default/wharfingers/uid-3", False),
        ("other/wharfinger-blue/uid-3", False),
        (LOG, False),
    ],
)
def test_a_daemon_of_the_same_family_has_handed_its_releases_over(lease: str, handed_over: bool) -> None:
    said = judge(Holder("them", 9, lease), Holder("us", 5, LEASE, family="wharfinger"))
    assert said == (Abandoned("the Wharfinger daemon them has handed the release over") if handed_over else None)


HOLDERS = st.builds(Holder, st.sampled_from(["", "a", "b"]), st.integers(0, 3), st.sampled_from(["", "l/m/1", "l/m/2"]))


@given(HOLDERS, HOLDERS)
def test_two_holders_of_one_lease_never_both_consider_the_other_abandoned(one: Holder, other: Holder) -> None:
    if one.identity != other.identity and one.lease and one.lease == other.lease and one.fence != other.fence:
        assert {type(judge(one, other)), type(judge(other, one))} == {Abandoned, AtWork}


async def verdict(fencing: Fencing, theirs: Holder, version: str = "1") -> Verdict:
    return await fencing.verdict(theirs, "record", version)


async def test_a_foreign_command_is_waited_for_until_its_record_is_unchanged_long_enough(
    autojump_clock: MockClock,
) -> None:
    async with memory_cluster() as client:
        fencing = Fencing(client, US)
        assert await verdict(fencing, NOBODY) == AtWork(
            "a helm command", "if the writer does not change the record, it counts as gone in 10 minutes"
        )
        await trio.sleep(ABANDONED_AFTER_S - 30)
        assert await verdict(fencing, NOBODY) == AtWork(
            "a helm command", "if the writer does not change the record, it counts as gone in 30 seconds"
        )
        assert isinstance(await verdict(fencing, NOBODY, "2"), AtWork), "it was written meanwhile"
        await trio.sleep(ABANDONED_AFTER_S - 1)
        assert isinstance(await verdict(fencing, NOBODY, "2"), AtWork)
        await trio.sleep(1)
        assert await verdict(fencing, NOBODY, "2") == Abandoned(
            "a helm command has not changed the record for 10 minutes"
        )
        assert isinstance(await verdict(fencing, Holder("them")), AtWork), (
            "a holder without a Lease is waited for as well"
        )


async def taken(client: ClusterClient, spec: JsonObject) -> Holder:
    """Create a Lease that another daemon holds, and return that holder."""
    api_version, kind = LEASE_API
    metadata: JsonObject = {"name": "other", "namespace": "default"}
    made = await client.create({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})
    uid = str((made["metadata"] if isinstance(made["metadata"], dict) else {})["uid"])
    return Holder("them", 9, f"default/other/{uid}")


HELD: JsonObject = {
    "holderIdentity": "them",
    "leaseTransitions": 9,
    "leaseDurationSeconds": 20,
    "renewTime": "1971-01-01T00:00:00.000000Z",
}


async def change(client: ClusterClient, spec: JsonObject) -> None:
    key = ObjectKey(await client.resource_type(*LEASE_API), "default", "other")
    await client.merge_patch(key, {"spec": spec})


async def test_a_daemon_that_renews_its_lease_is_at_work_whatever_its_clock_shows(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        fencing = Fencing(client, US)
        theirs = await taken(client, HELD)
        assert await verdict(fencing, theirs) == AtWork(
            "the Wharfinger daemon them",
            "the wait ends when that daemon releases the Lease default/other, or does not renew it for 20 seconds",
        )
        for minute in range(1, 30):  # the clock of the other daemon is 55 years behind, but it renews its Lease
            await trio.sleep(19)
            await change(client, {"renewTime": f"1971-01-01T00:{minute:02}:00.000000Z"})
            assert isinstance(await verdict(fencing, theirs), AtWork)


async def test_a_daemon_whose_lease_expired_is_abandoned(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        fencing = Fencing(client, US)
        theirs = await taken(client, {**HELD, "renewTime": "2999-01-01T00:00:00.000000Z"})
        assert isinstance(await verdict(fencing, theirs), AtWork)
        await trio.sleep(19)
        assert isinstance(await verdict(fencing, theirs), AtWork)
        await trio.sleep(1)
        assert await verdict(fencing, theirs) == Abandoned(
            "the Wharfinger daemon them did not renew the Lease default/other for 20 seconds"
        )


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"holderIdentity": None}, "it was released"),
        ({"holderIdentity": "third", "leaseTransitions": 10}, "third holds it"),
        ({"leaseTransitions": 10}, "a later process of the same identity holds it"),
    ],
)
async def test_a_daemon_that_lost_its_lease_is_abandoned(spec: JsonObject, why: str, autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        theirs = await taken(client, HELD)
        await change(client, spec)
        assert await verdict(Fencing(client, US), theirs) == Abandoned(
            f"the Wharfinger daemon them does not hold the Lease default/other any more: {why}"
        )


async def test_a_daemon_whose_lease_is_missing_or_recreated_is_abandoned(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        fencing = Fencing(client, US)
        assert await verdict(fencing, Holder("them", 9, LOG)) == Abandoned(
            "the Lease default/other of the Wharfinger daemon them is deleted"
        )
        await taken(client, HELD)
        assert await verdict(fencing, Holder("them", 9, LOG)) == Abandoned(
            "the Wharfinger daemon them does not hold the Lease default/other any more: it was deleted and created again"
        )
        for lease in ("x", "a/b", "a//c", "/b/c", "a/b/c/d"):
            found = await verdict(fencing, Holder("them", 9, lease))
            assert isinstance(found, Abandoned)
            assert "names no valid Lease" in found.why


async def test_the_lease_held_by_one_side_decides(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        async with open_lease(client, "default", "wharfinger", "them", now=now) as lease:
            theirs = lease.holder
        async with open_lease(client, "default", "wharfinger", "us", now=now) as lease:
            assert isinstance(await verdict(Fencing(client, lease.holder), theirs), Abandoned)
            assert isinstance(await verdict(Fencing(client, theirs), lease.holder), AtWork)


def test_sightings_are_bounded() -> None:
    sightings = Sightings(limit=2)
    assert [sightings.see(what, "x", float(at)) for at, what in enumerate("aba")] == [0, 1, 0]
    assert sightings.see("c", "x", 3.0) == 3, "b was seen least recently"
    assert [sightings.see("a", "x", 4.0), sightings.see("b", "x", 5.0)] == [0, 5]
    assert sightings.see("b", "y", 6.0) == 6
