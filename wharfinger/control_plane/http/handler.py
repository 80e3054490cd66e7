"""The HTTP handler of the control plane: routing, authentication, authorization, and the form of every answer."""

import logging
import re
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from time import monotonic
from typing import Final

from wharfinger.control_plane.access.impersonation import impersonated, impersonates
from wharfinger.control_plane.access.request_authorization import attributes_of, authorize
from wharfinger.control_plane.access.role_rules import Attributes
from wharfinger.control_plane.access.users import Authenticator, User, misplaced_space
from wharfinger.control_plane.admission.webhooks import VerdictsNeededError
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.webhook_conversions import ConversionsNeededError
from wharfinger.control_plane.discovery.health import PLAIN
from wharfinger.control_plane.http.allowed_methods import NotServedError
from wharfinger.control_plane.http.commits import Commits
from wharfinger.control_plane.http.document_requests import Documents
from wharfinger.control_plane.http.metrics import Metrics, Series, series_of
from wharfinger.control_plane.http.object_requests import Answer, WatchAnswer, handle_resource, verb_of
from wharfinger.control_plane.http.pod_commands import PodCommands
from wharfinger.control_plane.http.response_forms import document_response, with_common_headers
from wharfinger.control_plane.http.webhook_calls import WebhookCalls
from wharfinger.control_plane.special_endpoints.endpoint import PodCommand
from wharfinger.control_plane.storage.interface import StorageError
from wharfinger.control_plane.verbs.watching import ChangeSignals, watch_events
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.negotiation import Encoding, Representation, error_representation
from wharfinger.control_plane.wire.routes import BrokenRoute, ResourceRoute, Route, parse_route
from wharfinger.httpd.messages import Request, Response, StreamingResponse, Upgrade
from wharfinger.kube.access_rules import Access, JudgedRequest

log: Final = logging.getLogger(__name__)
WARNINGS_CHARS: Final = 4096
"""The maximum length of all warnings of one answer, in characters; further warnings are omitted (as in kube-apiserver)."""
WARNING_CHARS: Final = 256
"""The length in characters to which each warning is truncated if all together are longer than ``WARNINGS_CHARS``."""
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SPACE: Final = "the provided Authorization header contains extra space before the bearer token, and is ignored"
_PAGE_NOT_FOUND: Final = Response(404, b"404 page not found\n", PLAIN, (("x-content-type-options", "nosniff"),))


class ControlPlaneHandler:
    """The ``Handler`` (:mod:`wharfinger.httpd.messages`) that answers every request to the control plane."""

    def __init__(self, backend: Backend, signals: ChangeSignals, authenticator: Authenticator) -> None:
        self._backend = backend
        self._signals = signals
        self._authenticator = authenticator
        self.metrics = Metrics()
        self.audit: Callable[[JudgedRequest], None] | None = None
        """An observer of answered requests; None without an observer."""
        self.commands: PodCommands | None = None
        """The runner of commands in Pods; None if this server does not run commands."""
        self.documents = Documents(backend, self.metrics)
        self._commits = Commits(backend)
        self._webhooks = WebhookCalls(backend)

    @property
    def address(self) -> str:
        """Return the server's address as ``/api`` names it."""
        return self.documents.address

    @address.setter
    def address(self, address: str) -> None:
        self.documents.address = address

    def _report(
        self,
        route: Route,
        request: Request,
        response: Response | StreamingResponse,
        audit: Callable[[JudgedRequest], None],
    ) -> None:
        """Report an answered request to ``audit``. Requests of unknown users, and requests with broken paths, are left out."""
        if isinstance(route, BrokenRoute):
            return
        try:
            user = self._authenticator.user(request.headers)
        except status.StatusError:
            return
        if isinstance(route, ResourceRoute):
            asked = attributes_of(user, route, verb_of(route, request), request.arg("fieldSelector"))
        else:
            asked = Attributes(user=user, verb=request.method.lower(), path=request.path)
        access = Access(asked.group, asked.combined_resource, asked.verb, asked.namespace, asked.path)
        name = request.headers.get("impersonate-user", "") or user.name
        message = (
            response.body.decode(errors="replace") if isinstance(response, Response) and response.status >= 400 else ""
        )
        audit(JudgedRequest(name, request.headers.get("user-agent", ""), access, asked.name, response.status, message))

    def reading(self, backend: Backend) -> "ControlPlaneHandler":
        """Return a handler that answers from another backend, and shares the metrics of this handler."""
        other = ControlPlaneHandler(backend, self._signals, self._authenticator)
        other.metrics, other.documents, other.commands = self.metrics, self.documents, self.commands
        return other

    def pace_watches(self, seconds: float) -> None:
        """Set the time in seconds that watches of a busy collection wait between two chunks (``ChangeSignals.pace_s``)."""
        self._signals.pace_s = seconds

    async def __call__(self, request: Request) -> Response | StreamingResponse | Upgrade:
        began = monotonic()
        route = parse_route(request.path)
        self.metrics.in_flight(request.method, 1)
        try:
            response = await self._judged(route, request)
            try:
                await self._commits.settle()
            except StorageError as error:
                response = _uncommitted(request, error)
        finally:
            self.metrics.in_flight(request.method, -1)
        self.metrics.count(series_of(self._backend.catalog, route, request), response.status, monotonic() - began)
        if self.audit is not None and not isinstance(response, Upgrade):
            self._report(route, request, response, self.audit)
        return with_common_headers(request, response)

    async def _judged(self, route: Route, request: Request) -> Response | StreamingResponse | Upgrade:
        """Answer a request. If the request needs answers of webhooks, call the webhooks, and try the request again."""
        try:
            return self._answered(route, request)
        except (VerdictsNeededError, ConversionsNeededError):
            pass
        try:
            return await self._webhooks.with_answers(lambda: self._answered(route, request))
        except status.StatusError as error:
            return _failure(request, error)

    def _answered(self, route: Route, request: Request) -> Response | StreamingResponse | Upgrade:
        try:
            return self._answer(route, request)
        except status.StatusError as error:
            log.debug("%s %s: %d %s", request.method, request.path, error.code, error.message)
            return _failure(request, error)
        except NotServedError:
            return _PAGE_NOT_FOUND
        except StorageError as error:
            return _uncommitted(request, error)

    def _answer(self, route: Route, request: Request) -> Response | StreamingResponse | Upgrade:
        if isinstance(route, BrokenRoute):
            return _broken(request.path)
        user = self._authorized(route, request)
        if isinstance(route, ResourceRoute):
            answer = handle_resource(self._backend, user, route, request)
            if isinstance(answer, WatchAnswer):
                return self._stream(answer, series_of(self._backend.catalog, route, request))
            if isinstance(answer, PodCommand):
                if self.commands is None:
                    raise status.bad_request("this server does not run commands in Pods")
                return self.commands.answer(request, answer)
            return _response(request, answer)
        return self.documents.answer(route, request)

    def _authorized(self, route: Route, request: Request) -> User:
        """Return the user of a request, if the user may make the request. Raises StatusError (401, 403)."""
        user = self._authenticator.user(request.headers)
        if user.administrator and not impersonates(request.headers):
            return user
        if isinstance(route, ResourceRoute):
            asked = attributes_of(user, route, verb_of(route, request), request.arg("fieldSelector"))
        else:
            asked = Attributes(user=user, verb=request.method.lower(), path=request.path)
        user = impersonated(self._backend, user, request.headers, asked)
        authorize(self._backend, asked if user is asked.user else replace(asked, user=user))
        return user

    def _stream(self, answer: WatchAnswer, series: Series) -> StreamingResponse:
        converting = self._webhooks.with_answers

        @asynccontextmanager
        async def open_chunks() -> AsyncIterator[AsyncIterator[bytes]]:
            self.metrics.watches[series] += 1
            try:
                async with aclosing(
                    watch_events(self._backend, self._signals, answer.watch, answer.render, converting)
                ) as events:
                    yield events
            finally:
                self.metrics.watches[series] -= 1

        return StreamingResponse(200, open_chunks, answer.representation.content_type, _warnings(answer.warnings))


def _warnings(texts: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the Warning headers (RFC 7234 §5.5) without repetitions.

    If they are longer than ``WARNINGS_CHARS`` together, each is truncated. If they are still too long, the last ones are omitted.
    """
    texts = tuple(text for text in dict.fromkeys(texts) if text and not _CONTROL.search(text))
    if sum(map(len, texts)) > WARNINGS_CHARS:
        texts = tuple(text[:WARNING_CHARS] for text in texts)
    headers, written = [], 0
    for text in texts:
        if written >= WARNINGS_CHARS:
            break
        written += len(text)
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        headers.append(("warning", f'299 - "{escaped}"'))
    return tuple(headers)


def _broken(path: str) -> Response:
    why = f"failed to create RequestInfo: unable to determine kind and namespace from url, {path}"
    return Response(500, f'Internal Server Error: "{path}": {why}\n'.encode(), PLAIN, _PAGE_NOT_FOUND.headers)


def _response(request: Request, answer: Answer) -> Response:
    if answer.text == "":
        return Response(204, b"", "", _warnings(answer.warnings))
    if answer.text is not None:
        return Response(answer.code, answer.text.encode(), "text/plain", _warnings(answer.warnings))
    return document_response(request, answer.document, answer.representation, answer.code, _warnings(answer.warnings))


def _uncommitted(request: Request, error: StorageError) -> Response:
    log.warning("%s %s: %s", request.method, request.path, error)
    return _failure(request, status.internal(str(error)))


def _failure(request: Request, error: status.StatusError) -> Response:
    headers = (("retry-after", str(error.retry_after)),) if error.retry_after else ()
    spaced = misplaced_space(request.headers.get("authorization", ""))
    headers = (*headers, *_warnings((_SPACE, *error.warnings) if spaced else error.warnings))
    found = error_representation(request.headers.get("accept", ""))
    representation = Representation(Encoding.JSON, pretty=True) if found is None else found
    return document_response(request, error.body(), representation, error.code, headers)
