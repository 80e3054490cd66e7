"""The initial state of the cluster in every test world (`world.py`): Wharfinger's own CRDs, and the namespace ``prod``.

The state is created once in a process and then copied, because applying and establishing the CRDs takes longer than many tests.
"""

import trio.testing

from wharfinger.cluster.api.connection import Connection, bearer
from wharfinger.cluster.api.http_client import open_client
from wharfinger.control_plane.service import LOCAL, open_control_plane
from wharfinger.control_plane.storage.interface import Change, Key
from wharfinger.control_plane.storage.memory import MemoryStorage
from wharfinger.formats.json.value import JsonObject
from wharfinger.runtime.resources.custom_resources import ensure_crds

FIELD_MANAGER = "wharfinger"


class _Noting(MemoryStorage):
    """A storage that remembers the key of every object that was written."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: set[Key] = set()

    def put(self, key: Key, obj: JsonObject) -> Change:
        self.keys.add(key)
        return super().put(key, obj)

    def bodies(self) -> tuple[tuple[Key, int, bytes], ...]:
        """Return all existing objects, in the form in which a new storage accepts its initial content."""
        records = (self.record(key) for key in self.keys)
        return tuple((record.key, record.revision, record.body) for record in records if record is not None)


_made: list[_Noting] = []


async def storage_to_begin_with() -> MemoryStorage:
    """Return a new storage with the initial state of the cluster in a test world."""
    if not _made:
        storage = _Noting()
        async with (
            open_control_plane(storage=storage) as control_plane,
            open_client(Connection(LOCAL, bearer("")), transport=control_plane.transport()) as client,
        ):
            await ensure_crds(client, FIELD_MANAGER)
            await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod"}})
            await trio.testing.wait_all_tasks_blocked()
        _made.append(storage)
    return MemoryStorage(revision=_made[0].revision, bodies=_made[0].bodies())
