"""A program that puts load on a control plane: it creates and lists objects, opens watches, and then writes.

:mod:`bench.control_plane` runs it as ``python -m bench.control_plane_load PORT TOKEN LOAD``. It prints a line when everything
is prepared, a line when the last write is answered, and then its figures as JSON. It has one thread, which waits with epoll.
"""

import base64
import select
import socket
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Final

import msgspec

from wharfinger.formats.json.value import decode_json, find_str

PATIENCE_S: Final = 120.0
BODY_BYTES: Final = 2048
"""The size of the data of one object in bytes."""
KEYS: Final = 4
PAGE: Final = 500
SETTLE_S: Final = 2.0
"""The time for which the last events are awaited."""
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Load:
    """The options of a load. ``rate`` is the number of writes per second, or 0 for as many as the server answers.

    ``verb`` is put, patch, create or mixed.
    """

    rate: int
    seconds: float
    objects: int
    watchers: int
    connections: int = 32
    verb: str = "put"


@dataclass(frozen=True, slots=True)
class Figures:
    """The results of a run, with times in seconds."""

    writes: int
    failures: int
    p50: float
    p99: float
    most: float
    events: int
    event_bytes: int
    watches_cut: int
    lag: float
    pages: int
    page_bytes: int
    page_p99: float
    stored_bytes: int


class Writer:
    """One connection that sends requests and reads the answers."""

    def __init__(self, port: int, token: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._auth = f"Host: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nAccept: application/json\r\n".encode()
        self._buffer = bytearray()
        self.due = 0.0

    def send(self, method: str, path: str, body: bytes = b"", content_type: str = "application/json") -> None:
        """Send one request."""
        head = f"{method} {path} HTTP/1.1\r\nUser-Agent: load/1\r\nContent-Type: {content_type}\r\n".encode()
        self.socket.sendall(head + self._auth + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def receive(self) -> tuple[int, bytes] | None:
        """Read once from the socket. Return the code and the body of the answer, or None if it is not complete yet."""
        data = self.socket.recv(_CHUNK)
        if not data:
            raise RuntimeError("the server closed a connection")
        self._buffer += data
        head, found, rest = bytes(self._buffer).partition(b"\r\n\r\n")
        if not found:
            return None
        at = head.lower().index(b"content-length:")
        length = int(head[at + 15 :].split(b"\r\n", 1)[0])
        if len(rest) < length:
            return None
        self._buffer.clear()
        return int(head[9:12]), rest

    def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Send one request and wait for its answer."""
        self.send(method, path, body)
        while (answer := self.receive()) is None:
            pass
        return answer


@dataclass(slots=True)
class Tally:
    """The counts and times that a run has collected until now."""

    latencies: list[float] = field(default_factory=list)
    failures: int = 0
    events: int = 0
    event_bytes: int = 0
    cut: int = 0
    last_event: float = 0.0
    pages: list[float] = field(default_factory=list)
    page_bytes: int = 0


BASE: Final = "/api/v1/namespaces/default/configmaps"


def config_map(name: str, text: str) -> bytes:
    """Return a ConfigMap of 2 KiB, whose keys hold ``text`` and padding."""
    data = {f"key-{number}": (text + "x" * BODY_BYTES)[: BODY_BYTES // KEYS] for number in range(KEYS)}
    metadata = {"name": name, "labels": {"app": "load"}}
    return msgspec.json.encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


class Run:
    """One run of a load against a server."""

    def __init__(self, load: Load, port: int, token: str) -> None:
        self._load, self._port, self._token = load, port, token
        self._writers = [Writer(port, token) for _ in range(load.connections)]
        self._watchers: dict[int, socket.socket] = {}
        self._tally = Tally()
        self._sent = 0
        self._stored = 0
        self._buffer = bytearray(_CHUNK)
        self._spare: deque[str] = deque()

    def prepare(self) -> None:
        """Create the objects, list all of them, and open the watches."""
        busy = deque(self._writers)
        for number in range(self._load.objects):
            writer = busy.popleft()
            if writer.due:
                self._made(writer)
            writer.send("POST", BASE, config_map(f"load-{number}", str(number)))
            writer.due = 1.0
            busy.append(writer)
        for writer in busy:
            if writer.due:
                self._made(writer)
            writer.due = 0.0
        revision = self._list()
        for _ in range(self._load.watchers):
            self._watch(revision)

    def _made(self, writer: Writer) -> None:
        while (answer := writer.receive()) is None:
            pass
        if answer[0] != 201:
            raise RuntimeError(f"an object was not created: {answer}")
        self._stored += len(answer[1])

    def _list(self) -> str:
        token, revision = "", ""
        while True:
            start = time.monotonic()
            code, body = self._writers[0].ask("GET", f"{BASE}?limit={PAGE}" + (f"&continue={token}" if token else ""))
            self._tally.pages.append(time.monotonic() - start)
            self._tally.page_bytes += len(body)
            if code != 200:
                raise RuntimeError(f"a page was not listed: {body[:200]!r}")
            page = decode_json(body, max_bytes=len(body), what="page")
            token, revision = find_str(page, "metadata", "continue"), find_str(page, "metadata", "resourceVersion")
            if not token:
                return revision

    def _watch(self, revision: str) -> None:
        stream = socket.create_connection(("127.0.0.1", self._port))
        path = f"{BASE}?watch=1&resourceVersion={revision}&allowWatchBookmarks=true"
        stream.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {self._token}\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += stream.recv(1)
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"a watch was not opened: {head!r}")
        stream.setblocking(False)  # noqa: FBT003
        self._watchers[stream.fileno()] = stream

    def write(self) -> None:
        """Write with the rate and for the time that the load states, and then read the remaining answers."""
        poll = select.epoll()
        writers = {writer.socket.fileno(): writer for writer in self._writers}
        for descriptor in (*writers, *self._watchers):
            poll.register(descriptor, select.EPOLLIN)
        idle, waiting = deque(self._writers), 0
        start = time.monotonic()
        end = start + self._load.seconds
        step = 1 / self._load.rate if self._load.rate else 0.0
        due = start
        while (now := time.monotonic()) < end or waiting:
            while idle and due <= now < end:
                writer = idle.popleft()
                writer.due = due if step else now
                self._write(writer)
                waiting += 1
                due = due + step if step else now
            pause = 0.1 if not step or not idle else max(due - time.monotonic(), 0.0)
            for descriptor, _ in poll.poll(min(pause, 0.1)):
                found = writers.get(descriptor)
                if found is None:
                    self._drain(descriptor, poll)
                elif (answer := found.receive()) is not None:
                    self._tally.latencies.append(time.monotonic() - found.due)
                    self._tally.failures += answer[0] not in {200, 201}
                    idle.append(found)
                    waiting -= 1
            if now > end + PATIENCE_S:
                raise RuntimeError("the last writes were never answered")
        self._finished = time.monotonic()

    def settle(self) -> None:
        """Read the last events of the watches."""
        poll = select.epoll()
        for descriptor in self._watchers:
            poll.register(descriptor, select.EPOLLIN)
        until = time.monotonic() + SETTLE_S
        while time.monotonic() < until:
            for descriptor, _ in poll.poll(0.1):
                self._drain(descriptor, poll)

    def _drain(self, descriptor: int, poll: select.epoll) -> None:
        size = self._watchers[descriptor].recv_into(self._buffer)
        if size == 0:
            self._tally.cut += 1
            poll.unregister(descriptor)
            return
        self._tally.event_bytes += size
        self._tally.events += self._buffer.count(b'{"type":', 0, size)  # An event split between two reads is missed.
        self._tally.last_event = time.monotonic()

    def _write(self, writer: Writer) -> None:
        self._sent += 1
        number = self._sent
        verb = self._load.verb
        if verb == "mixed":
            verb = ("put", "patch", "create", "delete")[number % 4]
        name = f"load-{(number * 7919) % self._load.objects}"
        match verb:
            case "patch":
                body = b'{"data":{"key-1":"%d%s"}}' % (number, b"y" * (BODY_BYTES // KEYS - 8))
                writer.send("PATCH", f"{BASE}/{name}", body, "application/merge-patch+json")
            case "create":
                self._spare.append(f"more-{number}")
                writer.send("POST", BASE, config_map(f"more-{number}", str(number)))
            case "delete" if len(self._spare) > len(self._writers):
                writer.send("DELETE", f"{BASE}/{self._spare.popleft()}")
            case _:
                writer.send("PUT", f"{BASE}/{name}", config_map(name, f"{number}-"))

    def figures(self) -> Figures:
        """Return the figures of the run."""
        tally = self._tally
        ordered, pages = sorted(tally.latencies) or [0.0], sorted(tally.pages)
        return Figures(
            len(tally.latencies),
            tally.failures,
            ordered[len(ordered) // 2],
            ordered[len(ordered) * 99 // 100],
            ordered[-1],
            tally.events,
            tally.event_bytes,
            tally.cut,
            max(tally.last_event - self._finished, 0.0),
            len(pages),
            tally.page_bytes,
            pages[len(pages) * 99 // 100],
            self._stored,
        )


def main() -> None:
    """Run the load that the command line describes."""
    port, token, given = sys.argv[1:]
    run = Run(msgspec.json.decode(base64.b64decode(given), type=Load), int(port), token)
    run.prepare()
    print("prepared", flush=True)
    run.write()
    print("written", flush=True)
    run.settle()
    print(msgspec.json.encode(run.figures()).decode(), flush=True)


if __name__ == "__main__":
    main()
