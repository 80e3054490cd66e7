"""Profiles over a real socket. Only one runs at a time, and it ends when its client leaves or the daemon stops."""

import json
import socket
import threading
from pathlib import Path

import httpx
import pytest
import trio

from tests.debug.support.canned import CannedInspector
from tests.debug.support.socket_client import socket_client
from wharfinger.debug.addresses import PROFILE
from wharfinger.debug.errors import DebugAnswerError
from wharfinger.debug.profile.profile import ProfileSnapshot
from wharfinger.debug.profile.sampler import Sampler
from wharfinger.debug.server import profile_routes
from wharfinger.debug.server.profile_routes import BUSY, PROFILE_ROUTES
from wharfinger.debug.server.server import open_debug_server


def by_hand(path: Path) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=str(path)), base_url="http://daemon")


class Sampling:
    """A factory of samplers. It reports when a sampler begins and when it ends, and records the seconds of each profile."""

    def __init__(self) -> None:
        self.begun = trio.Event()
        self.ended = trio.Event()
        self.seconds: list[float] = []
        self.token = trio.lowlevel.current_trio_token()

    def make(self, seconds: float) -> Sampler:
        sampling = self

        class Reporting(Sampler):
            def run(self) -> ProfileSnapshot:
                sampling.token.run_sync_soon(sampling.begun.set)
                try:
                    found = super().run()
                    sampling.seconds.append(found.seconds)
                    return found
                finally:
                    sampling.token.run_sync_soon(sampling.ended.set)

        return Reporting(seconds)


@pytest.fixture
async def sampling(monkeypatch: pytest.MonkeyPatch) -> Sampling:
    found = Sampling()
    monkeypatch.setattr(profile_routes, "Sampler", found.make)
    return found


async def test_a_profile_is_answered_in_every_format(tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with open_debug_server(path, CannedInspector()), by_hand(path) as client:
        answers = {
            output: await client.get(PROFILE, params={"seconds": "0.05", "output": output})
            for output in ("json", "yaml", "text", "collapsed", "speedscope")
        }
        assert {each.status_code for each in answers.values()} == {200}
        assert answers["json"].headers["content-type"] == "application/json"
        assert answers["json"].json()["seconds"] >= 0.05
        assert answers["speedscope"].json()["exporter"] == "wharfinger profile"
        assert answers["text"].headers["content-type"].startswith("text/plain")
        assert answers["text"].text.splitlines()[2].startswith("THREAD")
        assert answers["collapsed"].text.splitlines()[0].rpartition(" ")[2].isdigit()
        assert (await client.head(PROFILE)).status_code == 200
    assert set(PROFILE_ROUTES) == {PROFILE}


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ({"seconds": "61"}, "seconds: 61: expected a number over 0 and up to 60"),
        ({"seconds": "0"}, "seconds: 0: expected"),
        ({"output": "pprof"}, "unknown output: pprof; known: collapsed, json, speedscope, text, yaml"),
        ({"watch": "1"}, "unknown query parameter: watch"),
    ],
)
async def test_invalid_requests_are_refused(query: dict[str, str], why: str, tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with open_debug_server(path, CannedInspector()), by_hand(path) as client:
        answer = await client.get(PROFILE, params=query)
        assert answer.status_code == 400
        assert why in answer.text


async def test_a_second_profile_is_refused_while_the_first_runs(tmp_path: Path, sampling: Sampling) -> None:
    path = tmp_path / "s"
    async with open_debug_server(path, CannedInspector()):
        with socket.socket(socket.AF_UNIX) as first:
            first.connect(str(path))
            first.sendall(f"GET {PROFILE}?seconds=60 HTTP/1.1\r\nHost: d\r\n\r\n".encode())
            await sampling.begun.wait()
            with pytest.raises(DebugAnswerError) as raised:
                await socket_client(path).profile(1)
            assert str(raised.value) == BUSY
            assert (await socket_client(path).daemon()).packages == 3, "the daemon still answers"
        await sampling.ended.wait()
        assert sampling.seconds[0] < 30, "the sampling ends when its client disconnects"
        assert (await socket_client(path).profile(0.02)).samples > 0


async def test_a_stopping_daemon_does_not_wait_for_a_profile(tmp_path: Path, sampling: Sampling) -> None:
    path = tmp_path / "s"
    failed: list[str] = []

    async def ask() -> None:
        with pytest.raises(DebugAnswerError) as raised:
            await socket_client(path).profile(60)
        failed.append(str(raised.value))

    async with trio.open_nursery() as nursery, open_debug_server(path, CannedInspector()):
        nursery.start_soon(ask)
        await sampling.begun.wait()
    await sampling.ended.wait()
    assert sampling.seconds[0] < 30
    assert failed == [f"the daemon on {path} was stopped before the profile was complete"]
    assert not profile_routes._REQUESTED.locked()


async def test_a_profile_is_refused_while_an_abandoned_one_is_still_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, begun, end = tmp_path / "s", trio.Event(), threading.Event()
    token = trio.lowlevel.current_trio_token()

    def slow(*_: object) -> str:
        token.run_sync_soon(begun.set)
        end.wait(60)
        return "text"

    monkeypatch.setattr(profile_routes, "profile_text", slow)
    try:
        async with open_debug_server(path, CannedInspector()), by_hand(path) as client:
            with socket.socket(socket.AF_UNIX) as first:
                first.connect(str(path))
                first.sendall(f"GET {PROFILE}?seconds=0.01 HTTP/1.1\r\nHost: d\r\n\r\n".encode())
                await begun.wait()
            while profile_routes._REQUESTED.locked():
                await trio.lowlevel.checkpoint()
            assert BUSY in (await client.get(PROFILE, params={"seconds": "0.01"})).text
            end.set()
            while profile_routes._WORKING.locked():
                await trio.lowlevel.checkpoint()
            assert (await client.get(PROFILE, params={"seconds": "0.01"})).text == "text"
    finally:
        end.set()


async def test_a_profile_can_be_taken_while_all_worker_threads_are_in_use(tmp_path: Path) -> None:
    limiter = trio.to_thread.current_default_thread_limiter()
    before, limiter.total_tokens = limiter.total_tokens, 1
    end, begun = threading.Event(), trio.Event()

    def hold() -> None:
        trio.from_thread.run_sync(begun.set)
        end.wait()

    path = tmp_path / "s"
    try:
        async with open_debug_server(path, CannedInspector()), by_hand(path) as client, trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, hold)
            await begun.wait()
            answer = await client.get(PROFILE, params={"seconds": "0.02"})
            assert json.loads(answer.text)["samples"] > 0
            end.set()
    finally:
        end.set()
        limiter.total_tokens = before
