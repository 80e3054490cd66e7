import random
import uuid

from tests.control_plane.support.samples import NOW, builtin
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Catalog
from wharfinger.control_plane.storage.interface import Change, ChangeType
from wharfinger.control_plane.storage.memory import MemoryStorage

PODS = builtin("", "v1", "pods")
NODES = builtin("", "v1", "nodes")


def backend(seed: int | None = None) -> Backend:
    randomness = None if seed is None else random.Random(seed)  # noqa: S311 - repeatable on purpose
    return Backend(MemoryStorage(), Catalog(), lambda: NOW, randomness)


def test_changes_are_reported_in_order() -> None:
    made = backend()
    told: list[Change] = []
    made.observe(told.append)
    key = made.key(PODS, "a", "p")

    stored = made.put(key, {"metadata": {"name": "p"}})
    made.delete(key)

    assert [change.type for change in told] == [ChangeType.ADDED, ChangeType.DELETED]
    assert told[0].obj is stored
    assert made.get(PODS, "a", "p") is None


def test_cluster_scoped_objects_have_no_namespace() -> None:
    assert backend().key(NODES, "a", "n").namespace == ""


def test_uids_and_generated_names_are_random() -> None:
    made = backend()

    assert uuid.UUID(made.new_uid()).version == 4
    assert made.new_uid() != made.new_uid()
    name = made.generate_name("job-")
    assert name.startswith("job-")
    assert len(name) == 9
    assert len(made.generate_name("x" * 100)) == 63


def test_a_seed_makes_uids_and_names_repeatable() -> None:
    assert backend(1).new_uid() == backend(1).new_uid()
    assert backend(1).generate_name("a") == backend(1).generate_name("a")
