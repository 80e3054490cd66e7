"""A network on which one request fails once, and the record of all requests.

A request is identified by its method, its path, whether it is a watch, and the number of equal requests before it. So the same
request fails even if tasks run in another order.
"""

import json
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import httpx
import trio

from wharfinger.formats.json.value import JsonObject

BUSY_S: Final = 40
"""A time longer than the client itself waits, so that the engine gets the error."""


class Fault(StrEnum):
    """The way in which a request fails."""

    SILENCE = "silence"
    """The server never answers."""
    RESET_BEFORE = "reset before"
    """The connection breaks before the server gets the request."""
    RESET_AFTER = "reset after"
    """The connection breaks after the server has carried out the request."""
    CONFLICT = "conflict"
    BUSY = "busy"
    ERROR = "error"
    GONE = "gone"
    """A watch is answered with 410."""
    EXPIRED = "expired"
    """A watch begins, and its first event is a 410."""


@dataclass(frozen=True, slots=True, order=True)
class Call:
    """One request of a run, identified in a way that is the same in all runs."""

    method: str
    path: str
    watch: bool
    before: int

    def __str__(self) -> str:
        """Return a text such as ``PATCH /api/v1/namespaces/web/secrets/web #2``."""
        return f"{'WATCH' if self.watch else self.method} {self.path} #{self.before + 1}"

    def faults(self) -> tuple[Fault, ...]:
        """Return the faults that a server or a network may cause for this request."""
        both = (Fault.SILENCE, Fault.RESET_BEFORE, Fault.RESET_AFTER, Fault.BUSY, Fault.ERROR)
        if self.watch:
            return (*both, Fault.GONE, Fault.EXPIRED)
        return both if self.method == "GET" else (*both, Fault.CONFLICT)


class FaultyNetwork(httpx.AsyncBaseTransport):
    """A transport that passes requests on, except the one that fails. It counts requests only while it is armed."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner
        self._seen: Counter[tuple[str, str, bool]] = Counter()
        self._fault: tuple[Call, Fault] | None = None
        self._armed = False
        self.calls: list[Call] = []
        self.hit = False

    def arm(self, fault: tuple[Call, Fault] | None = None) -> None:
        """Begin to count requests, and let the given one fail."""
        self._fault = fault
        self._armed = True

    def disarm(self) -> None:
        """Stop counting requests."""
        self._armed = False

    @property
    def writes(self) -> list[Call]:
        """Return the requests that were not reads."""
        return [call for call in self.calls if call.method != "GET"]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Pass a request on, or let it fail."""
        if not self._armed:
            return await self._inner.handle_async_request(request)
        watch = request.url.params.get("watch") in {"1", "true"}
        kind = (request.method, request.url.path, watch)
        call = Call(*kind, self._seen[kind])
        self._seen[kind] += 1
        self.calls.append(call)
        if self._fault is None or call != self._fault[0]:
            return await self._inner.handle_async_request(request)
        self.hit = True
        return await self._go_wrong(request, call, self._fault[1])

    async def _go_wrong(self, request: httpx.Request, call: Call, fault: Fault) -> httpx.Response:
        await trio.lowlevel.checkpoint()
        if fault is Fault.SILENCE:
            await trio.sleep_forever()
        if fault is Fault.RESET_AFTER:
            if call.watch:
                return httpx.Response(200, stream=_Broken(b""))
            response = await self._inner.handle_async_request(request)
            await response.aclose()
        if fault in {Fault.RESET_BEFORE, Fault.RESET_AFTER}:
            raise httpx.ReadError("connection reset by peer")
        if fault is Fault.CONFLICT:
            reason = "AlreadyExists" if call.method == "POST" else "Conflict"
            return _failure(409, reason, "the object has been modified; apply your changes to the latest version")
        if fault is Fault.BUSY:
            return _failure(429, "TooManyRequests", "too many requests", {"retry-after": str(BUSY_S)})
        if fault is Fault.GONE:
            return _failure(410, "Expired", "too old resource version")
        if fault is Fault.EXPIRED:
            status = _status(410, "Expired", "too old resource version")
            return httpx.Response(200, stream=_Broken(json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"))
        return _failure(500, "InternalError", "etcdserver: leader changed")


class _Broken(httpx.AsyncByteStream):
    """A response body that sends some bytes, after which the connection breaks."""

    def __init__(self, said: bytes) -> None:
        self._said = said

    async def __aiter__(self) -> AsyncIterator[bytes]:
        await trio.lowlevel.checkpoint()
        if self._said:
            yield self._said
        raise httpx.ReadError("connection reset by peer")


def _status(code: int, reason: str, message: str) -> JsonObject:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


def _failure(code: int, reason: str, message: str, headers: dict[str, str] | None = None) -> httpx.Response:
    return httpx.Response(code, headers=headers, json=_status(code, reason, message))
