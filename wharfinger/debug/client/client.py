"""The client end of the debug socket: an :class:`~wharfinger.runtime.inspector.Inspector` that queries a running daemon.

Code that prints snapshots works in the same way with this client and with the Inspector inside the daemon. The only difference
is that the client receives redacted values instead of secrets, unless it requests a render with secrets.
"""

from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import quote

import msgspec

from wharfinger.debug.addresses import (
    AFTER,
    DIFFERENCE,
    EVENTS,
    HISTORY,
    HOOK_METRICS,
    LOGS,
    MAX_SETTINGS,
    MEMORY,
    METRICS,
    NO_CHART,
    NO_PACKAGE,
    PROFILE,
    RENDER,
    RENDER_FAILED,
    REQUIREMENTS,
    RESOURCES,
    SECONDS,
    SETTINGS_VERSION,
    SHOW_SECRETS,
    SNAPSHOTS,
    TASKS,
    UNAVAILABLE,
    VALIDATE,
    WHY,
)
from wharfinger.debug.client.exchange import ESCAPED, MAX_ANSWER_BYTES, Exchange, Question, exchange_blocking
from wharfinger.debug.encoding.records import record_from_json
from wharfinger.debug.errors import DebugAnswerError
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, encode_json
from wharfinger.formats.terminal_text import printable
from wharfinger.formats.text_width import shorten
from wharfinger.kube.times import format_exact_time

if TYPE_CHECKING:  # each method imports what it needs, so that a command starts quickly
    from wharfinger.debug.profile.profile import ProfileSnapshot
    from wharfinger.runtime.daemon_details import (
        DaemonSnapshot,
        MemorySnapshot,
        RequirementsSnapshot,
        StatisticsSnapshot,
        WarmPoolSnapshot,
    )
    from wharfinger.runtime.inspector import (
        HistorySnapshot,
        PackageSnapshot,
        QueueSnapshot,
        RenderSnapshot,
        RepositorySnapshot,
        SettingsAnswer,
    )
    from wharfinger.runtime.package_details import (
        ClusterEventSnapshot,
        DaemonTaskSnapshot,
        DifferenceSnapshot,
        HookSnapshotsSnapshot,
        LogSnapshot,
        ResourceSnapshot,
    )
    from wharfinger.runtime.scheduler_details import ExplanationSnapshot, NodeSnapshot

_ANSWER_S: Final = 30.0
_RENDER_S: Final = 180.0
_MAX_REASON: Final = 64 * 1024


class DebugClient:
    """An :class:`~wharfinger.runtime.inspector.Inspector` that sends its questions to a daemon.

    Every method raises NoDaemonError or DebugAnswerError if it cannot get an answer. With `exchange_blocking`, the default, the
    methods block the thread; run them with `run_without_loop`.
    """

    def __init__(self, path: Path, exchange: Exchange = exchange_blocking, *, wait_s: float = _ANSWER_S) -> None:
        self._path = path
        self._exchange = exchange
        self._wait_s = wait_s

    async def daemon(self) -> "DaemonSnapshot":
        """Return the state of the daemon itself."""
        from wharfinger.runtime.daemon_details import DaemonSnapshot  # noqa: PLC0415

        answer = await self._ask("/api/v1/daemon")
        try:
            return record_from_json(answer, DaemonSnapshot, "daemon")
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def statistics(self) -> "StatisticsSnapshot | None":
        """Return the daemon's counters, or None while it is starting."""
        from wharfinger.debug.encoding.statistics import statistics_from_json  # noqa: PLC0415

        answer = await self._ask("/api/v1/statistics")
        try:
            return None if answer is None else statistics_from_json(answer)
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def memory(self) -> "MemorySnapshot":
        """Return the memory of the daemon by part, and that of its child processes by program."""
        from wharfinger.runtime.daemon_details import MemorySnapshot  # noqa: PLC0415

        answer = await self._ask(MEMORY)
        try:
            return record_from_json(answer, MemorySnapshot, "memory")
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def metrics(self) -> str:
        """Return the daemon's own metrics, in Prometheus' text format."""
        return await self._text(METRICS)

    async def hook_metrics(self) -> str:
        """Return the metrics that hooks publish, in Prometheus' text format."""
        return await self._text(HOOK_METRICS)

    async def packages(self) -> "tuple[PackageSnapshot, ...]":
        """Return all packages, sorted by name."""
        from wharfinger.debug.encoding.package import packages_from_json  # noqa: PLC0415

        answer = await self._ask("/api/v1/packages/dump")
        try:
            return packages_from_json(answer)
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def package(self, name: str) -> "PackageSnapshot | None":
        """Return one package by its runtime name, or None."""
        from wharfinger.debug.encoding.package import package_from_json  # noqa: PLC0415

        answer = await self._ask("/api/v1/packages/dump", name=name)
        try:
            return None if answer is None else package_from_json(answer)
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def queues(self) -> "tuple[QueueSnapshot, ...]":
        """Return all queues, sorted by name."""
        from wharfinger.debug.encoding.encoding import queues_from_json  # noqa: PLC0415

        answer = await self._ask("/api/v1/queues/dump")
        try:
            return queues_from_json(answer)
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def pools(self) -> "tuple[WarmPoolSnapshot, ...]":
        """Return the pools of Python interpreters, persistent hooks and WorkerPools, sorted by name."""
        from wharfinger.debug.encoding.encoding import pools_from_json  # noqa: PLC0415

        answer = await self._ask("/api/v1/pools/dump")
        try:
            return pools_from_json(answer)
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def repositories(self) -> "tuple[RepositorySnapshot, ...]":
        """Return all PackageRepositories, sorted by name."""
        from wharfinger.debug.encoding.encoding import repositories_from_json  # noqa: PLC0415

        answer = await self._ask("/api/v1/repositories/dump")
        try:
            return repositories_from_json(answer)
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def scheduler(self) -> "tuple[NodeSnapshot, ...]":
        """Return all nodes of the scheduler, sorted by name."""
        from wharfinger.debug.encoding.node import nodes_from_json  # noqa: PLC0415

        answer = await self._ask("/api/v1/scheduler/dump")
        try:
            return nodes_from_json(answer)
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def why(self, name: str, at: datetime | None = None) -> "ExplanationSnapshot | None":
        """Explain the state of a package, now or at a time; None if the package or its state at that time is not known."""
        from wharfinger.runtime.scheduler_details import ExplanationSnapshot  # noqa: PLC0415

        moment = {} if at is None else {"at": format_exact_time(at)}
        answer = await self._ask(WHY, package=name, **moment)
        try:
            return None if answer is None else record_from_json(answer, ExplanationSnapshot, "explanation")
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def history(self, name: str) -> "HistorySnapshot | None":
        """Return the last events of a package, or None if no event is known."""
        from wharfinger.runtime.inspector import HistorySnapshot  # noqa: PLC0415

        answer = await self._ask(HISTORY, package=name)
        try:
            return None if answer is None else record_from_json(answer, HistorySnapshot, "history")
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def resources(self, name: str) -> "tuple[ResourceSnapshot, ...] | None":
        """Return the objects of a package's release, or None if there is no such package."""
        from wharfinger.debug.encoding.details import resources_from_json  # noqa: PLC0415

        answer = await self._ask(RESOURCES, package=name)
        try:
            return None if answer is None else resources_from_json(answer)
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def events(self, name: str | None) -> "tuple[ClusterEventSnapshot, ...] | None":
        """Return the Events about a package or, without a name, those that daemons wrote; None if there is no such package."""
        from wharfinger.debug.encoding.details import events_from_json  # noqa: PLC0415

        status, body = await self._fetch(EVENTS, {} if name is None else {"package": name})
        answer = self._available(status, body)
        try:
            return None if answer is None else events_from_json(answer)
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def logs(self, name: str, after: int = 0) -> "LogSnapshot | None":
        """Return the kept log lines of a package that follow line number ``after``; None if the package is unknown."""
        from wharfinger.runtime.package_details import LogSnapshot  # noqa: PLC0415

        answer = await self._ask(LOGS, package=name, **{AFTER: str(after)})
        try:
            return None if answer is None else record_from_json(answer, LogSnapshot, "log")
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def difference(self, name: str) -> "DifferenceSnapshot | None":
        """Return what the next apply of a package would change, redacted; None if there is no such package."""
        from wharfinger.runtime.package_details import DifferenceSnapshot  # noqa: PLC0415

        answer = self._document(*await self._fetch(DIFFERENCE, {"package": name}, _RENDER_S))
        try:
            return None if answer is None else record_from_json(answer, DifferenceSnapshot, "diff")
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def hook_snapshots(self, name: str) -> "tuple[HookSnapshotsSnapshot, ...] | None":
        """Return the snapshots that the hooks of a package would get now, redacted; None if there is no such package."""
        from wharfinger.debug.encoding.details import snapshots_from_json  # noqa: PLC0415

        if not name:
            return None
        status, body = await self._fetch(SNAPSHOTS + _quoted(name), {})
        if status == HTTPStatus.NOT_FOUND and body.decode("utf-8", "replace").startswith(NO_PACKAGE):
            return None
        try:
            return snapshots_from_json(self._document(status, body))
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def tasks(self) -> "tuple[DaemonTaskSnapshot, ...]":
        """Return the trio tasks of the daemon, as a tree."""
        from wharfinger.debug.encoding.details import tasks_from_json  # noqa: PLC0415

        answer = await self._ask(TASKS)
        try:
            return tasks_from_json(answer)
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def profile(self, seconds: float) -> "ProfileSnapshot":
        """Profile the daemon's process for ``seconds``, and return the profile."""
        from wharfinger.debug.encoding.profile import profile_from_json  # noqa: PLC0415

        parameters = {SECONDS: f"{seconds:g}"}
        status, body = await self._fetch(PROFILE, parameters, seconds + self._wait_s, streamed=True)
        if status == HTTPStatus.OK and not body:
            raise DebugAnswerError(f"the daemon on {self._path} was stopped before the profile was complete")
        try:
            return profile_from_json(self._available(status, body))
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def requirements(self) -> "RequirementsSnapshot | None":
        """Return the facts that packages may require, such as the version of Kubernetes; None before they are known."""
        from wharfinger.runtime.daemon_details import RequirementsSnapshot  # noqa: PLC0415

        answer = await self._ask(REQUIREMENTS)
        try:
            return None if answer is None else record_from_json(answer, RequirementsSnapshot, "requirements")
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def render(self, name: str, *, shown_to: str = "", show_secrets: bool = False) -> "RenderSnapshot | None":
        """Return the objects that a package would apply now, as text; None if there is no such package.

        Secrets are redacted, unless ``show_secrets`` is true or ``shown_to`` is not empty. The value of ``shown_to`` is not
        sent to the daemon, because the daemon asks the kernel which user is connected.
        """
        from wharfinger.runtime.inspector import RenderSnapshot  # noqa: PLC0415

        parameters = {SHOW_SECRETS: "true"} if show_secrets or shown_to else {}
        status, body = await self._fetch(RENDER + _quoted(name), parameters, _RENDER_S)
        text = body.decode("utf-8", "replace")
        match status:
            case HTTPStatus.OK:
                return RenderSnapshot(text, problem="", has_chart=True)
            case HTTPStatus.NOT_FOUND if text.startswith(NO_PACKAGE):
                return None
            case HTTPStatus.BAD_REQUEST if text.strip() == NO_CHART:
                return RenderSnapshot("", problem="", has_chart=False)
            case HTTPStatus.INTERNAL_SERVER_ERROR if text.startswith(RENDER_FAILED):
                return RenderSnapshot("", problem=text.removeprefix(RENDER_FAILED).rstrip("\n"), has_chart=True)
        raise self._refused(status, body)

    async def validate(self, name: str, settings: JsonObject, version: int = 0) -> "SettingsAnswer | None":
        """Check these settings with the schema and the rules of a package, and return the result; None if there is no such
        package. ``version`` is the version of the settings' schema; 0 means the newest one.
        """
        from wharfinger.debug.encoding.encoding import answer_from_json  # noqa: PLC0415

        try:
            question = encode_json(settings)
        except ShapeError as error:
            raise DebugAnswerError(f"these settings cannot be sent to the daemon: {error}") from error
        if len(question) > MAX_SETTINGS:
            raise DebugAnswerError(f"these settings cannot be sent to the daemon: more than {MAX_SETTINGS} bytes")
        path = VALIDATE + _quoted(name)
        status, body = await self._fetch(path, {SETTINGS_VERSION: str(version)}, _RENDER_S, question)
        if status == HTTPStatus.NOT_FOUND and body.decode("utf-8", "replace").startswith(NO_PACKAGE):
            return None
        try:
            return answer_from_json(self._document(status, body))
        except ShapeError as error:
            raise self._misunderstood(error) from error

    async def _text(self, route: str) -> str:
        status, body = await self._fetch(route, {})
        if status != HTTPStatus.OK:
            raise self._refused(status, body)
        return body.decode("utf-8", "replace")

    async def _ask(self, route: str, **parameters: str) -> JsonValue:
        return self._document(*await self._fetch(route, parameters))

    def _available(self, status: int, body: bytes) -> JsonValue:
        """Return the JSON document in an answer. If the daemon answers that the document is not available, raise
        DebugAnswerError with the reason."""
        text = body[:_MAX_REASON].decode("utf-8", "replace")
        if status == HTTPStatus.SERVICE_UNAVAILABLE and text.startswith(UNAVAILABLE):
            raise DebugAnswerError(text.removeprefix(UNAVAILABLE).rstrip("\n"))
        return self._document(status, body)

    def _document(self, status: int, body: bytes) -> JsonValue:
        if status != HTTPStatus.OK:
            raise self._refused(status, body)
        try:
            return cast("JsonValue", msgspec.json.decode(body))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._misunderstood(error) from error

    async def _fetch(
        self,
        route: str,
        parameters: Mapping[str, str],
        wait_s: float | None = None,
        body: bytes | None = None,
        *,
        streamed: bool = False,
    ) -> tuple[int, bytes]:
        """Send a request, and return the status and the body of the answer. A request with a ``body`` is a POST."""
        reply = await self._exchange(self._path, Question(route, parameters, wait_s or self._wait_s, body, streamed))
        if reply.body is None and reply.status == HTTPStatus.OK:
            raise self._misunderstood(f"the answer has no length, or is larger than {MAX_ANSWER_BYTES} bytes")
        return reply.status, reply.body or b""

    def _refused(self, status: int, body: bytes) -> DebugAnswerError:
        text = shorten(printable(body[:500].decode("utf-8", "replace").strip()), 300)
        return self._misunderstood(f"{status} {text}")

    def _misunderstood(self, why: object) -> DebugAnswerError:
        return DebugAnswerError(
            f"the daemon on {self._path} sent an answer that this command does not understand: {why};"
            " check that both have the same version (`wharfinger version`)"
        )


def _quoted(name: str) -> str:
    """Quote a name as the last part of a path. Dots are quoted too, because ``.`` and ``..`` would be resolved as folders."""
    return quote(name, safe="", errors=ESCAPED).replace(".", "%2E")
