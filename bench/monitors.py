"""The memory of a monitor for a binding with a jqFilter, against the memory of the same objects as parsed JSON.

Both figures are measured in this run, as the memory that Python has allocated after the list was read. The client generates
each object when it is requested, so only the monitor keeps it. The filter runs in worker processes, as in the daemon.
"""

import gc
import json
import random
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Final, cast

import trio

from bench.fake_client import FakeClient
from bench.measure import Ratio, Unit
from tests.hooks.support.bindings import binding
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.raw_object import RawEvent, RawObject, RawPage, read_raw_object
from wharfinger.cluster.watch.shared_watches import open_shared_watches
from wharfinger.formats.json.value import JsonObject, JsonValue, encode_json
from wharfinger.hooks.watching.jq_pool import open_jq_pool
from wharfinger.hooks.watching.monitor import Monitor, open_monitors
from wharfinger.kube.resource import ResourceType

OBJECTS: Final = 20_000
FEW: Final = 2_000
"""The number of objects without ``--long``; the ratio is the same."""
OBJECT_BYTES: Final = 5 * 1024
PAGE: Final = 500
BUDGET: Final = 0.25
FILTER: Final = "{name: .metadata.name, phase: .status.phase, images: [.spec.containers[].image]}"
POD: Final = ResourceType("", "v1", "Pod", "pods", namespaced=True)


def measure(long: bool) -> Iterator[Ratio]:
    """Measure the memory of a monitor against that of the parsed objects."""
    objects = OBJECTS if long else FEW
    ours = trio.run(_monitored, objects)
    theirs = _parsed(objects)
    what = f"{objects} objects of 5 KiB, jqFilter, memory"
    yield Ratio("monitors", what, "the same objects, json.loads", ours, theirs, BUDGET, Unit.BYTES)


async def _monitored(objects: int) -> int:
    client = cast("ClusterClient", _Cluster(objects))
    async with open_jq_pool(None) as filters, open_shared_watches(client) as watches:
        await filters.check(FILTER)  # This compiles the filter and starts a worker.
        gc.collect()
        tracemalloc.start()
        try:
            wanted = binding(kind="Pod", jq_filter=FILTER)
            monitor = Monitor(client, watches, filters, wanted, hook="bench", namespace=None, emit=lambda _: None)
            async with open_monitors([monitor]):
                await monitor.wait_listed()
                if len(monitor.snapshot()) != objects:
                    raise SystemExit(f"bench: {len(monitor.snapshot())} objects instead of {objects}")
                return _used()
        finally:
            tracemalloc.stop()


def _parsed(objects: int) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        held = [json.loads(_text(number)) for number in range(objects)]
        used = _used()
        assert len(held) == objects
        return used
    finally:
        tracemalloc.stop()


def _used() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


class _Cluster(FakeClient):
    """A client that lists a number of pods, and whose watches never send events."""

    def __init__(self, objects: int) -> None:
        super().__init__()
        self._objects = objects

    async def find_resource(self, _kind: str, _api_version: str = "") -> ResourceType:
        await trio.lowlevel.checkpoint()
        return POD

    @asynccontextmanager
    async def raw_list(
        self,
        _resource: ResourceType,
        _namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        paged: bool = True,
        metadata_only: bool = False,
    ) -> AsyncIterator[AsyncIterator[RawPage]]:
        assert (label_selector, field_selector, paged, metadata_only) == ("", "", True, False)
        yield _pages(self._objects)

    @asynccontextmanager
    async def raw_watch(
        self,
        _resource: ResourceType,
        _namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
    ) -> AsyncIterator[AsyncIterator[RawEvent]]:
        assert (resource_version, label_selector, field_selector, metadata_only) == ("7", "", "", False)
        yield _Nothing()


async def _pages(objects: int) -> AsyncIterator[RawPage]:
    for first in range(0, objects, PAGE):
        await trio.lowlevel.checkpoint()
        yield RawPage(tuple(_object(number) for number in range(first, min(first + PAGE, objects))), "7")


class _Nothing:
    """A watch without events."""

    def __aiter__(self) -> "_Nothing":
        return self

    async def __anext__(self) -> RawEvent:
        await trio.sleep_forever()


def _object(number: int) -> RawObject:
    return read_raw_object(_text(number), POD)


def _text(number: int) -> bytes:
    """Return a pod of 5 KiB. Its names, hashes and addresses are unique, and its managedFields are large, as in real pods."""
    draw = random.Random(number)  # noqa: S311 - repeatable on purpose
    labels: JsonObject = {"app": f"web-{number % 50}", "pod-template-hash": f"{draw.getrandbits(40):x}", "team": "shop"}
    annotations: JsonObject = {"checksum/config": f"{draw.getrandbits(256):064x}", "note": ""}
    pod: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"web-{number % 50}-{number}",
            "namespace": f"shop-{number % 100}",
            "uid": f"{draw.getrandbits(128):032x}",
            "resourceVersion": str(100_000 + number),
            "creationTimestamp": f"2026-11-{1 + number % 28:02}T08:00:{number % 60:02}Z",
            "labels": labels,
            "annotations": annotations,
            "managedFields": [_owner("kube-controller-manager", draw), _owner("kubelet", draw)],
        },
        "spec": {
            "nodeName": f"node-{draw.randrange(200)}",
            "containers": [_container(name, draw) for name in ("web", "proxy")],
            "tolerations": [{"key": f"node.example/{role}", "operator": "Exists"} for role in ("a", "b")],
        },
        "status": {
            "phase": "Running",
            "podIP": f"10.{draw.randrange(255)}.{draw.randrange(255)}.{draw.randrange(255)}",
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": f"2026-11-20T08:{draw.randrange(60):02}:00Z"}
                for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
        },
    }
    annotations["note"] = _words(OBJECT_BYTES - len(encode_json(pod)), draw)
    return encode_json(pod)


def _container(name: str, draw: random.Random) -> JsonValue:
    environment: list[JsonValue] = [
        {"name": f"SETTING_{index}", "value": f"{draw.getrandbits(32)}"} for index in range(6)
    ]
    return {
        "name": name,
        "image": f"registry.example/{name}@sha256:{draw.getrandbits(256):064x}",
        "env": environment,
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    }


def _owner(manager: str, draw: random.Random) -> JsonValue:
    fields: JsonObject = {f"f:field-{index}": {} for index in range(12)}
    return {
        "manager": manager,
        "operation": "Update",
        "time": f"2026-11-20T08:{draw.randrange(60):02}:00Z",
        "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": fields},
    }


def _words(count: int, draw: random.Random) -> str:
    """Return ``count`` characters that can be compressed about as well as natural text."""
    words = ("ready", "config", "volume", "claim", "replica", "secret", "endpoint", "rollout", "probe", "limit")
    text = ""
    while len(text) < count:
        text += f"{draw.choice(words)}-{draw.randrange(1000)} "
    return text[:count]
