"""The cache of the daemon's answers. All browsers share it."""

import pytest
import trio
from trio.testing import MockClock

from tests.debug.support.dashboard_samples import WHOLE, inspector
from wharfinger.debug.client.client import DebugClient
from wharfinger.debug.client.exchange import Question, Reply
from wharfinger.debug.client.unknown_names import NoSuchPackageError
from wharfinger.debug.dashboard.source import MOST_KEPT, AnswerCache
from wharfinger.debug.errors import NoDaemonError
from wharfinger.debug.server.routes import make_handler
from wharfinger.httpd.messages import Request, Response


class Daemon:
    """A daemon in memory. ``asked`` has the paths of all requests, and ``takes_s`` is the duration of each answer."""

    def __init__(self, takes_s: float = 0.0) -> None:
        self.asked: list[str] = []
        self.takes_s = takes_s
        self.is_away = False

    async def exchange(self, _path: object, question: Question) -> Reply:
        self.asked.append(question.route)
        await trio.sleep(self.takes_s)
        if self.is_away:
            raise NoDaemonError("no daemon")
        query = {name: (value,) for name, value in question.parameters.items()}
        answer = await make_handler(inspector())(Request("GET", question.route, query, {}, b""))
        assert isinstance(answer, Response)
        return Reply(answer.status, answer.body)

    def source(self) -> AnswerCache:
        return AnswerCache(DebugClient("s", self.exchange))  # type: ignore[arg-type]


async def test_many_browsers_cause_one_request_a_second(autojump_clock: MockClock) -> None:
    daemon = Daemon()
    source = daemon.source()
    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(source.whole)
    assert daemon.asked.count("/api/v1/packages/dump") == 1
    assert (await source.whole()).packages == WHOLE.packages
    assert source.pause_s() == pytest.approx(1.0)
    await trio.sleep(1.1)
    await source.whole()
    assert daemon.asked.count("/api/v1/packages/dump") == 2


async def test_a_slow_daemon_gets_fewer_requests(autojump_clock: MockClock) -> None:
    source = Daemon(takes_s=0.5).source()
    await source.whole()
    assert source.pause_s() == pytest.approx(10 * 4 * 0.5)


async def test_a_bounded_number_of_package_answers_is_cached(autojump_clock: MockClock) -> None:
    daemon = Daemon()
    source = daemon.source()
    one = await source.one("prod.shop")
    assert one.description.package == WHOLE.packages[2]
    asked = len(daemon.asked)
    await source.one("prod.shop")
    assert len(daemon.asked) == asked
    assert source.pause_s("prod.shop") > 0
    for number in range(MOST_KEPT + 3):
        with pytest.raises(NoSuchPackageError):
            await source.one(f"a.p{number}")
    assert len(source._ones) == MOST_KEPT


async def test_a_failure_is_cached_as_long_as_an_answer(autojump_clock: MockClock) -> None:
    daemon = Daemon()
    daemon.is_away = True
    source = daemon.source()
    for _ in range(3):
        with pytest.raises(NoDaemonError):
            await source.whole()
    assert len(daemon.asked) == 1
    daemon.is_away = False
    await trio.sleep(1.1)
    assert (await source.whole()).daemon.pid == 4711
