"""Records of operations: they are written reliably, always get their final status, and are read back as objects."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
import pytest
from trio.testing import MockClock

from tests.cluster.support.release_bench import Clock, Faulty, cluster
from tests.cluster.support.release_requests import config_map, request
from wharfinger.cluster.api.errors import NotFoundError, ReleaseError
from wharfinger.cluster.lease.fencing import Holder
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.records.release import ReleaseStatus
from wharfinger.cluster.records.release_store import ReleaseBusyError, ReleaseStore
from wharfinger.cluster.releases.record_keeper import RecordKeeper, recorded_hooks
from wharfinger.kube.resource import name_of

OURS, THEIRS = Holder("wharfinger"), Holder("another")
OWNER = Owner("web", "default")
WANTED = request(config_map("a", v="1"), config_map("b"))


class Bench:
    """Two keepers of the same records."""

    def __init__(self, transport: Faulty, ours: RecordKeeper, theirs: RecordKeeper) -> None:
        self.transport = transport
        self.ours = ours
        self.theirs = theirs

    def fail_once(self, method: str, *answers: Exception | httpx.Response) -> None:
        """Let the next requests with this method fail with these answers."""
        left = list(answers)
        self.transport.fault = lambda asked: left.pop(0) if left and asked.method == method else None

    async def statuses(self) -> list[tuple[int, str]]:
        return [(one.release.revision, one.release.status.value) for one in await self.ours.history(OWNER)]


@asynccontextmanager
async def bench(history: int = 10) -> AsyncIterator[Bench]:
    async with cluster() as (client, transport):
        clock = Clock()
        keepers = [
            RecordKeeper(ReleaseStore(client, clock, holder=holder), clock, holder, history)
            for holder in (OURS, THEIRS)
        ]
        yield Bench(transport, *keepers)


def conflict() -> httpx.Response:
    return httpx.Response(409, content=b"{}")


async def test_a_release_is_installed_upgraded_and_removed(autojump_clock: MockClock) -> None:
    async with bench() as at:
        first = await at.ours.begin(WANTED, None, [])
        assert (first.release.status, first.release.written_by) == (ReleaseStatus.PENDING_INSTALL, OURS)
        done = await at.ours.mark(first, ReleaseStatus.DEPLOYED, "Install complete")
        await at.ours.tidy([done])
        second = await at.ours.begin(WANTED, done.release, [])
        assert (second.release.revision, second.release.status) == (2, ReleaseStatus.PENDING_UPGRADE)
        await at.ours.tidy([done, await at.ours.mark(second, ReleaseStatus.DEPLOYED, "Upgrade complete")])
        assert await at.statuses() == [(1, "superseded"), (2, "deployed")]
        (objects,) = await at.ours.possible_objects(await at.ours.history(OWNER))
        assert [name_of(obj) for obj in objects] == ["a", "b"]
        await at.ours.remove_all(OWNER)
        assert await at.statuses() == []


async def test_tidying_stops_when_another_operation_begins(autojump_clock: MockClock) -> None:
    """The revision of the other operation is not deployed yet, so the revision before it must remain for a rollback."""
    async with bench() as at:
        first = await at.ours.write(WANTED, None, [], ReleaseStatus.DEPLOYED, "one")
        second = await at.ours.write(WANTED, first.release, [], ReleaseStatus.DEPLOYED, "two")
        (theirs, *_) = await at.theirs.history(OWNER)
        await at.theirs.label(theirs, {"seen": "yes"})
        await at.theirs.begin(WANTED, second.release, [])
        await at.ours.tidy([first, second])
        assert await at.statuses() == [(1, "deployed"), (2, "deployed"), (3, "pending-upgrade")]


async def test_a_conflict_without_another_writer_is_retried(autojump_clock: MockClock) -> None:
    async with bench() as at:
        at.fail_once("POST", conflict())
        first = await at.ours.begin(WANTED, None, [])
        at.fail_once("PUT", conflict())
        done = await at.ours.mark(first, ReleaseStatus.DEPLOYED, "Install complete")
        at.transport.fault = lambda _: None
        second = await at.ours.mark(await at.ours.begin(WANTED, done.release, []), ReleaseStatus.DEPLOYED, "done")
        at.fail_once("PUT", conflict())
        await at.ours.tidy([done, second])
        assert await at.statuses() == [(1, "superseded"), (2, "deployed")]


async def test_a_conflict_with_our_own_unanswered_write_is_success(autojump_clock: MockClock) -> None:
    async with bench() as at:
        at.transport.lose_answer_of = len(at.transport.requests)
        first = await at.ours.begin(WANTED, None, [])
        at.transport.lose_answer_of = len(at.transport.requests)
        done = await at.ours.mark(first, ReleaseStatus.DEPLOYED, "Install complete")
        assert done.release.status is ReleaseStatus.DEPLOYED
        assert await at.statuses() == [(1, "deployed")]
        assert len([one for one in at.transport.writes if one == "POST secrets"]) == 2


async def test_a_conflict_with_another_process_is_busy(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.theirs.begin(WANTED, None, [])
        with pytest.raises(ReleaseBusyError, match="revision 1 was written by another process"):
            await at.ours.begin(WANTED, None, [])
        with pytest.raises(ReleaseBusyError):
            await at.ours.settled(OWNER)


async def test_a_record_overwritten_by_another_process_is_busy(autojump_clock: MockClock) -> None:
    async with bench() as at:
        first = await at.ours.begin(WANTED, None, [])
        (theirs,) = await at.theirs.history(OWNER)
        await at.theirs.mark(theirs, ReleaseStatus.FAILED, "taken over")
        with pytest.raises(ReleaseBusyError, match="changed by another process"):
            await at.ours.mark(first, ReleaseStatus.DEPLOYED, "Install complete")
        assert await at.statuses() == [(1, "failed")]
        await at.theirs.remove_all(OWNER)
        with pytest.raises(NotFoundError):
            await at.ours.mark(first, ReleaseStatus.DEPLOYED, "Install complete")


async def test_unreadable_records_are_refused_with_a_remedy(autojump_clock: MockClock) -> None:
    async with bench() as at:
        stored = await at.ours.begin(WANTED, None, [])
        for manifest in ("a: [", "a: [" + "x" * 200_000):
            broken = replace(stored.release, document={**stored.release.document, "manifest": manifest})
            with pytest.raises(ReleaseError, match="check `helm get manifest`"):
                await at.ours.objects_of(broken)
        hooked = replace(stored.release, document={**stored.release.document, "hooks": [{"manifest": "a: ["}]})
        with pytest.raises(ReleaseError, match="check `helm get hooks`"):
            recorded_hooks(hooked)
        assert recorded_hooks(stored.release) == []
