"""Calls of webhooks over HTTPS.

A webhook is a URL or a Service. For a Service, the first ready address of its EndpointSlices is called, and the certificate must
name ``<service>.<namespace>.svc``. Each call has a time limit, and each answer a size limit.
"""

import base64
import binascii
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import httpx
import trio

from wharfinger.control_plane.api.discovery.endpoint_slices import SERVICE_NAME
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.objects.amounts import number, text
from wharfinger.control_plane.objects.lenient_fields import part, parts, texts
from wharfinger.control_plane.storage.interface import Collection
from wharfinger.formats.json.value import JsonObject, encode_json, find

HTTPS_PORT: Final = 443
_SLICES: Final = Collection("discovery.k8s.io", "endpointslices")
_SERVICES: Final = Collection("", "services")


class CallFailedError(Exception):
    """The call of a webhook failed, for example because no answer came in time. The message is kube-apiserver's."""


@dataclass(frozen=True, slots=True)
class Target:
    """The address of a webhook, the name that its certificate must have, and the URL that errors name."""

    url: str
    host: str
    shown: str


@dataclass(frozen=True, slots=True)
class Reply:
    """The HTTP status and the body of an answer."""

    code: int
    body: bytes


class WebhookClient:
    """The client for the webhooks of one control plane. ``transport`` replaces the network in tests."""

    def __init__(self, backend: Backend, transport: Callable[[], httpx.AsyncBaseTransport] | None = None) -> None:
        self._backend = backend
        self._transport = transport

    async def send(self, config: JsonObject, document: JsonObject, timeout_s: int, max_bytes: int) -> Reply:
        """Send a review to the webhook that a ``clientConfig`` names, and return its answer. Raises CallFailedError."""
        target, trust = self._target(config), _trust(config)
        transport = httpx.AsyncHTTPTransport(verify=trust) if self._transport is None else self._transport()
        where = f'Post "{target.shown}?timeout={timeout_s}s"'
        try:
            with trio.fail_after(timeout_s):
                async with httpx.AsyncClient(transport=transport, timeout=None, trust_env=False) as client:  # noqa: S113
                    return await _post(client, target, encode_json(document), timeout_s, max_bytes)
        except trio.TooSlowError as error:
            raise CallFailedError(f"{where}: context deadline exceeded") from error
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, OSError) as error:
            raise CallFailedError(f"{where}: {error}") from error

    def _target(self, client: JsonObject) -> Target:
        """Return the target that a ``clientConfig`` names: a URL, or an address behind a Service. Raises CallFailedError."""
        service = part(client, "service")
        if service is None:
            url = text(client, "url")
            return Target(url, "", url)
        namespace, name = text(service, "namespace"), text(service, "name")
        port, path = number(service, "port") or HTTPS_PORT, text(service, "path").lstrip("/")
        host = f"{name}.{namespace}.svc"
        address, at = self._endpoint(namespace, name, port)
        shown = f"[{address}]" if ":" in address else address
        return Target(f"https://{shown}:{at}/{path}", host, f"https://{host}:{port}/{path}")

    def _endpoint(self, namespace: str, name: str, port: int) -> tuple[str, int]:
        """Return an address and a port behind a Service. Raises CallFailedError."""
        services = [one for one in self._objects_in(namespace, _SERVICES) if text(one, "metadata", "name") == name]
        if not services:
            raise CallFailedError(f'service "{name}" not found')
        named = next(
            (text(one, "name") for one in parts(services[0], "spec", "ports") if number(one, "port") == port), None
        )
        if named is None:
            raise CallFailedError(f'no service port {port} found for service "{name}"')
        for found in self._objects_in(namespace, _SLICES):
            if find(found, "metadata", "labels", SERVICE_NAME) != name:
                continue
            ports = [number(one, "port") for one in parts(found, "ports") if text(one, "name") == named]
            for endpoint in parts(found, "endpoints"):
                if ports and texts(endpoint, "addresses") and find(endpoint, "conditions", "ready") is not False:
                    return texts(endpoint, "addresses")[0], ports[0]
        raise CallFailedError(f'no endpoints available for service "{name}"')

    def _objects_in(self, namespace: str, collection: Collection) -> list[JsonObject]:
        stored = self._backend.storage.list(collection)
        return [one for one in stored if text(one, "metadata", "namespace") == namespace]


async def _post(client: httpx.AsyncClient, target: Target, body: bytes, timeout_s: int, max_bytes: int) -> Reply:
    """Send one review; the answer is read up to a limit. Raises CallFailedError."""
    headers = {"content-type": "application/json", "accept": "application/json"}
    extensions: dict[str, str] = {}
    if target.host:
        headers["host"], extensions["sni_hostname"] = target.host, target.host
    params = {"timeout": f"{timeout_s}s"}
    request = client.build_request(
        "POST", target.url, content=body, headers=headers, params=params, extensions=extensions
    )
    answer = await client.send(request, stream=True)
    try:
        read = bytearray()
        async for chunk in answer.aiter_bytes():
            read += chunk
            if len(read) > max_bytes:
                raise CallFailedError(f"the answer is larger than {max_bytes} bytes")
        return Reply(answer.status_code, bytes(read))
    finally:
        with trio.CancelScope(shield=True):
            await answer.aclose()


def _trust(client: JsonObject) -> ssl.SSLContext:
    """Return TLS settings that trust the webhook's ``caBundle``, or the default CAs if there is none. Raises CallFailedError."""
    bundle = text(client, "caBundle")
    context = ssl.create_default_context()
    if bundle:
        try:
            context = ssl.create_default_context(cadata=base64.b64decode(bundle).decode("ascii"))
        except (binascii.Error, ValueError, ssl.SSLError) as error:
            raise CallFailedError(f"unable to load root certificates: {error}") from error
    return context
