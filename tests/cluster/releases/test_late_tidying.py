"""Histories of releases: some time after a change, older revisions are deleted or marked as superseded."""

from dataclasses import replace

import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.cluster.support.release_bench import Bench, bench
from tests.cluster.support.release_requests import config_map, request
from wharfinger.cluster.api.errors import InvalidError
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.releases.late_tidying import TIDY_S
from wharfinger.cluster.releases.record_keeper import SLACK


async def change(at: Bench, *numbers: int) -> None:
    """Upgrade the release once for each number."""
    for number in numbers:
        await at.engine.upgrade(request(config_map("a", v=str(number))))


async def statuses(at: Bench) -> list[str]:
    return [one.status.value for one in await at.engine.history("web", "default")]


async def test_older_revisions_are_superseded_later(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await change(at, 1, 2, 3)
        assert await statuses(at) == ["deployed"] * 3
        await trio.sleep(TIDY_S + 1)
        assert await statuses(at) == ["superseded", "superseded", "deployed"]
        records = [f"sh.helm.release.v1.web.v{number}" for number in (1, 2)]
        assert at.transport.requests[-4:] == [f"{verb} {record}" for record in records for verb in ("GET", "PUT")]
        at.transport.requests.clear()
        await trio.sleep(10 * TIDY_S)
        assert at.transport.requests == []


async def test_a_release_that_changes_constantly_is_tidied_nevertheless(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await change(at, *range(10 + SLACK))
        assert len(await statuses(at)) == 10 + SLACK
        await change(at, 10 + SLACK)
        assert await statuses(at) == [*["superseded"] * 9, "deployed"]


async def test_revisions_to_delete_are_not_superseded_first(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await change(at, *range(15))
        at.transport.requests.clear()
        await trio.sleep(TIDY_S + 1)
        assert sorted({one.partition(" ")[0] for one in at.transport.writes}) == ["DELETE", "PUT"]
        assert len(at.transport.writes) == 5 + 9


async def test_a_failure_is_retried(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await change(at, 1, 2)
        at.transport.fault = lambda asked: httpx.ConnectError("refused") if asked.method == "PUT" else None
        await trio.sleep(2 * TIDY_S)
        at.transport.fault = lambda _: None
        assert await statuses(at) == ["deployed", "deployed"]
        await trio.sleep(2 * TIDY_S)
        assert await statuses(at) == ["superseded", "deployed"]


async def test_the_last_deployed_revision_before_a_failed_one_stays_deployed(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await change(at, 1, 2)
        refusal = httpx.Response(422, json={"kind": "Status", "code": 422, "reason": "Invalid", "message": "no"})
        at.transport.fault = lambda asked: refusal if asked.method == "PATCH" else None
        with pytest.raises(InvalidError):
            await change(at, 3)
        await trio.sleep(2 * TIDY_S)
        assert await statuses(at) == ["deployed", "deployed", "failed"]


async def test_a_forgotten_release_is_not_tidied(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await change(at, 1, 2)
        await at.engine.forget(Owner("web", "default"))
        at.transport.requests.clear()
        await trio.sleep(3 * TIDY_S)
        assert at.transport.writes == []


async def test_a_busy_release_does_not_block_another(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await change(at, 1, 2)
        await at.engine.upgrade(replace(request(config_map("b", v="1")), name="blog"))
        await at.engine.upgrade(replace(request(config_map("b", v="2")), name="blog"))
        never = trio.Event()
        at.transport.fault = lambda asked: never if asked.url.path.endswith("/a") else None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(change, at, 3)
            await trio.sleep(TIDY_S + 1)
            assert await statuses(at) == ["deployed", "deployed", "pending-upgrade"]
            assert [one.status.value for one in await at.engine.history("blog", "default")] == [
                "superseded",
                "deployed",
            ]
            never.set()
        await trio.sleep(TIDY_S + 1)
        assert await statuses(at) == ["superseded", "superseded", "deployed"]
