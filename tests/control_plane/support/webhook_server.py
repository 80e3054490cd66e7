"""A webhook server over real TLS, and the objects that register it with a control plane."""

import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import trio

from tests.control_plane.admission.test_webhooks import configuration
from tests.control_plane.support.bench import new_plane, send
from wharfinger.control_plane.access.certificates import new_authority, server_context
from wharfinger.control_plane.service import ControlPlane
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.httpd.limits import HttpLimits
from wharfinger.httpd.messages import Answer, Request, Response
from wharfinger.httpd.server import open_server

WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def allow(_request: JsonObject) -> JsonObject:
    return {"allowed": True}


@dataclass
class Hook:
    """A webhook server. ``judge`` returns the answer to a request, and ``seen`` has the received requests."""

    port: int
    ca: str
    judge: Callable[[JsonObject], JsonObject] = allow
    seen: list[JsonObject] = field(default_factory=list)
    raw: Response | None = None
    hangs: bool = False
    over: trio.Event = field(default_factory=trio.Event)
    before: Callable[[], Awaitable[None]] | None = None

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/validate"

    async def answer(self, request: Request) -> Answer:
        if self.before is not None:
            await self.before()
        review = json.loads(request.body)
        self.seen.append(review["request"])
        if self.hangs:
            await self.over.wait()
        if self.raw is not None:
            return self.raw
        response = {"uid": review["request"]["uid"], **self.judge(review["request"])}
        body = {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
        return Response(200, json.dumps(body).encode())


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[Hook, ControlPlane]]:
    """Serve a webhook server on loopback, and yield it with a new control plane."""
    now = datetime.now(UTC)
    authority = new_authority(now)
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    context = server_context(authority, "127.0.0.1", now)
    secure = [trio.SSLListener(listener, context, https_compatible=True) for listener in listeners]
    hook = Hook(listeners[0].socket.getsockname()[1], base64.b64encode(authority.pem.encode()).decode())
    with trio.fail_after(60):
        async with open_server(secure, hook.answer, HttpLimits()):
            yield hook, new_plane()
            hook.over.set()


async def configure(hook: Hook, plane: ControlPlane, **webhook: JsonValue) -> None:
    client: JsonObject = {"url": hook.url, "caBundle": hook.ca}
    made = configuration("c", **{"clientConfig": client, **webhook})
    assert (await send(plane, "POST", WEBHOOKS, made)).code == 201


def config_map(name: str = "a", **data: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {**data}}


MUTATING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


async def configure_mutating(hook: Hook, plane: ControlPlane, *names: str, **webhook: JsonValue) -> None:
    client: JsonObject = {"url": hook.url, "caBundle": hook.ca}
    for name in names:
        made = configuration(name, **{"clientConfig": client, **webhook})
        assert (await send(plane, "POST", MUTATING, {**made, "kind": "MutatingWebhookConfiguration"})).code == 201


def patch(*operations: JsonValue) -> JsonObject:
    text = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": text}


def set_data(name: str, value: str) -> JsonObject:
    return {"op": "add", "path": f"/data/{name}", "value": value}
