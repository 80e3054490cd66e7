"""Records of revisions: when they are written, how failures are recorded, and what happens after a process is killed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.cluster.support.release_bench import Bench, Clock, Faulty, bench, cluster, open_engine
from tests.cluster.support.release_requests import config_map, request
from wharfinger.cluster.api.errors import ForbiddenError, InvalidError, ReleaseError
from wharfinger.cluster.lease.fencing import Holder
from wharfinger.cluster.objects.desired import DIGEST_ANNOTATION
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.records.record_cache import Stored
from wharfinger.cluster.records.release import ReleaseStatus, new_release
from wharfinger.cluster.records.release_store import ReleaseBusyError, ReleaseStore
from wharfinger.cluster.releases.record_keeper import RecordKeeper
from wharfinger.cluster.releases.request import Outcome, ReleaseRequest
from wharfinger.cluster.releases.revision_record import QUICK_S, RevisionRecord
from wharfinger.formats.json.value import JsonObject, find, find_str

OWNER = Owner("web", "default")
WANTED = request(config_map("a", v="1"), config_map("b"))


def pair(version: str) -> ReleaseRequest:
    return request(config_map("a", v=version), config_map("b", v=version))


def refusal(code: int, reason: str) -> httpx.Response:
    return httpx.Response(code, json={"kind": "Status", "code": code, "reason": reason, "message": reason})


@asynccontextmanager
async def bench_of_records(history: int = 10) -> AsyncIterator[tuple[RecordKeeper, Faulty]]:
    """Open a keeper of records. Yield it, and the transport of its client."""
    async with cluster() as (client, transport):
        clock, holder = Clock(), Holder("wharfinger")
        yield RecordKeeper(ReleaseStore(client, clock, holder=holder), clock, holder, history), transport


async def values(at: Bench) -> dict[str, object]:
    return {name: find(obj, "data", "v") for name, obj in (await at.config_maps()).items()}


# -- a quick change


async def test_a_quick_change_is_recorded_once(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(pair("1"))
        assert not find_str((await at.config_maps())["a"], "metadata", "annotations", DIGEST_ANNOTATION)
        at.transport.requests.clear()
        result = await at.engine.upgrade(pair("2"))
        assert (result.outcome, result.revision) == (Outcome.UPGRADED, 2)
        assert sorted(at.transport.writes) == ["PATCH a", "PATCH b", "POST secrets"]
        assert at.transport.requests[-1] == "POST secrets"
        assert await at.statuses() == ["1 deployed Install complete", "2 deployed Upgrade complete"]
        assert find_str((await at.config_maps())["a"], "metadata", "annotations", DIGEST_ANNOTATION)


@pytest.mark.parametrize(
    "wanted",
    [
        request(config_map("a", v="2")),  # an object is removed
        request(config_map("a", v="2"), config_map("b", v="2"), config_map("c")),  # an object is new
        replace(pair("2"), rollback_to=1),
    ],
)
async def test_other_changes_are_recorded_as_pending_first(wanted: ReleaseRequest, autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(pair("1"))
        at.transport.requests.clear()
        await at.engine.upgrade(wanted)
        assert at.transport.writes[0] == "POST secrets"
        assert "PUT sh.helm.release.v1.web.v2" in at.transport.writes


async def test_a_slow_change_is_recorded_as_pending(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(pair("1"))
        goes_on = trio.Event()
        at.transport.fault = lambda asked: goes_on if asked.method == "PATCH" else None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(at.engine.upgrade, pair("2"))
            await trio.sleep(QUICK_S + 0.1)
            assert await at.statuses() == ["1 deployed Install complete", "2 pending-upgrade Preparing upgrade"]
            goes_on.set()
        assert await at.statuses() == ["1 deployed Install complete", "2 deployed Upgrade complete"]


async def test_a_failed_quick_change_is_recorded(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(pair("1"))
        at.transport.fault = lambda asked: (
            refusal(422, "Invalid") if asked.method == "PATCH" and asked.url.path.endswith("/b") else None
        )
        with pytest.raises(InvalidError):
            await at.engine.upgrade(pair("2"))
        at.transport.fault = lambda _: None
        first, second = await at.statuses()
        assert first == "1 deployed Install complete"
        assert second.startswith("2 failed Upgrade failed: ")
        assert (await at.engine.upgrade(pair("1"))).revision == 3
        assert await values(at) == {"a": "1", "b": "1"}


async def test_a_change_that_fails_while_its_pending_record_is_written_is_recorded_as_failed(
    autojump_clock: MockClock,
) -> None:
    """The change fails before the server answers the write of the pending record.

    The failure is recorded nevertheless, because possibly no retry follows that could record it.
    """
    async with bench() as at:
        await at.engine.upgrade(pair("1"))
        answers, inner = trio.Event(), at.transport.inner

        async def handle(request: httpx.Request) -> httpx.Response:
            if request.method == "PATCH":
                await answers.wait()
                return refusal(422, "Invalid")
            response = await inner.handle_async_request(request)
            if request.method == "POST":
                answers.set()
                await trio.sleep(0.5)
            return response

        at.transport.inner = httpx.MockTransport(handle)
        with pytest.raises(InvalidError):
            await at.engine.upgrade(pair("2"))
        first, second = await at.statuses()
        assert first == "1 deployed Install complete"
        assert second.startswith("2 failed Upgrade failed: ")


async def test_a_cancelled_quick_change_needs_no_record(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(pair("1"))
        never = trio.Event()
        at.transport.fault = lambda asked: never if asked.method == "PATCH" and asked.url.path.endswith("/b") else None
        with trio.move_on_after(QUICK_S / 2):
            await at.engine.upgrade(pair("2"))
        at.transport.fault = lambda _: None
        assert await at.statuses() == ["1 deployed Install complete"]
        assert await values(at) == {"a": "2", "b": "1"}
        assert (await at.engine.upgrade(pair("1"))).outcome is Outcome.UNCHANGED
        assert await values(at) == {"a": "1", "b": "1"}


async def test_a_users_record_of_the_same_revision_is_not_overwritten(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(pair("1"))
        theirs = new_release(
            name="web",
            namespace="default",
            revision=2,
            status=ReleaseStatus.DEPLOYED,
            description="by hand",
            chart=WANTED.chart,
            values={},
            manifest=config_map("a"),
            hooks=[],
            now=at.clock(),
        )
        goes_on = trio.Event()
        at.transport.fault = lambda asked: goes_on if asked.method == "PATCH" else None
        async with trio.open_nursery() as nursery:

            async def write_first() -> None:
                await ReleaseStore(at.client, at.clock).create(theirs)
                goes_on.set()

            nursery.start_soon(write_first)
            with pytest.raises(ReleaseBusyError, match="revision 2 was written by another process just now"):
                await at.engine.upgrade(pair("2"))
        assert await at.statuses() == ["1 deployed Install complete", "2 deployed by hand"]
        assert (await at.engine.upgrade(pair("2"))).revision == 3  # the next attempt succeeds


async def test_a_change_whose_record_is_refused_remains_and_is_recorded_later(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(pair("1"))
        at.transport.fault = lambda asked: refusal(403, "Forbidden") if asked.method == "POST" else None
        for _ in range(2):
            with pytest.raises(ForbiddenError):
                await at.engine.upgrade(pair("2"))
            await trio.sleep(60)
        at.transport.fault = lambda _: None
        assert await at.statuses() == ["1 deployed Install complete"]
        assert await values(at) == {"a": "2", "b": "2"}
        assert (await at.engine.upgrade(pair("2"))).revision == 2
        assert await at.statuses() == ["1 superseded Install complete", "2 deployed Upgrade complete"]


@pytest.mark.parametrize("wanted", ["1", "2", "3"])
@pytest.mark.parametrize("killed_at", ["/b", "/secrets"])
async def test_objects_of_a_killed_process_identify_their_revision(
    killed_at: str, wanted: str, autojump_clock: MockClock
) -> None:
    """The process is killed after it has written one or both objects of the second revision, but not the revision's record."""
    async with cluster() as (client, transport):
        async with open_engine(client) as engine:
            await engine.upgrade(pair("1"))
            never = trio.Event()
            transport.fault = lambda asked: (
                never if asked.method in {"PATCH", "POST"} and asked.url.path.endswith(killed_at) else None
            )
            with trio.move_on_after(QUICK_S / 2):
                await engine.upgrade(pair("2"))
            transport.fault = lambda _: None
        async with open_engine(client) as engine:
            await engine.restore("web", "default")
            transport.requests.clear()
            await trio.sleep(60)
            assert transport.writes == []  # nothing is reverted before the next upgrade supplies the desired state
            result = await engine.upgrade(pair(wanted))
            assert result.revision == (1 if wanted == "1" else 2)
            found = {name: find(await client.get(row), "data", "v") for row in result.objects for name in (row.name,)}
            assert found == {"a": wanted, "b": wanted}
            assert engine.drifts(OWNER) == ()


async def test_a_digest_written_by_another_process_hides_no_drift(autojump_clock: MockClock) -> None:
    """Another process changes a value and the digest of an object while no daemon runs. The next daemon reverts the value."""
    async with cluster() as (client, _):
        async with open_engine(client) as engine:
            await engine.upgrade(pair("1"))
            (a, _) = (await engine.upgrade(pair("2"))).objects
        metadata: JsonObject = {"name": "a", "namespace": "default", "annotations": {DIGEST_ANNOTATION: "sha256:0"}}
        edit: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": "9"}}
        await client.apply(edit, field_manager="ann", force=True)
        async with open_engine(client) as engine:
            await engine.restore("web", "default")
            await trio.sleep(60)
            assert find(await client.get(a), "data", "v") == "2"


async def test_drift_of_a_marked_object_is_corrected_and_the_mark_stays(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(pair("1"))
        await at.engine.upgrade(pair("2"))
        a = (await at.config_maps())["a"]
        mark = find_str(a, "metadata", "annotations", DIGEST_ANNOTATION)
        metadata = {"name": "a", "namespace": "default"}
        edit = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": "9"}}
        await at.client.apply(edit, field_manager="ann", force=True)  # type: ignore[arg-type]
        await trio.sleep(5)
        again = (await at.config_maps())["a"]
        assert find(again, "data", "v") == "2"
        assert find_str(again, "metadata", "annotations", DIGEST_ANNOTATION) == mark


# -- failures


async def test_a_failure_is_recorded_even_when_cancelled(autojump_clock: MockClock) -> None:
    async with bench_of_records(history=2) as (keeper, _):
        history: list[Stored] = []
        for number in range(3):
            record = RevisionRecord(keeper, WANTED, history[-1].release if history else None, [])
            await record.announce()
            with trio.CancelScope() as scope:
                scope.cancel()
                await record.fail(history, ReleaseError(f"number {number}"), "Upgrade")
            history = await keeper.history(OWNER)
        assert [(one.release.revision, one.release.status.value) for one in history] == [(2, "failed"), (3, "failed")]
        assert history[-1].release.description == "Upgrade failed: number 2"


async def test_a_cancelled_change_is_recorded_as_interrupted(autojump_clock: MockClock) -> None:
    async with bench_of_records() as (keeper, _):
        record = RevisionRecord(keeper, WANTED, None, [])
        await record.announce()
        with trio.move_on_after(1):
            try:
                await trio.sleep_forever()
            except trio.Cancelled as error:
                await record.fail([], BaseExceptionGroup("", [error]), "Install")
                raise
        (failed,) = await keeper.history(OWNER)
        assert failed.release.description == "Install failed: interrupted"


async def test_the_record_remains_pending_if_the_server_is_unreachable(autojump_clock: MockClock) -> None:
    async with bench_of_records() as (keeper, transport):
        record = RevisionRecord(keeper, WANTED, None, [])
        await record.announce()
        transport.fault = lambda asked: httpx.ConnectError("refused")
        await record.fail([], ReleaseError("no"), "Install")
        transport.fault = lambda _: None
        (stored,) = await keeper.history(OWNER)
        assert stored.release.status is ReleaseStatus.PENDING_INSTALL
