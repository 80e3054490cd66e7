"""Watches: the processor time that an event costs this process, from the server's socket to the subscribers.

The server is a child process that only writes events over a real loopback connection. Each event is a separate HTTP chunk, as
an API server sends it. In some rows, the events have a steady rate, as in a busy cluster; in another row, they are sent as fast
as the connection allows. Only processor time is compared, so waiting does not count. The child ends when its standard input
ends.
"""

import select
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import httpx
import msgspec
import trio

from bench.measure import Ratio
from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.http_client import open_client
from wharfinger.cluster.api.raw_object import OnRawChange, RawChange
from wharfinger.cluster.watch.shared_watches import open_shared_watches
from wharfinger.formats.json.value import JsonObject, JsonValue, canonical_json
from wharfinger.kube.resource import ResourceType

POD: Final = ResourceType("", "v1", "Pod", "pods", namespaced=True)
RATE: Final = 2_000
"""Events per second."""
CORE: Final = 0.25
"""The share of a core that this rate may use."""
EVENTS: Final = 4_000
OBJECTS: Final = 100
SUBSCRIBERS: Final = 20
PATIENCE_S: Final = 60

Measured = Callable[[str], Awaitable[float]]
"""A function that reads all events of the server at a URL, and returns the processor time in seconds."""


def measure(long: bool) -> Iterator[Ratio]:
    """Measure the processor time of an event. Compare it with a share of a core that events at a steady rate may use, and with
    the time of code that only reads and parses the events.
    """
    rounds = 5 if long else 1
    each, parsed = f"an event of 5 KiB at {RATE}/s", "bare httpx and msgspec"
    steady = _median(RATE, _follow, rounds)
    quarter, allowed = f"{CORE} of a core", CORE / RATE
    yield Ratio("watches", each, quarter, steady, allowed, 1.0)
    yield Ratio("watches", each, parsed, steady, _median(RATE, _bare, rounds), 1.5)
    often = _median(RATE, _follow_often, rounds)
    yield Ratio("watches", f"{each}, {SUBSCRIBERS} subscribers", quarter, often, allowed, 1.0)
    yield Ratio(
        "watches",
        "an event of 5 KiB, without a pause",
        parsed,
        _median(0, _follow, rounds),
        _median(0, _bare, rounds),
        2.0,
    )


def _median(rate: int, measured: Measured, rounds: int) -> float:
    """Return the median processor time of one event in seconds."""

    async def limited(url: str) -> float:
        with trio.fail_after(PATIENCE_S):
            return await measured(url)

    seconds = []
    for _ in range(rounds):
        with _server(rate) as url:
            seconds.append(trio.run(limited, url) / EVENTS)
    return statistics.median(seconds)


@contextmanager
def _server(rate: int) -> Iterator[str]:
    command = [sys.executable, "-m", "bench.watches", str(rate)]
    root = Path(__file__).parents[1]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        yield f"http://127.0.0.1:{child.stdout.readline().strip()}"
        child.communicate(timeout=PATIENCE_S)


# -- clients


class _Meter:
    """A meter of the processor time that this process uses between the first and the last event."""

    def __init__(self, events: int) -> None:
        self.over = trio.Event()
        self._left = events
        self._began = 0.0
        self.used_s = 0.0

    def count(self, _told: RawChange | None = None) -> None:
        self._began = self._began or time.process_time()
        self._left -= 1
        if not self._left:
            self.used_s = time.process_time() - self._began
            self.over.set()


async def _follow(url: str) -> float:
    return await _followed(url, 1)


async def _follow_often(url: str) -> float:
    return await _followed(url, SUBSCRIBERS)


async def _followed(url: str, subscribers: int) -> float:
    async with open_client(Connection(url)) as client, open_shared_watches(client) as watches:
        meter = _Meter(EVENTS)
        with ExitStack() as subscriptions:
            everybody: list[OnRawChange] = [meter.count, *[_told] * (subscribers - 1)]
            for on_change in everybody:
                subscriptions.enter_context(watches.subscribe(POD, "shop", "", "", on_change))
            await meter.over.wait()
        return meter.used_s


def _told(_change: RawChange) -> None:
    """Ignore a change. This function serves as a further subscriber."""


async def _bare(url: str) -> float:
    """Read and parse all events with simple code, and return the processor time in seconds."""
    meter = _Meter(EVENTS)
    rest = b""
    async with (
        httpx.AsyncClient() as client,
        client.stream("GET", url + POD.path("shop"), params={"watch": "1"}) as answer,
    ):
        async for chunk in answer.aiter_raw():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                assert msgspec.json.decode(line)["object"]
                meter.count()
            if meter.over.is_set():
                return meter.used_s
    raise SystemExit("bench: the watch ended before its last event")


# -- the server


def _serve(rate: int) -> None:
    """Serve an empty list of Pods, and then their events, to one connection after the other until standard input ends."""
    chunks = [b"%x\r\n%b\r\n" % (len(line), line) for line in _lines()]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        while listener in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            with connection, suppress(ConnectionResetError):  # A client may end its watch at any time.
                connection.settimeout(PATIENCE_S)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                _answer(connection, chunks, rate)


def _answer(connection: socket.socket, chunks: list[bytes], rate: int) -> None:
    while request := connection.recv(65536):
        if b"watch=1" not in request:
            body = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}'
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
            continue
        connection.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        began = time.monotonic()
        for number, chunk in enumerate(chunks):
            early = began + number / rate - time.monotonic() if rate else 0.0
            if early > 0:
                select.select([], [], [], early)
            connection.sendall(chunk)


def _lines() -> Iterator[bytes]:
    """Yield the lines of the events. A hundred objects are first added and then changed one after the other."""
    for number in range(EVENTS):
        event: JsonObject = {"type": "ADDED" if number < OBJECTS else "MODIFIED", "object": _object(number)}
        yield canonical_json(event) + b"\n"


def _object(number: int) -> JsonObject:
    """Return a Pod of 5 KiB with many small members, like real Pods."""
    containers: list[JsonValue] = [
        {
            "name": f"container-{at}",
            "image": f"registry.example/shop/web@sha256:{'0123456789abcdef' * 4}",
            "env": [{"name": f"SETTING_{setting}", "value": "x" * 20} for setting in range(9)],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        }
        for at in range(7)
    ]
    metadata: JsonObject = {
        "name": f"web-{number % OBJECTS}",
        "namespace": "shop",
        "uid": f"00000000-0000-4000-8000-{number % OBJECTS:012}",
        "resourceVersion": str(number + 10),
        "labels": {"app": "web", "tier": "front"},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": f"node-{number % 7}", "containers": containers},
        "status": {"phase": "Running", "podIP": "10.0.0.1"},
    }


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
