"""The calls of admission webhooks over HTTPS, between two attempts of a write
(:mod:`~wharfinger.control_plane.admission.webhooks`).

A webhook is a URL, or a Service: then the first ready address of its EndpointSlices is called, and its certificate must name
``<service>.<namespace>.svc``. Each call has the webhook's own time limit. All webhooks that are missing are called at once.
"""

import base64
import binascii
import ssl
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

import httpx
import trio

from wharfinger.control_plane.admission.webhook_reviews import (
    API_VERSION,
    KIND,
    MAX_ANSWER_BYTES,
    Verdict,
    read_verdict,
)
from wharfinger.control_plane.admission.webhooks import VERDICTS, VerdictsNeededError, WebhookCall
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.objects.amounts import number, text
from wharfinger.control_plane.objects.lenient_fields import part, parts, texts
from wharfinger.control_plane.storage.interface import Collection
from wharfinger.control_plane.wire import status
from wharfinger.formats.json.value import JsonObject, encode_json, find

HTTPS_PORT: Final = 443
MAX_ROUNDS: Final = 64
"""The largest number of attempts of one request: its object may change meanwhile, and it may delete many objects."""
Result = TypeVar("Result")
_SLICES: Final = Collection("discovery.k8s.io", "endpointslices")
_SERVICES: Final = Collection("", "services")


class AddressError(Exception):
    """The webhook has no address."""


@dataclass(frozen=True, slots=True)
class Target:
    """The address of a webhook, the name that its certificate must have, and the URL that errors name."""

    url: str
    host: str
    shown: str


class WebhookCalls:
    """The caller of one control plane. ``transport`` replaces the network in tests."""

    def __init__(self, backend: Backend, transport: Callable[[], httpx.AsyncBaseTransport] | None = None) -> None:
        self._backend = backend
        self._transport = transport

    async def with_verdicts(self, attempt: Callable[[], Result]) -> Result:
        """Return the result of an attempt that has all the verdicts that it needs. Raises StatusError."""
        known: dict[str, Verdict] = {}
        seed = self._backend.draw(2**63)
        for _ in range(MAX_ROUNDS):
            token = VERDICTS.set(known)
            try:
                with self._backend.drawing_from(seed):  # the names that are generated are those that were judged
                    return attempt()
            except VerdictsNeededError as needed:
                calls = needed.calls
            finally:
                VERDICTS.reset(token)
            async with trio.open_nursery() as nursery:
                for call in calls:
                    nursery.start_soon(self._call, call, known)
        raise status.internal_error("the object changes each time that its webhooks are called; try again")

    async def _call(self, call: WebhookCall, known: dict[str, Verdict]) -> None:
        known[call.key] = await self._verdict(call)

    async def _verdict(self, call: WebhookCall) -> Verdict:
        uid = str(uuid.uuid4())
        body = encode_json({"kind": KIND, "apiVersion": API_VERSION, "request": {**call.review, "uid": uid}})
        try:
            target, trust = self._target(call.client), _trust(call.client)
        except AddressError as error:
            return Verdict(failed=str(error))
        transport = httpx.AsyncHTTPTransport(verify=trust) if self._transport is None else self._transport()
        where = f'Post "{target.shown}?timeout={call.timeout_s}s"'
        try:
            with trio.fail_after(call.timeout_s):
                async with httpx.AsyncClient(transport=transport, timeout=None, trust_env=False) as client:  # noqa: S113
                    return await _post(client, target, body, uid, call.timeout_s)
        except trio.TooSlowError:
            return Verdict(failed=f"{where}: context deadline exceeded")
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, OSError) as error:
            return Verdict(failed=f"{where}: {error}")

    def _target(self, client: JsonObject) -> Target:
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
        """Return an address and a port behind a Service. Raises AddressError."""
        services = [one for one in self._in(namespace, _SERVICES) if text(one, "metadata", "name") == name]
        if not services:
            raise AddressError(f'service "{name}" not found')
        named = next(
            (text(one, "name") for one in parts(services[0], "spec", "ports") if number(one, "port") == port), None
        )
        if named is None:
            raise AddressError(f'no service port {port} found for service "{name}"')
        for found in self._in(namespace, _SLICES):
            if find(found, "metadata", "labels", "kubernetes.io/service-name") != name:
                continue
            ports = [number(one, "port") for one in parts(found, "ports") if text(one, "name") == named]
            for endpoint in parts(found, "endpoints"):
                if ports and texts(endpoint, "addresses") and find(endpoint, "conditions", "ready") is not False:
                    return texts(endpoint, "addresses")[0], ports[0]
        raise AddressError(f'no endpoints available for service "{name}"')

    def _in(self, namespace: str, collection: Collection) -> list[JsonObject]:
        stored = self._backend.storage.list(collection)
        return [one for one in stored if text(one, "metadata", "namespace") == namespace]


async def _post(client: httpx.AsyncClient, target: Target, body: bytes, uid: str, timeout_s: int) -> Verdict:
    """Send one review; the answer is read up to a limit."""
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
            if len(read) > MAX_ANSWER_BYTES:
                return Verdict(failed=f"the answer is larger than {MAX_ANSWER_BYTES} bytes")
        return read_verdict(answer.status_code, bytes(read), uid)
    finally:
        with trio.CancelScope(shield=True):
            await answer.aclose()


def _trust(client: JsonObject) -> ssl.SSLContext:
    """Return TLS settings that trust the webhook's ``caBundle``. Raises AddressError."""
    bundle = text(client, "caBundle")
    context = ssl.create_default_context()
    if bundle:
        try:
            context = ssl.create_default_context(cadata=base64.b64decode(bundle).decode("ascii"))
        except (binascii.Error, ValueError, ssl.SSLError) as error:
            raise AddressError(f"unable to load root certificates: {error}") from error
    return context
