import pytest

from wharfinger.control_plane.faults.past_storage import PastStorage
from wharfinger.control_plane.storage.interface import Collection, Key, StorageError
from wharfinger.control_plane.storage.memory import MemoryStorage
from wharfinger.formats.json.value import find

MAPS = Collection("", "configmaps")
KEY = Key(MAPS, "a", "b")


def test_reads_show_the_old_revision() -> None:
    storage = MemoryStorage()
    first = storage.put(KEY, {"metadata": {"name": "b"}, "data": {"x": "1"}}).revision
    storage.put(KEY, {"metadata": {"name": "b"}, "data": {"x": "2"}})
    past = PastStorage(storage, first)

    assert (past.revision, past.oldest) == (first, storage.oldest)
    assert find(past.get(KEY), "data", "x") == "1"
    assert [find(obj, "data", "x") for obj in past.list(MAPS)] == ["1"]
    assert past.get(Key(MAPS, "a", "c")) is None
    assert len(past.changes(MAPS, first)) == 1


def test_the_oldest_revision_is_the_limit_and_writes_are_refused() -> None:
    storage = MemoryStorage()
    storage.put(KEY, {"metadata": {"name": "b"}})
    storage.compact()
    past = PastStorage(storage, -5)
    past.compact()

    assert past.revision == storage.revision
    assert past.get(KEY) is not None
    with pytest.raises(StorageError, match="cannot be written: this view"):
        past.put(KEY, {})
    with pytest.raises(StorageError, match="cannot be deleted: this view"):
        past.delete(KEY)
