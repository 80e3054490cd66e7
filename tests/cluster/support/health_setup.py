"""The table of wanted objects, live objects, and their health, on a control plane in memory."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import trio

from tests.cluster.support.client_contract import CONFIG_MAP, widget_crd
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.health.health import Health
from wharfinger.cluster.health.monitor import HealthMonitor, open_health_monitor
from wharfinger.cluster.health.rules import Expressions
from wharfinger.cluster.health.stall import GRACE_S
from wharfinger.cluster.objects.desired import DesiredObject, DesiredTable, desired_table
from wharfinger.cluster.objects.live_objects import LiveObjects, open_live_objects
from wharfinger.cluster.objects.ownership import Owner, owned
from wharfinger.cluster.tables.transaction import write
from wharfinger.cluster.watch.object_waits import wait_ready
from wharfinger.cluster.watch.shared_watches import open_shared_watches
from wharfinger.formats.errors import ProgramError
from wharfinger.formats.json.packed_json import PackedJson
from wharfinger.formats.json.value import JsonObject, encode_json, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType, name_of, namespace_of

OWNER: Final = Owner("web", "default")
OTHER: Final = Owner("other", "default")
WIDGET: Final = ResourceType("example.test", "v1", "Widget", "widgets", namespaced=True)
CRD: Final = ResourceType(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)


def row(obj: JsonObject, resource: ResourceType = CONFIG_MAP, owner: Owner = OWNER, wave: int = 0) -> DesiredObject:
    """Return the row of an object."""
    key = ObjectKey(resource, namespace_of(obj), name_of(obj))
    text = encode_json(obj)
    return DesiredObject(key, owner, wave, PackedJson(text), str(hash(text)))


def widget(name: str, **spec: str) -> JsonObject:
    return {
        "apiVersion": "example.test/v1",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**spec},
    }


async def define_widgets(client: ClusterClient) -> None:
    """Define Widgets with a status subresource. Tests write the status in place of a controller."""
    made = await client.apply(widget_crd(), field_manager="test")
    await wait_ready(client, [ObjectKey(CRD, "", name_of(made))])


class Phases:
    """A stand-in for the CEL evaluator. Its expressions are names of phases, and are true if ``status.phase`` has that name.

    Evaluations are recorded, and fail while ``failing`` is true.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.failing = False
        self.hold = trio.Event()
        self.hold.set()

    async def evaluate(self, expression: str, obj: JsonObject) -> bool:
        self.asked.append(name_of(obj))
        await self.hold.wait()
        if self.failing:
            error = ProgramError("the worker died")
            error.transient = True
            raise error
        phase = find_str(obj, "status", "phase")
        return bool(phase) and f"\n{phase}\n" in expression


@dataclass
class Setup:
    """A table, live objects and a health monitor. ``told`` has the reports to the listener in short form."""

    client: ClusterClient
    table: DesiredTable
    live: LiveObjects
    monitor: HealthMonitor
    told: list[str] = field(default_factory=list)

    def want(self, *rows: DesiredObject) -> None:
        with write(self.table) as transaction:
            for one in rows:
                transaction.insert(self.table, one)
        for one in rows:
            self.live.attend(one.key.resource)

    def unwant(self, *rows: DesiredObject) -> None:
        with write(self.table) as transaction:
            for one in rows:
                transaction.delete(self.table, one.identity)
        wanted = {entry.row.key.resource for entry in self.table.snapshot().entries()}
        for resource in {one.key.resource for one in rows} - wanted:
            self.live.release(resource)

    async def install(self, *rows: DesiredObject) -> None:
        """Install as the engine does: insert the rows, then apply each object and pass the server's answer to the monitor."""
        self.want(*rows)
        for one in rows:
            self.monitor.applied(
                one.key, await self.client.apply(owned(one.object(), one.owner), field_manager="wharfinger")
            )

    async def phase(self, name: str, phase: str) -> None:
        key = ObjectKey(WIDGET, "default", name)
        await self.client.merge_patch(key, {"status": {"phase": phase}}, subresource="status")

    def take(self) -> list[str]:
        taken, self.told[:] = list(self.told), []
        return taken


@asynccontextmanager
async def health_setup(
    client: ClusterClient,
    expressions: Expressions | None = None,
    *,
    table: DesiredTable | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    grace_s: float = GRACE_S,
) -> AsyncIterator[Setup]:
    """Open the table, the live objects and the monitor."""
    table = desired_table() if table is None else table
    told: list[str] = []

    def listen(owner: Owner, health: Health) -> None:
        late = "; ".join(f"{key.name}: {state.message}" for key, state in health.laggards.items())
        told.append(f"{owner.name} {health.state}" + (f" ({late})" if late else ""))

    async with (
        open_shared_watches(client, jitter=lambda: 0.0) as watches,
        open_live_objects(client, watches) as live,
        open_health_monitor(
            table, client, live, expressions=expressions, told=listen, now=now, grace_s=grace_s
        ) as monitor,
    ):
        yield Setup(client, table, live, monitor, told)
