"""The client end of the debug socket: an Inspector that asks a running daemon.

Code that prints snapshots works with this client as it does with the daemon's own Inspector, except that secrets arrive
redacted.
"""

import errno
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, cast
from urllib.parse import quote

import httpx
import msgspec

from wharfinger.debug.encoding.encoding import answer_from_json, pools_from_json, queues_from_json
from wharfinger.debug.encoding.node import nodes_from_json
from wharfinger.debug.encoding.package import package_from_json, packages_from_json
from wharfinger.debug.encoding.records import record_from_json
from wharfinger.debug.encoding.statistics import statistics_from_json
from wharfinger.debug.errors import DebugAnswerError, NoDaemonError
from wharfinger.debug.server.routes import (
    HOOK_METRICS,
    MAX_SETTINGS,
    METRICS,
    NO_CHART,
    NO_PACKAGE,
    RENDER,
    RENDER_FAILED,
    SETTINGS_VERSION,
    SHOW_SECRETS,
    VALIDATE,
    WHY,
)
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, encode_json
from wharfinger.formats.terminal_text import printable
from wharfinger.formats.text_width import shorten
from wharfinger.runtime.inspector import (
    DaemonSnapshot,
    ExplanationSnapshot,
    NodeSnapshot,
    PackageSnapshot,
    QueueSnapshot,
    RenderSnapshot,
    SettingsAnswer,
    StatisticsSnapshot,
    WarmPoolSnapshot,
)
from wharfinger.runtime.paths import SOCKET_VARIABLE

MAX_ANSWER_BYTES: Final = 256 * 1024 * 1024
_TIMEOUT: Final = httpx.Timeout(30.0, connect=5.0)
_RENDER_TIMEOUT: Final = httpx.Timeout(180.0, connect=5.0)
_REMEDY: Final = f"is `wharfinger run` running? (--socket / {SOCKET_VARIABLE})"


@asynccontextmanager
async def open_debug_client(path: Path) -> AsyncIterator["DebugClient"]:
    """Yield a client of the daemon that listens on ``path``. It connects with the first request."""
    # Not limited on purpose: a limited pool loses connections when requests are cancelled.
    limits = httpx.Limits(max_connections=None)
    # Never used on a Unix socket. It is made here because loading the default one takes longer than the request.
    no_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    transport = httpx.AsyncHTTPTransport(uds=str(path), limits=limits, verify=no_tls)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://daemon", timeout=_TIMEOUT, trust_env=False
    ) as client:
        yield DebugClient(path, client)


class DebugClient:
    """An Inspector. Every method raises NoDaemonError or DebugAnswerError if it cannot get an answer."""

    def __init__(self, path: Path, client: httpx.AsyncClient) -> None:
        self._path = path
        self._client = client

    async def daemon(self) -> DaemonSnapshot:
        """Return the state of the daemon itself."""
        answer = await self._ask("/api/v1/daemon")
        try:
            return record_from_json(answer, DaemonSnapshot, "daemon")
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def statistics(self) -> StatisticsSnapshot | None:
        """Return the daemon's counters, or None while it is starting and has none."""
        answer = await self._ask("/api/v1/statistics")
        try:
            return None if answer is None else statistics_from_json(answer)
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def metrics(self) -> str:
        """Return the daemon's own metrics, in Prometheus' text format."""
        return await self._text(METRICS)

    async def hook_metrics(self) -> str:
        """Return the metrics that hooks publish, in Prometheus' text format."""
        return await self._text(HOOK_METRICS)

    async def packages(self) -> tuple[PackageSnapshot, ...]:
        """Return all packages, sorted by name."""
        answer = await self._ask("/api/v1/packages/dump")
        try:
            return packages_from_json(answer)
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def package(self, name: str) -> PackageSnapshot | None:
        """Return one package by its runtime name, or None."""
        answer = await self._ask("/api/v1/packages/dump", name=name)
        try:
            return None if answer is None else package_from_json(answer)
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def queues(self) -> tuple[QueueSnapshot, ...]:
        """Return all queues, sorted by name."""
        answer = await self._ask("/api/v1/queues/dump")
        try:
            return queues_from_json(answer)
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def pools(self) -> tuple[WarmPoolSnapshot, ...]:
        """Return the pools of warm hooks that are open, sorted by name."""
        answer = await self._ask("/api/v1/pools/dump")
        try:
            return pools_from_json(answer)
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def scheduler(self) -> tuple[NodeSnapshot, ...]:
        """Return all nodes of the scheduler, sorted by name."""
        answer = await self._ask("/api/v1/scheduler/dump")
        try:
            return nodes_from_json(answer)
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def why(self, name: str) -> ExplanationSnapshot | None:
        """Explain the state of a package, or return None if there is no such package."""
        answer = await self._ask(WHY, package=name)
        try:
            return None if answer is None else record_from_json(answer, ExplanationSnapshot, "explanation")
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def render(self, name: str, *, show_secrets: bool = False) -> RenderSnapshot | None:
        """Return what a package would apply now, redacted unless ``show_secrets``; None if there is no such package."""
        parameters = {SHOW_SECRETS: "true"} if show_secrets else {}
        status, body = await self._fetch(RENDER + _quoted(name), parameters, _RENDER_TIMEOUT)
        text = body.decode("utf-8", "replace")
        match status:
            case httpx.codes.OK:
                return RenderSnapshot(text, problem="", has_chart=True)
            case httpx.codes.NOT_FOUND if text.startswith(NO_PACKAGE):
                return None
            case httpx.codes.BAD_REQUEST if text.strip() == NO_CHART:
                return RenderSnapshot("", problem="", has_chart=False)
            case httpx.codes.INTERNAL_SERVER_ERROR if text.startswith(RENDER_FAILED):
                return RenderSnapshot("", problem=text.removeprefix(RENDER_FAILED).rstrip("\n"), has_chart=True)
        raise self._refused(status, body)

    async def validate(self, name: str, settings: JsonObject, version: int = 0) -> SettingsAnswer | None:
        """Return whether a package would accept these settings; None if there is no such package."""
        try:
            question = encode_json(settings)
        except ShapeError as error:
            raise DebugAnswerError(f"these settings cannot be sent to the daemon: {error}") from error
        if len(question) > MAX_SETTINGS:
            raise DebugAnswerError(f"these settings cannot be sent to the daemon: more than {MAX_SETTINGS} bytes")
        path = VALIDATE + _quoted(name)
        status, body = await self._fetch(path, {SETTINGS_VERSION: str(version)}, _RENDER_TIMEOUT, question)
        if status == httpx.codes.NOT_FOUND and body.decode("utf-8", "replace").startswith(NO_PACKAGE):
            return None
        try:
            return answer_from_json(self._document(status, body))
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def _text(self, route: str) -> str:
        status, body = await self._fetch(route, {})
        if status != httpx.codes.OK:
            raise self._refused(status, body)
        return body.decode("utf-8", "replace")

    async def _ask(self, route: str, **parameters: str) -> JsonValue:
        return self._document(*await self._fetch(route, parameters))

    def _document(self, status: int, body: bytes) -> JsonValue:
        if status != httpx.codes.OK:
            raise self._refused(status, body)
        try:
            return cast("JsonValue", msgspec.json.decode(body))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._misunderstood(error) from error

    async def _fetch(
        self,
        route: str,
        parameters: Mapping[str, str],
        patience: httpx.Timeout = _TIMEOUT,
        question: bytes | None = None,
    ) -> tuple[int, bytes]:
        """Return the status and the body of the answer. A ``question`` is sent with POST."""
        method = "GET" if question is None else "POST"
        asking = self._client.stream(method, route, params=parameters, content=question, timeout=patience)
        try:
            async with asking as response:
                # The server sends the length of its answer first, so an endless answer is never read.
                size = int(response.headers.get("content-length", MAX_ANSWER_BYTES + 1))
                body = await response.aread() if size <= MAX_ANSWER_BYTES else b""
        except httpx.TimeoutException as error:
            raise NoDaemonError(
                f"the daemon on {self._path} does not answer in time; check whether it is stopped or busy"
            ) from error
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        if size > MAX_ANSWER_BYTES and response.status_code == httpx.codes.OK:
            raise self._misunderstood(f"the answer is not known to be below {MAX_ANSWER_BYTES} bytes")
        return response.status_code, body

    def _refused(self, status: int, body: bytes) -> DebugAnswerError:
        text = shorten(printable(body[:500].decode("utf-8", "replace").strip()), 300)
        return self._misunderstood(f"{status} {text}")

    def _misunderstood(self, why: object) -> DebugAnswerError:
        return DebugAnswerError(
            f"the daemon on {self._path} sent an answer that this command does not understand: {why};"
            " check that both have the same version (`wharfinger version`)"
        )

    def _unreachable(self, error: httpx.HTTPError) -> NoDaemonError:
        reason = next((cause for cause in _causes(error) if isinstance(cause, OSError)), None)
        match reason.errno if reason else None:
            case errno.ENOENT:
                return NoDaemonError(f"no daemon answers on {self._path}: no such socket; {_REMEDY}")
            case errno.ECONNREFUSED:
                return NoDaemonError(f"no daemon answers on {self._path}: the socket's daemon has exited; {_REMEDY}")
            case errno.EACCES | errno.EPERM:
                return NoDaemonError(
                    f"the socket {self._path} belongs to another user; run this as the daemon's user or as root"
                )
            case _:
                return NoDaemonError(
                    f"no daemon answers on {self._path}: {reason or str(error) or 'closed'}; {_REMEDY}"
                )


def _quoted(name: str) -> str:
    """Quote a name as the last part of a path. Dots are quoted too, because ``.`` and ``..`` would be resolved as folders."""
    return quote(name, safe="").replace(".", "%2E")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the causes of an error, outermost first, including the members of exception groups."""
    cause = error.__cause__ or error.__context__
    while cause is not None:
        yield cause
        if isinstance(cause, BaseExceptionGroup):
            for part in cause.exceptions:
                yield part
                yield from _causes(part)
        cause = cause.__cause__ or cause.__context__
