"""A read-only proxy to the API for one run of Helm, limited to the objects that the release may read.

A chart that calls `lookup` is rendered with ``--dry-run=server``, so Helm has to reach an API server. Helm does not get the
daemon's credentials. Instead, it gets the address of this proxy, which listens on loopback for as long as the run lasts, and
a token of that run. Every request is judged (:mod:`~wharfinger.cluster.releases.lookup_paths`). If it is allowed, it is repeated
with the daemon's own session, so Helm need not know how the daemon connects: TLS, exec plugins, rotated tokens, proxies and
impersonation stay in the daemon.

A refused request is answered with 403 and the remedy. The refusal is also recorded, so that the caller that ran Helm can
raise an error even if a template ignored the answer.
"""

import hmac
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import httpx
import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import Connection, bearer, without_userinfo
from wharfinger.cluster.api.discovery import AGGREGATED_ACCEPT
from wharfinger.cluster.api.errors import ApiError, ClusterError
from wharfinger.cluster.api.http_client import HttpClusterClient
from wharfinger.cluster.api.http_session import Call, ClientOptions, HttpSession, open_session
from wharfinger.cluster.api.kubeconfig_document import kubeconfig_document
from wharfinger.cluster.objects.scope import CLUSTER_SCOPED, remedy
from wharfinger.cluster.releases.lookup_paths import NotAllowed, Place, judge
from wharfinger.formats.json.value import JsonObject, encode_json, find_str
from wharfinger.formats.listing import listed
from wharfinger.httpd.messages import Request, Response
from wharfinger.httpd.server import HttpLimits, open_server

HOST: Final = "127.0.0.1"
MAX_REFUSALS: Final = 5
"""The limit on the number of refused lookups that one message names."""
LIMITS: Final = HttpLimits(
    header_bytes=16 * 1024, body_bytes=0, idle_s=60, header_read_s=5, body_read_s=5, write_s=30, connections=16
)
OPTIONS: Final = ClientOptions(concurrency=16)

_AGGREGATED: Final = re.compile(rb'"apiVersion"\s*:\s*"apidiscovery\.k8s\.io/(v2|v2beta1)"')
_BEGINNING: Final = 512
"""The number of bytes at the beginning of a discovery document in which its apiVersion is searched."""


class LookupRun:
    """The access to the cluster for one run of Helm. Made by `LookupAccess.open`."""

    def __init__(
        self, session: HttpSession, client: ClusterClient, namespace: str | None, port: int, user: str = ""
    ) -> None:
        """Prepare the access. Only `LookupAccess`, which listens on ``port``, may call this."""
        self._headers = (("Impersonate-User", user),) if user else ()
        self._session = session
        self._client = client
        self._namespace = namespace
        self._refused: dict[str, None] = {}
        token = bearer(secrets.token_urlsafe(32)).header(renew=False)
        self.kubeconfig = kubeconfig_document(Connection(f"http://{HOST}:{port}"), token)
        # Over plain HTTP, clients send only the credentials that the address contains.
        _, self._authorization = without_userinfo(find_str(self.kubeconfig, "clusters", 0, "cluster", "server"))

    @property
    def refusal(self) -> str:
        """Return the refused lookups, with the remedy; "" if no lookup was refused."""
        if not self._refused or self._namespace is None:
            return ""
        return self._words(listed(self._refused, MAX_REFUSALS), self._namespace)

    async def answer(self, request: Request) -> Response:
        """Answer one request of Helm."""
        said = request.headers.get("authorization", "")
        if not hmac.compare_digest(said.encode(), self._authorization.encode()):
            return _status(401, "Unauthorized", "this address serves only one run of helm")
        if request.method != "GET":
            return _status(405, "MethodNotAllowed", "a chart that is being rendered may only read from the cluster")
        judged = judge(request.path, request.query, self._namespace)
        if isinstance(judged, NotAllowed):
            return await self._refuse(request, judged.place)
        accept = AGGREGATED_ACCEPT if judged.is_index else "application/json"
        call = Call("GET", judged.path, f"look up {judged.path}", judged.params, accept=accept, headers=self._headers)
        try:
            body = await self._session.request(call)
        except ApiError as error:
            return _status(error.code, error.reason, error.message)
        except ClusterError as error:
            return _status(503, "ServiceUnavailable", str(error))
        aggregated = _AGGREGATED.search(body, 0, _BEGINNING) if judged.is_index else None
        if aggregated is None:
            return Response(200, body)
        form = f"application/json;g=apidiscovery.k8s.io;v={aggregated[1].decode()};as=APIGroupDiscoveryList"
        return Response(200, body, form)

    async def _refuse(self, request: Request, place: Place | None) -> Response:
        if place is None or self._namespace is None:
            return _status(403, "Forbidden", f"a chart that is being rendered may not read {request.path[:200]}")
        name = await self._name(place)
        if len(self._refused) <= MAX_REFUSALS * 10:
            self._refused[name] = None
        return _status(403, "Forbidden", self._words(name, self._namespace))

    async def _name(self, place: Place) -> str:
        """Return the name of a place for messages: ``Secret web/login``, ``all Secret objects``."""
        try:
            resource = await self._client.find_resource(place.plural, place.api_version)
            kind, scope = resource.group_kind, "" if resource.namespaced else CLUSTER_SCOPED
        except ClusterError:
            kind, scope = place.plural, ""
        if not place.name:
            return f"all {kind} objects" + (f" of the namespace {place.namespace}" if place.namespace else scope)
        return f"{kind} {place.namespace}/{place.name}" if place.namespace else f"{kind} {place.name}{scope}"

    @staticmethod
    def _words(what: str, namespace: str) -> str:
        return (
            f"its chart looks up {what}, outside of the namespace {namespace}, to which an Application is confined; "
            f"{remedy(namespace)}"
        )


class LookupAccess:
    """The access of charts to the cluster. Made by `open_lookup_access`."""

    def __init__(self, session: HttpSession, nursery: trio.Nursery) -> None:
        self._session = session
        self._nursery = nursery
        self._client = HttpClusterClient(session)

    @asynccontextmanager
    async def open(self, namespace: str | None, user: str = "") -> AsyncGenerator[LookupRun, None]:
        """Answer the requests of one run of Helm while the block runs; leaving the block ends the access immediately.

        ``namespace``: the only namespace whose objects may be read; None: the whole cluster. ``user``: the user that the daemon
        impersonates for the requests; empty: none.
        """
        listeners = await trio.open_tcp_listeners(0, host=HOST)
        look = LookupRun(self._session, self._client, namespace, listeners[0].socket.getsockname()[1], user)
        scope: trio.CancelScope = await self._nursery.start(_serve, listeners, look)
        try:
            yield look
        finally:
            scope.cancel(reason="the run is over")


async def _serve(
    listeners: Sequence[trio.abc.Listener[trio.abc.Stream]],
    look: LookupRun,
    task_status: trio.TaskStatus[trio.CancelScope],
) -> None:
    with trio.CancelScope() as scope:
        async with open_server(listeners, look.answer, LIMITS):
            task_status.started(scope)
            await trio.sleep_forever()


@asynccontextmanager
async def open_lookup_access(
    connection: Connection, *, transport: httpx.AsyncBaseTransport | None = None
) -> AsyncIterator[LookupAccess]:
    """Keep a session for lookups while the block runs. With ``transport``, no connection is opened (in-memory servers, tests)."""
    async with open_session(connection, OPTIONS, transport) as session, trio.open_nursery() as nursery:
        yield LookupAccess(session, nursery)
        nursery.cancel_scope.cancel()


def _status(code: int, reason: str, message: str) -> Response:
    document: JsonObject = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    return Response(code, encode_json(document))
