"""A control plane in memory with objects that we applied, other writers, and a function that finds drift."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.cluster.api.http_session import ClientOptions
from wharfinger.cluster.drift.comparison import find_drift
from wharfinger.cluster.drift.ignored import BUILT_IN
from wharfinger.cluster.objects.applied_objects import Applied, applied_of
from wharfinger.cluster.objects.drift_policy import IgnoreRule
from wharfinger.control_plane.service import LOCAL, ControlPlane, open_control_plane
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.kube.resource import ObjectKey, kind_of, name_of, namespace_of

MANAGER: Final = "wharfinger"
NAMESPACE: Final = "prod"

DEPLOYMENT: Final = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: prod, labels: {app: web}, annotations: {note: ours}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, creationTimestamp: null}
    spec:
      nodeSelector: {disk: ssd}
      securityContext: {}
      volumes: []
      containers:
        - name: web
          image: shop/web:1
          args: [--port, "80"]
          env: [{name: A, value: "1"}, {name: B, value: "2"}]
          ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]
          resources: {limits: {cpu: 1000m, memory: 1024Mi}}
        - {name: side, image: shop/side:1, command: null}
"""

Found = set[tuple[str, str]]
"""Pairs of a pointer and the writer of the field."""


@dataclass
class DriftBench:
    """A control plane with several clients. ``ours`` writes as the daemon does."""

    control_plane: ControlPlane
    ours: HttpClusterClient
    stack: AsyncExitStack
    others: dict[str, HttpClusterClient] = field(default_factory=dict)

    async def by(self, manager: str) -> HttpClusterClient:
        """Return a client that writes with this field manager."""
        if manager not in self.others:
            client = await self.stack.enter_async_context(_client(self.control_plane, manager))
            self.others[manager] = client
        return self.others[manager]

    async def key(self, obj: JsonObject) -> ObjectKey:
        """Return the key of an object."""
        return ObjectKey(await self.ours.resource_type(*kind_of(obj)), namespace_of(obj), name_of(obj))

    async def apply(self, desired: JsonObject) -> Applied:
        """Apply an object as the engine does."""
        return applied_of(await self.ours.apply(desired, field_manager=MANAGER, force=True), MANAGER)

    async def found(
        self, desired: JsonObject, applied: Applied | None, ignore: Sequence[IgnoreRule] = BUILT_IN
    ) -> Found:
        """Return the pointers of the fields that drifted, with their managers."""
        drift = find_drift(desired, applied, await self.ours.get(await self.key(desired)), MANAGER, ignore)
        assert drift is None or (drift.fields and not drift.missing)
        fields = drift.fields if drift is not None else ()
        assert len(set(fields)) == len(fields)
        return {(field.pointer, field.by) for field in fields}

    async def patch(self, manager: str, desired: JsonObject, patch: JsonValue, subresource: str = "") -> None:
        """Apply a patch as another manager: a JSON patch if it is a list, otherwise a merge patch."""
        client, key = await self.by(manager), await self.key(desired)
        if isinstance(patch, list):
            await client.json_patch(key, patch, subresource=subresource)
        elif isinstance(patch, dict):
            await client.merge_patch(key, patch, subresource=subresource)


Change = Callable[[DriftBench, JsonObject], Awaitable[None]]


@asynccontextmanager
async def drift_bench() -> AsyncIterator[DriftBench]:
    """Open a control plane with the namespace ``prod``."""
    async with (
        open_control_plane() as control_plane,
        _client(control_plane, MANAGER) as ours,
        AsyncExitStack() as stack,
    ):
        await ours.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        yield DriftBench(control_plane, ours, stack)


@asynccontextmanager
async def _client(control_plane: ControlPlane, manager: str) -> AsyncIterator[HttpClusterClient]:
    options = ClientOptions(user_agent=f"{manager}/1.0")
    async with open_client(Connection(LOCAL), transport=control_plane.transport(), options=options) as client:
        yield client


def yaml_object(text: str) -> JsonObject:
    """Return one object from YAML."""
    value = read_yaml(text.encode(), what="object of a test")
    assert isinstance(value, dict)
    return value


def patch(by: str, what: JsonValue, subresource: str = "") -> Change:
    async def change(bench: DriftBench, desired: JsonObject) -> None:
        await bench.patch(by, desired, what, subresource)

    return change


def replaced(by: str, pointer: str, value: JsonValue, op: str = "replace") -> Change:
    return patch(by, [{"op": op, "path": pointer, "value": value}])


def removed(by: str, pointer: str) -> Change:
    return patch(by, [{"op": "remove", "path": pointer}])
