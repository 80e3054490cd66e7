"""A handler that injects the faults of the plan into requests, in front of the control plane's handler.

Partitions, latencies, ``drop-before`` and errors are injected before a request is processed, in the order of the rules. Then
the request is processed, perhaps on an older state. Faults of the response are injected last.
"""

import logging
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Final, TypeAlias

import trio

from wharfinger.control_plane.catalog.catalog import Catalog
from wharfinger.control_plane.faults.plan import first_state, step
from wharfinger.control_plane.faults.rule import (
    Call,
    CutWatch,
    DropAfter,
    DropBefore,
    ErrorAnswer,
    Fault,
    Latency,
    Partition,
    Rule,
    SlowList,
    StaleRead,
)
from wharfinger.control_plane.http.object_requests import verb_of
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.bodies import encode
from wharfinger.control_plane.wire.negotiation import Encoding
from wharfinger.control_plane.wire.routes import ResourceRoute, parse_route
from wharfinger.httpd.messages import Answer, CutError, Handler, NoAnswer, Request, Response, StreamingResponse

log: Final = logging.getLogger(__name__)
PIECE_BYTES: Final = 16 * 1024
Chunks: TypeAlias = Callable[[], AbstractAsyncContextManager[AsyncIterator[bytes]]]


class FaultyHandler:
    """A ``Handler`` that injects faults in front of another handler.

    ``past(n)`` returns a handler whose reads show the state n revisions ago; ``injected`` counts the faults by rule.
    """

    def __init__(
        self,
        inner: Handler,
        catalog: Catalog,
        rules: Sequence[Rule],
        *,
        seed: int,
        past: Callable[[int], Handler],
        injected: Counter[str],
    ) -> None:
        self._inner = inner
        self._catalog = catalog
        self._rules = tuple(rules)
        self._seed = seed
        self._past = past
        self._state = first_state(self._rules)
        self._began = trio.current_time()
        self._injected = injected

    async def __call__(self, request: Request) -> Answer:
        call = self._call(request)
        if call is None:
            return await self._inner(request)
        self._state, hit = step(self._rules, self._state, call, self._now(), seed=self._seed)
        faults = [self._rules[index].fault for index in hit]
        for index in hit:
            self._injected[self._rules[index].name] += 1
            log.info(
                "fault %s: %s %s %s/%s", self._rules[index].name, call.verb, call.resource, call.namespace, call.name
            )
        before = await self._before(faults)
        if before is not None:
            return before
        back = next((fault.back for fault in faults if isinstance(fault, StaleRead)), 0)
        answer = await (self._past(back) if back else self._inner)(request)
        if any(isinstance(fault, DropAfter) for fault in faults):
            return NoAnswer()
        return self._after(answer, faults, call)

    def _now(self) -> float:
        return trio.current_time() - self._began

    def _call(self, request: Request) -> Call | None:
        """Return the properties of a request that fault rules match; None for requests without a resource (health, discovery,
        metrics).
        """
        route = parse_route(request.path)
        if not isinstance(route, ResourceRoute):
            return None
        served = self._catalog.find(route.group, route.version, route.plural)
        resource = f"{route.plural}.{route.group}" if route.group else route.plural
        kind = served.kind.kind if served is not None else ""
        agent = request.headers.get("user-agent", "")
        return Call(verb_of(route, request), resource, kind, route.namespace, route.name, agent)

    async def _before(self, faults: Sequence[Fault]) -> Answer | None:
        """Inject the faults before a request; return the answer if a fault ends the request."""
        for fault in faults:
            match fault:
                case Partition() if (until := fault.until(self._now())) is not None:
                    await trio.sleep_until(self._began + until)
                    return NoAnswer()
                case Latency(delay_s):
                    await trio.sleep(delay_s)
                case DropBefore():
                    return NoAnswer()
                case ErrorAnswer():
                    return _failure(fault)
                case _:
                    pass
        return None

    def _after(self, answer: Answer, faults: Sequence[Fault], call: Call) -> Answer:
        if isinstance(answer, StreamingResponse):
            cuts = [fault for fault in faults if isinstance(fault, CutWatch)]
            events = min((cut.events for cut in cuts if cut.events is not None), default=None)
            ends = [cut.after_s for cut in cuts if cut.after_s is not None]
            ends += [until - self._now() for until in self._partitions(call)]
            if events is None and not ends:
                return answer
            return replace(answer, open_chunks=_cut(answer.open_chunks, events, min(ends, default=None)))
        slow = next((fault for fault in faults if isinstance(fault, SlowList)), None)
        if slow is not None and isinstance(answer, Response):
            chunks = _slowly(answer.body, slow.delay_s)
            return StreamingResponse(answer.status, chunks, answer.content_type, answer.headers)
        return answer

    def _partitions(self, call: Call) -> list[float]:
        """Return the start times of the next partitions, each of which would cut the stream of this request."""
        found = (
            rule.fault.next(self._now())
            for rule in self._rules
            if isinstance(rule.fault, Partition) and rule.selection.fits(call)
        )
        return [begin for begin in found if begin is not None]


def _failure(fault: ErrorAnswer) -> Response:
    details = {"retryAfterSeconds": fault.retry_after_s} if fault.retry_after_s else None
    error = status.StatusError(fault.code, fault.reason, fault.message, None if details is None else {**details})
    headers = (("retry-after", str(fault.retry_after_s)),) if fault.retry_after_s else ()
    return Response(fault.code, encode(error.body(), Encoding.JSON), "application/json", headers)


def _cut(open_chunks: Chunks, events: int | None, after_s: float | None) -> Chunks:
    @asynccontextmanager
    async def opened() -> AsyncGenerator[AsyncIterator[bytes], None]:
        async with open_chunks() as chunks:
            yield _until_cut(chunks, events, after_s)

    return opened


async def _until_cut(
    chunks: AsyncIterator[bytes], events: int | None, after_s: float | None
) -> AsyncGenerator[bytes, None]:
    left = events
    deadline = None if after_s is None else trio.current_time() + max(0.0, after_s)
    while left is None or left > 0:
        with trio.CancelScope(deadline=float("inf") if deadline is None else deadline) as scope:
            try:
                chunk = await anext(chunks)
            except StopAsyncIteration:
                return
        if scope.cancelled_caught:
            break
        lines = chunk.splitlines(keepends=True)
        if left is not None:
            lines = lines[:left]
            left -= len(lines)
        yield b"".join(lines)
    raise CutError


def _slowly(body: bytes, delay_s: float) -> Chunks:
    async def pieces() -> AsyncGenerator[bytes, None]:
        for start in range(0, len(body), PIECE_BYTES):
            await trio.sleep(delay_s)
            yield body[start : start + PIECE_BYTES]

    @asynccontextmanager
    async def opened() -> AsyncGenerator[AsyncIterator[bytes], None]:
        yield pieces()

    return opened
