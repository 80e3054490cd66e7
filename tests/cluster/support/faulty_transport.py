"""A transport that answers from a script, with faults that no well-behaved server has."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

import httpx
import msgspec
import trio

from wharfinger.formats.json.value import JsonObject


class Hang:
    """An entry in a list of chunks: no more data arrives, until the reader gives up."""


@dataclass
class Until:
    """An entry in a list of chunks: no more data arrives before this event is set."""

    event: trio.Event


Chunk = bytes | Exception | Hang | Until


@dataclass
class Reply:
    """One answer. Its chunks are sent unchanged in order, and an exception among the chunks is raised in its place."""

    status: int = 200
    chunks: Sequence[Chunk] = ()
    headers: dict[str, str] = field(default_factory=dict)


Answer = Reply | Exception | Hang
Script = Callable[[httpx.Request], Answer]


class ScriptedStream(httpx.AsyncByteStream):
    """The stream that sends the body of a `Reply`."""

    def __init__(self, transport: "FaultyTransport", chunks: Sequence[Chunk]) -> None:
        self._transport = transport
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            await trio.lowlevel.checkpoint()
            if isinstance(chunk, Exception):
                raise chunk
            if isinstance(chunk, Hang):
                await trio.sleep_forever()
            elif isinstance(chunk, Until):
                await chunk.event.wait()
            else:
                yield chunk

    async def aclose(self) -> None:
        self._transport.open_streams -= 1


class FaultyTransport(httpx.AsyncBaseTransport):
    """A transport that asks ``script`` for each answer, records the requests, and counts open bodies."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.requests: list[httpx.Request] = []
        self.open_streams = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await trio.lowlevel.checkpoint()
        self.requests.append(request)
        answer = self._script(request)
        if isinstance(answer, Hang):
            await trio.sleep_forever()
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Reply)
        self.open_streams += 1
        return httpx.Response(answer.status, headers=answer.headers, stream=ScriptedStream(self, answer.chunks))

    @property
    def paths(self) -> list[str]:
        """Return method and path of each request so far, without queries, such as ``GET /api/v1/pods``."""
        return [f"{request.method} {request.url.path}" for request in self.requests]


def in_turn(*answers: Answer) -> Script:
    """Return a script that gives each answer once, in this order. It fails at a further request."""
    left = list(answers)

    def script(request: httpx.Request) -> Answer:
        assert left, f"one request too many: {request.method} {request.url}"
        return left.pop(0)

    return script


def json_reply(document: JsonObject, status: int = 200, headers: dict[str, str] | None = None) -> Reply:
    """Return an answer with a JSON document in one chunk."""
    return Reply(status, [msgspec.json.encode(document)], {"content-type": "application/json", **(headers or {})})


def status_reply(code: int, reason: str, message: str, headers: dict[str, str] | None = None) -> Reply:
    """Return a failure with the body that an API server sends."""
    document: JsonObject = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }
    return json_reply(document, code, headers)


def event(kind: str, obj: JsonObject) -> bytes:
    """Return one event as a line of a watch."""
    return msgspec.json.encode({"type": kind, "object": obj}) + b"\n"
