"""The embedded control plane: what outliving a process costs over memory, and custom resources over built-in kinds."""

import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

import trio

from bench.measure import Ratio, compare, compare_async
from bench.samples import SETTINGS, SETTINGS_SCHEMA
from tests.cluster.client_contract import config_map, widget_crd
from tests.cluster.clusters import memory_cluster
from wharfinger.cluster.control_plane.memory_storage import MemoryStorage
from wharfinger.cluster.control_plane.sqlite_storage import open_sqlite_storage
from wharfinger.cluster.control_plane.storage import Collection, Key, Storage
from wharfinger.formats.json_value import JsonObject, JsonValue, encode_json, find_list, find_object, find_str
from wharfinger.runtime.own_crds import ensure_crds

PUTS: Final = 200
OBJECTS: Final = 1_000
MAPS: Final = Collection("", "configmaps")


def measure() -> Iterator[Ratio]:
    """A write into a file, and creating what has a schema."""
    yield from _storage()
    yield trio.run(_custom_resources)


def _storage() -> Iterator[Ratio]:
    obj = config_map("map", text="x" * 2_000)
    keys = [Key(MAPS, "default", f"map-{number}") for number in range(PUTS)]

    def put(storage: Storage) -> None:
        for key in keys:
            storage.put(key, obj)

    with tempfile.TemporaryDirectory() as folder, open_sqlite_storage(Path(folder) / "state.db") as stored:
        memory = MemoryStorage()
        written = (Path(folder) / "log").open("wb", buffering=0)
