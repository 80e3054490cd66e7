"""The embedded control plane: the cost of storage in a file, and the cost of custom resources compared with built-in ones."""

import os
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

import trio

from bench.measure import Ratio, compare, compare_async
from bench.samples import SETTINGS, SETTINGS_SCHEMA
from tests.cluster.support.client_contract import config_map, widget_crd
from tests.cluster.support.clusters import memory_cluster
from wharfinger.cluster.watch.object_waits import wait_ready
from wharfinger.control_plane.storage.interface import Collection, Key, Storage
from wharfinger.control_plane.storage.memory import MemoryStorage
from wharfinger.control_plane.storage.sqlite import open_sqlite_storage
from wharfinger.formats.json.value import JsonObject, encode_json, find_object, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.resources.custom_resources import CRD

PUTS: Final = 200
OBJECTS: Final = 1_000
MAPS: Final = Collection("", "configmaps")


def measure(long: bool) -> Iterator[Ratio]:
    """Measure writes to a storage file, and the creation of custom resources, which the schema of their CRD validates."""
    with tempfile.TemporaryDirectory() as folder:
        yield from _storage(Path(folder))
    yield trio.run(_custom_resources)


def _storage(folder: Path) -> Iterator[Ratio]:
    obj = config_map("map", text="x" * 2_000)
    keys = [Key(MAPS, "default", f"map-{number}") for number in range(PUTS)]
    body = encode_json(obj)
    memory = MemoryStorage()
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def put(storage: Storage) -> None:
        for key in keys:
            storage.put(key, obj)
            storage.commit()

    def append() -> None:
        for _ in keys:
            os.write(log, body)
            os.fdatasync(log)

    try:
        with open_sqlite_storage(folder / "state.db") as stored:
            what = f"{PUTS} x put and commit of 2 kB, sqlite"
            yield compare("cluster", what, "write and fdatasync of its bytes", lambda: put(stored), append, budget=4.0)
            yield compare("cluster", what, "memory storage", lambda: put(stored), lambda: put(memory), budget=2000.0)
    finally:
        os.close(log)


async def _custom_resources() -> Ratio:
    numbers = count()
    sample = config_map("sample")
    sample["data"] = {f"key-{number}": "CertManager" for number in range(50)}
    async with memory_cluster() as client:
        await client.create(_definition())
        await wait_ready(client, [ObjectKey(CRD, "", "widgets.example.test")])

        first = await client.create(_widget("first"))
        assert find_str(first, "spec", "alerts", "cpu") == "100m", "the schema was not applied"

        async def ours() -> None:
            for _ in range(OBJECTS):
                await client.create(_widget(f"one-{next(numbers)}"))

        async def theirs() -> None:
            for _ in range(OBJECTS):
                await client.create({**sample, "metadata": {"name": f"map-{next(numbers)}", "namespace": "default"}})

        what = f"create {OBJECTS} custom resources, 50 properties"
        return await compare_async("cluster", what, "ConfigMaps of 50 keys", ours, theirs, budget=3.5, rounds=3)


def _widget(name: str) -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": "default"}
    return {"apiVersion": "example.test/v1", "kind": "Widget", "metadata": metadata, "spec": SETTINGS}


def _definition() -> JsonObject:
    """Return a CRD of the kind Widget. The schema of its spec is a typical schema of package settings."""
    definition = widget_crd()
    schema: JsonObject = {"type": "object", "properties": {"spec": SETTINGS_SCHEMA}}
    find_object(definition, "spec", "versions", 0)["schema"] = {"openAPIV3Schema": schema}
    return definition
