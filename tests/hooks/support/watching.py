"""Shared helpers for tests of monitors: objects, a filter that returns their values, and a monitor with its events."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trio

from tests.cluster.support.client_contract import config_map
from tests.hooks.support.bindings import binding
from tests.hooks.support.python_filters import PythonFilters
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.http_client import HttpClusterClient
from wharfinger.cluster.watch.shared_watches import open_shared_watches
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_str
from wharfinger.hooks.config.bindings import KubernetesBinding, NamespaceSelector, WatchVerb
from wharfinger.hooks.watching.monitor import Monitor, open_monitors
from wharfinger.hooks.watching.monitor_core import Item, MonitorEvent

HERE = NamespaceSelector(("default",), "")
VALUE = binding(jq_filter="value", namespaces=HERE, labels="app=x")
ADDED, MODIFIED, DELETED = WatchVerb.ADDED, WatchVerb.MODIFIED, WatchVerb.DELETED


def obj(name: str, namespace: str = "default", **data: str) -> JsonObject:
    return config_map(name, namespace, labels={"app": "x"}, **data)


def value(document: JsonValue) -> JsonValue:
    """Return ``data.v``. Raises ValueError for an object with ``data.bad``."""
    if find_str(document, "data", "bad"):
        raise ValueError("bad data")
    return find(document, "data", "v")


def value_filters() -> PythonFilters:
    return PythonFilters({"value": value})


def plain(item: Item) -> JsonObject:
    """Return an item as a hook reads it."""
    return {name: kept.value() for name, kept in item.fields().items()}


def short(item: Item) -> JsonValue:
    """Return an item in short: its filter result, or the name of its object if there is no filter result."""
    if item.filter_result is not None:
        return item.filter_result.value()
    return None if item.object is None else find(item.object.value(), "metadata", "name")


@dataclass(slots=True)
class Watched:
    """A monitor and its events."""

    monitor: Monitor
    events: list[MonitorEvent] = field(default_factory=list)

    def take(self) -> list[tuple[WatchVerb, JsonValue]]:
        """Return the events since the last call, each as its verb and its item in short."""
        told = [(event.verb, short(event.item)) for event in self.events]
        self.events.clear()
        return told

    def shown(self) -> list[JsonValue]:
        """Return the items of the snapshot, each in its short form."""
        return [short(item) for item in self.monitor.snapshot()]


@asynccontextmanager
async def watching(
    client: ClusterClient,
    wanted: KubernetesBinding,
    filters: PythonFilters | None = None,
    namespace: str | None = None,
) -> AsyncIterator[Watched]:
    events: list[MonitorEvent] = []
    async with open_shared_watches(client) as watches:
        monitor = Monitor(
            client,
            watches,
            filters or value_filters(),
            wanted,
            hook="hooks/h.sh",
            namespace=namespace,
            emit=events.append,
        )
        async with open_monitors([monitor]):
            yield Watched(monitor, events)


async def settle() -> None:
    """Wait until all work is done that does not wait for the clock."""
    await trio.sleep(0.1)


async def write(client: HttpClusterClient, *objects: JsonObject) -> None:
    for one in objects:
        await client.apply(one, field_manager="test", force=True)
