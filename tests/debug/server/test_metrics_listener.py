"""Metrics for scrapers over the network: answers, refused paths, and the bounded cost of many requests."""

import dataclasses
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
import pytest
import trio
import trio.testing

from tests.debug.support.canned import CannedInspector
from tests.debug.support.samples import DAEMON, HOOK_METRICS, METRICS
from tests.exposition import parse
from tests.scale import scaled
from wharfinger.debug.addresses import ELSEWHERE
from wharfinger.debug.errors import MetricsAddressError
from wharfinger.debug.server.metrics_listener import (
    CONNECTIONS,
    FRESH_S,
    LIMITS,
    MetricsAddress,
    make_metrics_handler,
    open_metrics_listener,
    read_metrics_address,
)
from wharfinger.debug.server.routes import ROUTES
from wharfinger.formats.exposition import CONTENT_TYPE
from wharfinger.httpd.messages import Handler, Request, Response
from wharfinger.runtime.daemon_details import LeaderSnapshot

LOOPBACK = MetricsAddress("127.0.0.1", 0)


@dataclass
class Counting(CannedInspector):
    """An Inspector that counts requests for metrics, and can delay its answer."""

    asked_metrics: int = 0
    go_on: trio.Event | None = None
    begun: trio.Event = field(default_factory=trio.Event)

    async def metrics(self) -> str:
        self.asked_metrics += 1
        self.begun.set()
        if self.go_on is not None:
            await self.go_on.wait()
        return await super().metrics()


@asynccontextmanager
async def scraper(inspector: CannedInspector) -> AsyncIterator[httpx.AsyncClient]:
    async with open_metrics_listener(LOOPBACK, inspector) as port:
        limits = httpx.Limits(max_connections=None)
        url = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient(base_url=url, limits=limits, trust_env=False) as client:
            yield client


async def test_scrapers_get_metrics_and_health() -> None:
    async with scraper(CannedInspector()) as client:
        for path, text in (
            ("/metrics", METRICS + ELSEWHERE),
            ("/metrics?hooks=false", METRICS + ELSEWHERE),
            ("/metrics?hooks=true", METRICS + HOOK_METRICS),
            ("/metrics/hooks", HOOK_METRICS),
        ):
            answer = await client.get(path)
            assert (answer.status_code, answer.headers["content-type"], answer.text) == (200, CONTENT_TYPE, text)
            parse(answer.text)
        assert (await client.get("/healthz")).text == "ok\n"


async def test_readiness_is_reported_without_its_reason() -> None:
    held = dataclasses.replace(DAEMON, ready=False, standby="lacks rights: patch secrets")
    for base, status, text in ((DAEMON, 200, "ready\n"), (held, 503, "not ready\n")):
        async with scraper(CannedInspector(base=base)) as client:
            answer = await client.get("/readyz")
            assert (answer.status_code, answer.text) == (status, text)


async def test_the_leader_and_stale_watches_are_reported() -> None:
    leader = LeaderSnapshot(leader="host_1", fence=3)
    base = dataclasses.replace(DAEMON, ready=False, standby="host_1 holds it", leader=leader, stale_watches=("a", "b"))
    async with scraper(CannedInspector(base=base)) as client:
        answer = await client.get("/readyz")
        assert (answer.status_code, answer.text) == (503, "not ready\nleader: host_1\n")
        answer = await client.get("/livez")
        assert (answer.status_code, answer.text) == (503, "a\nb\n")
    async with scraper(CannedInspector()) as client:
        assert (await client.get("/livez")).text == "ok\n"


async def test_all_other_paths_and_queries_are_refused() -> None:
    async with scraper(CannedInspector()) as client:
        for path in (
            *(path for path in ROUTES if path not in {"/metrics", "/metrics/hooks", "/healthz", "/livez", "/readyz"}),
            "/",
            "/metrics/",
        ):
            answer = await client.get(path.replace("{name}", "prod.shop"))
            assert answer.status_code == 404, path
            assert answer.text == "no such path; known: /metrics, /metrics/hooks, /healthz, /livez, /readyz\n"
        for path in ("/metrics", "/metrics/hooks", "/healthz", "/livez", "/readyz"):
            for method in ("HEAD", "POST", "PUT", "DELETE", "OPTIONS"):
                answer = await client.request(method, path)
                assert (answer.status_code, answer.headers["allow"]) == (405, "GET"), (method, path)
        for query in ("hooks=1", "hooks=", "hooks=true&hooks=true", "name=x", "hooks=true&name=x"):
            answer = await client.get(f"/metrics?{query}")
            assert answer.status_code == 400, query
            assert answer.text == "unknown query; known: /metrics?hooks=true and /metrics?hooks=false\n"
        assert (await client.get("/healthz?hooks=true")).status_code == 400
        assert (await client.get("/metrics/hooks?hooks=true")).status_code == 400
        answer = await client.request("GET", "/metrics", content=b"x")
        assert answer.status_code == 413


async def test_many_scrapers_share_one_collection_of_metrics() -> None:
    for _ in range(scaled(50, 5)):
        go_on = trio.Event()
        inspector = Counting(go_on=go_on)
        answers: list[Response] = []
        handle = make_metrics_handler(inspector)

        async def ask(path: str, handle: Handler = handle, answers: list[Response] = answers) -> None:
            answer = await handle(Request("GET", path, {}, {}, b""))
            assert isinstance(answer, Response)
            answers.append(answer)

        async with trio.open_nursery() as nursery:
            for _ in range(40):
                nursery.start_soon(ask, "/metrics")
                nursery.start_soon(ask, "/metrics/hooks")
            await trio.testing.wait_all_tasks_blocked()
            assert inspector.asked_metrics == 1
            go_on.set()
        assert inspector.asked_metrics == 1
        assert len(answers) == 80
        assert len({id(answer.body) for answer in answers}) == 2


async def test_an_answer_is_reused_for_a_short_time(autojump_clock: trio.testing.MockClock) -> None:
    inspector = Counting()
    handle = make_metrics_handler(inspector)
    request = Request("GET", "/metrics", {}, {}, b"")
    for wait_s, asked in ((0.0, 1), (FRESH_S * 0.9, 1), (FRESH_S * 0.2, 2), (10.0, 3), (0.0, 3)):
        await trio.sleep(wait_s)
        await handle(request)
        assert inspector.asked_metrics == asked
    inspector.measured = "# TYPE a gauge\na 1\n"
    await trio.sleep(FRESH_S)
    answer = await handle(request)
    assert isinstance(answer, Response)
    assert answer.body.startswith(b"# TYPE a gauge\na 1\n")


async def test_the_number_of_connections_is_bounded() -> None:
    assert (LIMITS.connections, LIMITS.body_bytes) == (CONNECTIONS, 0)
    async with open_metrics_listener(LOOPBACK, CannedInspector()) as port, trio.open_nursery() as nursery:
        idle = [await trio.open_tcp_stream("127.0.0.1", port) for _ in range(CONNECTIONS)]
        for stream in idle:
            await stream.send_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            assert (await stream.receive_some()).startswith(b"HTTP/1.1 200 ")
        late = await trio.open_tcp_stream("127.0.0.1", port)
        await late.send_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        assert (await late.receive_some()).startswith(b"HTTP/1.1 200 ")
        while rest := await idle[0].receive_some():
            assert rest == b"ok\n"
        for stream in (*idle, late):
            await stream.aclose()
        nursery.cancel_scope.cancel()


async def test_an_answer_in_flight_is_sent_before_shutdown() -> None:
    go_on = trio.Event()
    inspector = Counting(go_on=go_on)
    bodies: list[str] = []
    async with trio.open_nursery() as nursery, open_metrics_listener(LOOPBACK, inspector) as port:

        async def ask() -> None:
            async with httpx.AsyncClient(trust_env=False) as client:
                bodies.append((await client.get(f"http://127.0.0.1:{port}/metrics")).text)

        nursery.start_soon(ask)
        await inspector.begun.wait()
        go_on.set()
    assert bodies == [METRICS + ELSEWHERE]
    with pytest.raises(OSError, match="all attempts"):
        await trio.open_tcp_stream("127.0.0.1", port)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9115", MetricsAddress("127.0.0.1", 9115)),
        ("localhost:0", MetricsAddress("localhost", 0)),
        (":65535", MetricsAddress("", 65535)),
        ("[::1]:9115", MetricsAddress("::1", 9115)),
    ],
)
def test_valid_addresses_are_parsed(text: str, address: MetricsAddress) -> None:
    assert read_metrics_address(text) == address
    assert str(address) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "'': expected an address to listen on: HOST:PORT"),
        ("9115", "'9115': expected an address"),
        ("::1:9115", "expected an address"),
        ("[127.0.0.1]:9115", "expected an address"),
        ("[]:9115", "expected an address"),
        ("a b:9115", "expected an address"),
        ("a\nb:9115", r"'a\\\\nb:9115': expected an address"),
        ("localhost:", "expected a port number up to 65535"),
        ("localhost:65536", "expected a port number"),
        ("localhost:-1", "expected a port number"),
        ("localhost:+1", "expected a port number"),
        ("localhost:\u0661", "expected a port number"),
        ("localhost:" + "9" * 5000, "expected a port number"),
    ],
)
def test_invalid_addresses_are_refused(text: str, why: str) -> None:
    with pytest.raises(MetricsAddressError, match=why) as caught:
        read_metrics_address(text)
    assert len(str(caught.value)) < 300


async def test_addresses_that_cannot_be_bound_are_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(MetricsAddressError, match=f"on 127.0.0.1:{port}: .*in use"):
            async with open_metrics_listener(MetricsAddress("127.0.0.1", port), CannedInspector()):
                raise AssertionError("not opened")
    with pytest.raises(MetricsAddressError, match=r"cannot serve metrics on a\.\.b:0"):
        async with open_metrics_listener(MetricsAddress("a..b", 0), CannedInspector()):
            raise AssertionError("not opened")


async def test_an_empty_host_listens_on_every_address() -> None:
    everywhere = open_metrics_listener(MetricsAddress("", 0), CannedInspector())
    async with everywhere as port, httpx.AsyncClient(trust_env=False) as client:
        assert (await client.get(f"http://127.0.0.1:{port}/healthz")).text == "ok\n"
