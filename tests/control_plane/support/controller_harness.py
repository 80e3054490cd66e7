"""An embedded control plane in memory, with controllers and real clients. There are no sockets, and time is virtual."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import Connection, bearer
from wharfinger.cluster.api.errors import NotFoundError
from wharfinger.cluster.api.http_client import open_client
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.controllers.manager import open_controllers
from wharfinger.control_plane.service import LOCAL, open_control_plane
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_str
from wharfinger.kube.resource import ObjectKey

SETTLE_S = 3.5
"""The virtual seconds after which all work that is not delayed on purpose is done."""


@asynccontextmanager
async def open_cluster(*, controllers: bool = True) -> AsyncGenerator[ClusterClient, None]:
    """Yield a client of a cluster in memory."""
    async with open_plane(controllers=controllers) as (client, _):
        yield client


@asynccontextmanager
async def open_plane(*, controllers: bool = True) -> AsyncGenerator[tuple[ClusterClient, Backend], None]:
    """Yield a client of a cluster in memory and the backend of the cluster, whose clock follows the virtual time."""
    start, began = datetime(2026, 11, 21, 4, tzinfo=UTC), trio.current_time()
    async with (
        open_control_plane(simulate=False, now=lambda: start + timedelta(seconds=trio.current_time() - began)) as plane,
        open_client(Connection(LOCAL, bearer("")), transport=plane.transport()) as client,
    ):
        if not controllers:
            yield client, plane.backend
            return
        async with open_controllers(plane.backend, root_ca="PEM"):
            await settle()
            yield client, plane.backend


async def settle(seconds: float = 0.0) -> None:
    """Let virtual time pass until all work that is due within ``seconds`` is done."""
    await trio.sleep(seconds + SETTLE_S)


async def key(client: ClusterClient, api_version: str, kind: str, name: str, namespace: str = "default") -> ObjectKey:
    """Return the key of an object."""
    resource = await client.resource_type(api_version, kind)
    return ObjectKey(resource, namespace if resource.namespaced else "", name)


async def look(
    client: ClusterClient, api_version: str, kind: str, name: str, namespace: str = "default"
) -> JsonObject | None:
    """Return the object, or None if it does not exist."""
    try:
        return await client.get(await key(client, api_version, kind, name, namespace))
    except NotFoundError:
        return None


def obj(api_version: str, kind: str, name: str, namespace: str = "default", **fields: JsonValue) -> JsonObject:
    """Return an object. A given ``metadata`` field is added to the name and the namespace."""
    metadata: JsonObject = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    more = fields.pop("metadata", None)
    if isinstance(more, dict):
        metadata |= more
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def config_map(name: str, *owners: JsonObject, namespace: str = "default", **metadata: JsonValue) -> JsonObject:
    """Return a ConfigMap with references to its owners."""
    references: list[JsonValue] = [owner_of(owner) for owner in owners]
    extra: JsonObject = {**metadata, **({"ownerReferences": references} if references else {})}
    return obj("v1", "ConfigMap", name, namespace, metadata=extra)


def owner_of(owner: JsonObject, *, blocks: bool = False) -> JsonObject:
    """Return a reference to an existing owner."""
    reference: JsonObject = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": find(owner, "metadata", "name"),
        "uid": find(owner, "metadata", "uid"),
    }
    return reference | {"blockOwnerDeletion": True} if blocks else reference


TEMPLATE: JsonObject = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "i:1"}]}}


def workload(kind: str, name: str, *, annotations: JsonObject | None = None, **spec: JsonValue) -> JsonObject:
    """Return a Deployment, a StatefulSet or a DaemonSet."""
    whole: JsonObject = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE, **spec}
    return obj("apps/v1", kind, name, metadata={"annotations": annotations or {}}, spec=whole)


def job(name: str, annotations: JsonObject | None = None, *, restart: str = "Never", **spec: JsonValue) -> JsonObject:
    """Return a Job with one container."""
    pod: JsonObject = {"restartPolicy": restart, "containers": [{"name": "a", "image": "i"}]}
    return obj(
        "batch/v1", "Job", name, metadata={"annotations": annotations or {}}, spec={"template": {"spec": pod}, **spec}
    )


def pod(name: str, annotations: JsonObject | None = None, **spec: JsonValue) -> JsonObject:
    """Return a Pod with one container and without a controller."""
    whole: JsonObject = {"containers": [{"name": "a", "image": "i"}], **spec}
    return obj("v1", "Pod", name, metadata={"annotations": annotations or {}, "labels": {"a": "b"}}, spec=whole)


async def listed(client: ClusterClient, api_version: str, kind: str, namespace: str = "default") -> list[JsonObject]:
    """Return all objects of a kind in a namespace, sorted by name."""
    found = (await client.list(await client.resource_type(api_version, kind), namespace)).items
    return sorted(found, key=lambda one: find_str(one, "metadata", "name"))


def conditions_of(found: JsonValue) -> dict[str, tuple[JsonValue, JsonValue]]:
    """Return the status and the reason of each condition of an object."""
    entries = find_list(found, "status", "conditions")
    return {find_str(one, "type"): (find(one, "status"), find(one, "reason")) for one in entries}
