"""Metrics for scrapers over the network: GET requests for five of the debug server's paths, and nothing else.

Any process that reaches the port may send requests. Therefore the port is closed by default, no path changes anything, and
``/readyz`` does not return the reason for its verdict. Many requests cost the daemon little: there are at most CONNECTIONS
connections, requests have no body, and the metrics of one path and query are collected at most once in FRESH_S seconds.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import trio

from wharfinger.debug.addresses import HOOK_METRICS, HOOKS, METRICS
from wharfinger.debug.errors import MetricsAddressError
from wharfinger.debug.server.routes import make_handler
from wharfinger.formats.terminal_text import printable
from wharfinger.httpd.messages import Answer, Handler, Request, Response
from wharfinger.httpd.server import HttpLimits, open_server
from wharfinger.runtime.inspector import Inspector

log = logging.getLogger(__name__)

HEALTH: Final = "/healthz"
LIVE: Final = "/livez"
READY: Final = "/readyz"
PATHS: Final = (METRICS, HOOK_METRICS, HEALTH, LIVE, READY)
CONNECTIONS: Final = 16
FRESH_S: Final = 1.0
MAX_PORT: Final = 65_535
_ASKED: Final[tuple[tuple[str, ...], ...]] = (("false",), ("true",))
"""The allowed values of the query parameter that selects the hooks' metrics; the first is the default."""
_MAX_SHOWN: Final = 100
LIMITS: Final = HttpLimits(
    header_bytes=8 * 1024,
    body_bytes=0,
    idle_s=120,
    header_read_s=5,
    body_read_s=5,
    write_s=30,
    connections=CONNECTIONS,
    linger_bytes=256 * 1024,
    useless_pause_s=0.02,
    piece_pause_s=0.01,
)


@dataclass(frozen=True, slots=True)
class MetricsAddress:
    """The address to listen on. ``host`` "" means every address of this machine, ``port`` 0 any free port."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return the address as the user writes it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_metrics_address(text: str) -> MetricsAddress:
    """Parse ``HOST:PORT``, ``[::1]:PORT``, or ``:PORT`` for every address. Raises MetricsAddressError."""
    host, colon, digits = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    if not colon or bracketed != (":" in host) or printable(host) != host or " " in host:
        raise MetricsAddressError(
            f"{_quoted(text)}: expected an address to listen on: HOST:PORT, [IPv6]:PORT, or :PORT for all"
        )
    if not (digits.isascii() and digits.isdigit() and len(digits) <= len(str(MAX_PORT)) and int(digits) <= MAX_PORT):
        raise MetricsAddressError(f"{_quoted(text)}: expected a port number up to {MAX_PORT}")
    return MetricsAddress(host, int(digits))


@asynccontextmanager
async def open_metrics_listener(address: MetricsAddress, inspector: Inspector) -> AsyncIterator[int]:
    """Answer scrapers on ``address`` until the ``async with`` block is left; requests in flight are still answered.

    Yields the port. Raises MetricsAddressError if the address cannot be listened on.
    """
    try:
        listeners = await trio.open_tcp_listeners(address.port, host=address.host or None)
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise MetricsAddressError(f"cannot serve metrics on {address}: {why}; choose another address") from error
    port: int = listeners[0].socket.getsockname()[1]
    async with open_server(listeners, make_metrics_handler(inspector), LIMITS):
        log.info("serving metrics on %s", MetricsAddress(address.host, port))
        yield port


def make_metrics_handler(inspector: Inspector) -> Handler:
    """Make the handler of the listener for metrics. It passes requests for PATHS to the handler of the debug server, and keeps
    metrics for FRESH_S seconds.
    """
    ask = make_handler(inspector)
    kept = {(path, hooks): _Kept() for path in (METRICS, HOOK_METRICS) for hooks in _ASKED}

    async def handle(request: Request) -> Answer:
        if request.path not in PATHS:
            return _text(404, f"no such path; known: {', '.join(PATHS)}")
        if request.method != "GET":
            return _text(405, "this path only answers GET", ("Allow", "GET"))
        wanted = request.path, request.query.get(HOOKS, _ASKED[0])
        if request.query.keys() - {HOOKS} or wanted[1] not in _ASKED:
            # Answers are cached by path and query, so each query must have only one spelling.
            return _text(400, f"unknown query; known: {METRICS}?{HOOKS}=true and {METRICS}?{HOOKS}=false")
        if request.path == READY:
            return _without_reason(await ask(request))
        found = kept.get(wanted)
        return await (ask(request) if found is None else found.answer(lambda: ask(request)))

    return handle


def _without_reason(answer: Answer) -> Answer:
    """Return the verdict and the leader without the reason, which is only for users of the debug socket."""
    if not isinstance(answer, Response):
        return answer
    verdict = "ready" if answer.status == HTTPStatus.OK else "not ready"
    leader = answer.body.decode().removesuffix("\n").partition("\n")[2]
    return _text(answer.status, f"{verdict}\n{leader}" if leader else verdict)


class _Kept:
    """An answer that is computed for one request, and then returned to all requests of the next FRESH_S seconds."""

    def __init__(self) -> None:
        self._made: Answer | None = None
        self._until = 0.0
        self._making = trio.Lock()

    async def answer(self, make: Callable[[], Awaitable[Answer]]) -> Answer:
        async with self._making:
            if self._made is None or trio.current_time() >= self._until:
                self._made = await make()
                self._until = trio.current_time() + FRESH_S
            return self._made


def _text(status: int, text: str, *headers: tuple[str, str]) -> Response:
    return Response(status, f"{text}\n".encode(), "text/plain; charset=utf-8", headers)


def _quoted(text: str) -> str:
    return repr(printable(text[:_MAX_SHOWN]))
