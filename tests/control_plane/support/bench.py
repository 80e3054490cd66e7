"""A control plane whose clock stands still and whose random choices are repeatable, and functions that send requests to it."""

import json
import random
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass

import pytest

from tests.control_plane.support.samples import NOW, definition
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.service import ControlPlane, assemble
from wharfinger.control_plane.storage.memory import MemoryStorage
from wharfinger.control_plane.verbs.creation import create
from wharfinger.control_plane.verbs.options import WriteOptions
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find_object
from wharfinger.httpd.messages import Request, Response, StreamingResponse

OPTIONS = WriteOptions("tester")
DRY_RUN = WriteOptions("tester", dry_run=True)
DEFINITIONS = ("apiextensions.k8s.io", "v1", "customresourcedefinitions")
WIDGETS = ("example.com", "v1", "widgets")
SCALE: JsonObject = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.color",
}


def new_plane(*, history_limit: int = 1000) -> ControlPlane:
    """Return a control plane whose clock stands still. It has only the objects that every new control plane has."""
    randomness = random.Random(7)  # noqa: S311 - repeatable on purpose
    return assemble(MemoryStorage(history_limit=history_limit), lambda: NOW, randomness, None)


def new_backend() -> Backend:
    """Return the backend of a new control plane, for tests of single verbs."""
    return new_plane().backend


def served(backend: Backend, group: str, version: str, plural: str) -> Served:
    """Return the kind that the control plane serves under this group, version and plural."""
    found = backend.catalog.find(group, version, plural)
    assert found is not None
    return found


def config_maps(backend: Backend) -> Served:
    """Return the kind ConfigMap."""
    return served(backend, "", "v1", "configmaps")


def deployments(backend: Backend) -> Served:
    """Return the kind Deployment, which has a generation, a status and a scale."""
    return served(backend, "apps", "v1", "deployments")


def widgets(backend: Backend, **version: JsonValue) -> Served:
    """Define the kind Widget of :mod:`~tests.control_plane.support.samples`, with additions to its version, and return it."""
    made(backend, served(backend, *DEFINITIONS), definition(**version), namespace="")
    return served(backend, *WIDGETS)


def thing(served: Served, name: str = "a", metadata: JsonObject | None = None, **fields: JsonValue) -> JsonObject:
    """Return a manifest of an object of the kind."""
    return {
        "apiVersion": served.api_version,
        "kind": served.kind.kind,
        "metadata": {"name": name, **(metadata or {})},
        **fields,
    }


def deployment(served: Served, name: str = "a", *, replicas: int = 1, metadata: JsonObject | None = None) -> JsonObject:
    """Return a manifest of a Deployment with one container."""
    labels: JsonObject = {"app": name}
    container: JsonObject = {"name": "main", "image": "image:1"}
    template: JsonObject = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec: JsonObject = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return thing(served, name, metadata, spec=spec)


def made(backend: Backend, served: Served, obj: JsonObject, *, namespace: str = "default") -> JsonObject:
    """Create an object, and return it."""
    return create(backend, served, namespace, obj, OPTIONS).obj


def changed(obj: JsonObject, metadata: JsonObject | None = None, **fields: JsonValue) -> JsonObject:
    """Return a copy of the object with changed fields and metadata. The value None removes a metadata field."""
    merged: JsonObject = {**find_object(obj, "metadata"), **(metadata or {})}
    return {**obj, **fields, "metadata": {name: value for name, value in merged.items() if value is not None}}


@contextmanager
def refused(code: int, reason: str, part: str = "") -> Iterator[None]:
    """Check that the block raises a StatusError with this code, this reason, and a message that contains ``part``."""
    with pytest.raises(StatusError) as caught:
        yield
    assert (caught.value.code, caught.value.reason) == (code, reason)
    assert part in caught.value.message


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of the handler, with its parsed body."""

    code: int
    body: JsonObject
    content_type: str
    headers: dict[str, str]


def request(method: str, path: str, data: bytes, headers: Mapping[str, str]) -> Request:
    """Return a request. ``path`` may have a query, and an underscore in the name of a header stands for a hyphen."""
    place, _, text = path.partition("?")
    query: dict[str, tuple[str, ...]] = {}
    for part in filter(None, text.split("&")):
        name, _, value = part.partition("=")
        query[name] = (*query.get(name, ()), value)
    return Request(method, place, query, {name.replace("_", "-"): value for name, value in headers.items()}, data)


async def send(
    plane: ControlPlane, method: str, path: str, body: JsonValue = None, /, *, raw: bytes = b"", **headers: str
) -> Reply:
    """Send one request to the handler, and return the complete answer."""
    data = raw if body is None else json.dumps(body).encode()
    answer = await plane.handler(request(method, path, data, headers))
    assert isinstance(answer, Response)
    parsed: JsonObject = {"text": answer.body.decode()}
    if answer.content_type == "application/json" and answer.body:
        parsed = as_object(json.loads(answer.body), "answer")
    return Reply(answer.status, parsed, answer.content_type, dict(answer.headers))


@asynccontextmanager
async def watching(plane: ControlPlane, path: str, **headers: str) -> AsyncIterator[AsyncIterator[bytes]]:
    """Open a watch while the block runs, and yield an iterator of its lines. Each line is one event."""
    answer = await plane.handler(request("GET", path, b"", headers))
    assert isinstance(answer, StreamingResponse)
    assert (answer.status, answer.content_type) == (200, "application/json")

    async def lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        async for chunk in chunks:
            for line in chunk.splitlines(keepends=True):
                yield line

    async with answer.open_chunks() as chunks, aclosing(lines(chunks)) as events:
        yield events
