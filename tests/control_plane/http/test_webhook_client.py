"""Calls of webhooks over real TLS, by URL and by Service, and the effect of the failure policy if a call fails."""

import base64
from datetime import UTC, datetime

import pytest

from tests.control_plane.support.bench import send
from tests.control_plane.support.webhook_server import CONFIG_MAPS, config_map, configure, serving
from wharfinger.control_plane.access.certificates import new_authority
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.httpd.messages import Response


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("policy", "code"), [("Fail", 500), ("Ignore", 201)])
@pytest.mark.parametrize("fault", ["garbage", "error", "hangs", "refused", "untrusted"])
async def test_an_unavailable_webhook_follows_the_failure_policy(policy: str, code: int, fault: str) -> None:
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


async def test_a_service_webhook_is_called_at_its_endpoints() -> None:
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
