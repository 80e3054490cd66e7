"""Webhooks that the control plane calls over real TLS: what they get, what their answers do, and what happens without one."""

import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
import trio

from tests.control_plane.admission.test_webhooks import configuration
from tests.control_plane.support.bench import new_plane, send
from wharfinger.control_plane.access.certificates import new_authority, server_context
from wharfinger.control_plane.service import ControlPlane
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_str
from wharfinger.httpd.limits import HttpLimits
from wharfinger.httpd.messages import Answer, Request, Response
from wharfinger.httpd.server import open_server

WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def allow(_request: JsonObject) -> JsonObject:
    return {"allowed": True}


@dataclass
class Hook:
    """A webhook server: ``judge`` answers a request, ``seen`` are those that came."""

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
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        return Response(200, json.dumps(body).encode())


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[Hook, ControlPlane]]:
    """A webhook server on loopback, and a control plane."""
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


async def test_a_webhook_judges_every_verb_and_gets_both_objects() -> None:
    async with serving() as (hook, plane):
        await configure(hook, plane)
        assert (await send(plane, "POST", CONFIG_MAPS, config_map(x="1"))).code == 201
        changed = await send(
            plane, "PATCH", f"{CONFIG_MAPS}/a", {"data": {"x": "2"}}, content_type="application/merge-patch+json"
        )
        assert (changed.code, find(changed.body, "data", "x")) == (200, "2")
        assert (await send(plane, "DELETE", f"{CONFIG_MAPS}/a")).code == 200
        assert [find(one, "operation") for one in hook.seen] == ["CREATE", "UPDATE", "DELETE"]
        assert [find(one, "object", "data", "x") for one in hook.seen] == ["1", "2", None]
        assert [find(one, "oldObject", "data", "x") for one in hook.seen] == [None, "1", "2"]
        assert len({find_str(one, "uid") for one in hook.seen}) == 3


async def test_a_denied_write_changes_nothing_and_says_why() -> None:
    async with serving() as (hook, plane):
        await configure(hook, plane)
        hook.judge = lambda _: {
            "allowed": False,
            "status": {"code": 403, "reason": "Forbidden", "message": "not today"},
        }
        answer = await send(plane, "POST", CONFIG_MAPS, config_map())
        assert answer.code == 403
        assert find(answer.body, "message") == 'admission webhook "c.example.com" denied the request: not today'
        assert (await send(plane, "GET", f"{CONFIG_MAPS}/a")).code == 404


async def test_warnings_reach_the_client_once() -> None:
    async with serving() as (hook, plane):
        await configure(hook, plane)
        hook.judge = lambda _: {"allowed": True, "warnings": ["be careful"]}
        answer = await send(plane, "POST", CONFIG_MAPS, config_map())
        assert (answer.code, answer.headers.get("warning")) == (201, '299 - "be careful"')


async def test_a_generated_name_does_not_ask_for_ever() -> None:
    async with serving() as (hook, plane):
        await configure(hook, plane)
        made: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}}
        assert (await send(plane, "POST", CONFIG_MAPS, made)).code == 201
        assert len(hook.seen) == 1


async def test_an_object_that_changes_while_a_webhook_is_called_is_judged_anew() -> None:
    async with serving() as (hook, plane):
        assert (await send(plane, "POST", CONFIG_MAPS, config_map(x="1"))).code == 201
        await configure(hook, plane)

        async def change(data: JsonObject) -> JsonObject:
            merge = "application/merge-patch+json"
            return (await send(plane, "PATCH", f"{CONFIG_MAPS}/a", {"data": data}, content_type=merge)).body

        async def meanwhile() -> None:
            hook.before = None
            await change({"x": "9"})

        hook.before = meanwhile
        assert find(await change({"mine": "1"}), "data") == {"x": "9", "mine": "1"}
        assert [find(one, "object", "data") for one in hook.seen] == [
            {"x": "9"},
            {"x": "1", "mine": "1"},
            {"x": "9", "mine": "1"},
        ]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("policy", "code"), [("Fail", 500), ("Ignore", 201)])
@pytest.mark.parametrize("fault", ["garbage", "error", "hangs", "refused", "untrusted"])
async def test_a_webhook_that_does_not_answer_is_handled_by_the_failure_policy(
    policy: str, code: int, fault: str
) -> None:
    async with serving() as (hook, plane):
        client: JsonObject = {"url": hook.url, "caBundle": hook.ca}
        if fault == "refused":
            client["url"] = "https://127.0.0.1:1/validate"
        if fault == "untrusted":
            client["caBundle"] = base64.b64encode(new_authority(datetime.now(UTC)).pem.encode()).decode()
        await configure(hook, plane, failurePolicy=policy, timeoutSeconds=1, clientConfig=client)
        hook.raw = {"garbage": Response(200, b"<html>"), "error": Response(503, b"away")}.get(fault)
        hook.hangs = fault == "hangs"
        answer = await send(plane, "POST", CONFIG_MAPS, config_map())
        assert answer.code == code
        if policy == "Fail":
            assert 'failed calling webhook "c.example.com": failed to call webhook' in find_str(answer.body, "message")


async def test_a_service_is_called_at_its_endpoints() -> None:
    async with serving() as (hook, plane):
        service: JsonObject = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "kubernetes-hook"},
            "spec": {"ports": [{"name": "https", "port": 8443}]},
        }
        assert (await send(plane, "POST", "/api/v1/namespaces/default/services", service)).code == 201
        client: JsonObject = {
            "service": {"namespace": "default", "name": "kubernetes-hook", "port": 8443, "path": "/validate"},
            "caBundle": hook.ca,
        }
        await configure(hook, plane, clientConfig=client, timeoutSeconds=1)
        answer = await send(plane, "POST", CONFIG_MAPS, config_map())
        assert 'no endpoints available for service "kubernetes-hook"' in find_str(answer.body, "message")
        endpoints: JsonObject = {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": "k", "labels": {"kubernetes.io/service-name": "kubernetes-hook"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["192.0.2.1"]}],
            "ports": [{"name": "https", "port": hook.port}],
        }
        slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
        assert (await send(plane, "POST", slices, endpoints)).code == 201
        answer = await send(plane, "POST", CONFIG_MAPS, config_map())
        assert 'Post "https://kubernetes-hook.default.svc:8443/validate?timeout=1s"' in find_str(answer.body, "message")
