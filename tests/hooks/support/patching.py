"""Shared helpers for tests of object patches: filters, documents, and a cluster in which other writers interfere."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx
import msgspec

from tests.cluster.support.client_contract import key
from tests.hooks.support.python_filters import PythonFilters
from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.errors import NotFoundError
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.cluster.releases.hook_made import HookMark
from wharfinger.control_plane.service import LOCAL, open_control_plane
from wharfinger.formats.json.value import JsonObject, JsonValue, find_object
from wharfinger.hooks.running.object_operations import read_operations
from wharfinger.hooks.running.object_patches import OperationFailure, apply_operations

CM: JsonObject = {"kind": "configmap", "namespace": "default", "name": "a"}


def patch_of(operation: str, **more: JsonValue) -> JsonObject:
    return {"operation": operation, **CM, **more}


def touched(value: JsonValue) -> JsonValue:
    assert isinstance(value, dict)
    return {**value, "data": {**find_object(value, "data"), "touched": "yes"}}


def moved(value: JsonValue) -> JsonValue:
    assert isinstance(value, dict)
    return {**value, "metadata": {**find_object(value, "metadata"), "namespace": "kube-system"}}


def marked(value: JsonValue) -> JsonValue:
    assert isinstance(value, dict)
    return {**value, "status": {"done": True}, "spec": {"a": 2}}


def failing(value: JsonValue) -> JsonValue:
    raise ValueError("null cannot be parsed as a number")


FILTERS = PythonFilters(
    {
        "touch": touched,
        "same": lambda value: value,
        "nothing": lambda value: None,
        "move": moved,
        "mark": marked,
        "fail": failing,
    }
)


class Meddling(httpx.AsyncBaseTransport):
    """A transport to a control plane. Just before it sends a request with a method in ``before``, it calls the function that
    ``before`` has for this method. The function can change the cluster.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner
        self.methods: list[str] = []
        self.policies: list[str] = []
        self.before: dict[str, Callable[[], Awaitable[object]]] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.methods.append(request.method)
        if request.method == "DELETE":
            self.policies.append(str(msgspec.json.decode(await request.aread())["propagationPolicy"]))
        if request.method in self.before:
            await self.before[request.method]()
        return await self._inner.handle_async_request(request)


@asynccontextmanager
async def meddled_cluster(
    *, simulate: bool = False
) -> AsyncIterator[tuple[HttpClusterClient, HttpClusterClient, Meddling]]:
    """Yield a client that uses a `Meddling` transport, another client that does not, and that transport."""
    async with open_control_plane(simulate=simulate) as control_plane:
        way = Meddling(control_plane.transport())
        async with (
            open_client(Connection(LOCAL), transport=way) as ours,
            open_client(Connection(LOCAL), transport=control_plane.transport()) as other,
        ):
            await ours.api_versions()
            way.methods.clear()
            yield ours, other, way


async def applied(
    client: HttpClusterClient, *documents: JsonObject, namespace: str | None = None, mark: HookMark | None = None
) -> tuple[OperationFailure, ...]:
    operations = read_operations(documents, hook="h")
    return await apply_operations(client, FILTERS, operations, namespace=namespace, mark=mark, jitter=lambda: 0.5)


async def failed(client: HttpClusterClient, document: JsonObject, namespace: str | None = None) -> OperationFailure:
    (failure,) = await applied(client, document, namespace=namespace)
    return failure


async def data_of(client: HttpClusterClient, name: str = "a", namespace: str = "default") -> JsonValue:
    return (await client.get(key(name, namespace))).get("data")


async def exists(client: HttpClusterClient, name: str, namespace: str = "default") -> bool:
    try:
        await client.get(key(name, namespace))
    except NotFoundError:
        return False
    return True


PATCHES: dict[str, JsonObject] = {
    "JQPatch": {"jqFilter": "mark"},
    "MergePatch": {"mergePatch": {"status": {"done": True}, "spec": {"a": 2}}},
    "JSONPatch": {
        "jsonPatch": [
            {"op": "add", "path": "/status", "value": {"done": True}},
            {"op": "replace", "path": "/spec/a", "value": 2},
        ]
    },
}
