"""The contract of every Storage. The test module of each implementation runs these checks."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from wharfinger.control_plane.storage.interface import ChangeType, Collection, CompactedError, Key, Storage
from wharfinger.formats.json.value import JsonObject, JsonValue, find

PODS = Collection("", "pods")
NODES = Collection("", "nodes")


def pod(name: str, namespace: str = "a", **fields: JsonValue) -> tuple[Key, JsonObject]:
    """Return the key and the object of a pod."""
    return Key(PODS, namespace, name), {"metadata": {"name": name, "namespace": namespace}, **fields}


def names(objects: Sequence[JsonObject]) -> list[str]:
    """Return ``namespace/name`` of each object."""
    return [f"{find(item, 'metadata', 'namespace')}/{find(item, 'metadata', 'name')}" for item in objects]


class StorageContract:
    """The contract of a Storage. The tests of an implementation subclass it and override ``new``."""

    def new(self) -> Storage:
        raise AssertionError("a contract is run through its subclass")

    def test_each_write_gets_the_next_revision(self) -> None:
        storage = self.new()
        before = storage.revision

        first, second = storage.put(*pod("x")), storage.put(*pod("y"))
        third = storage.delete(first.key)

        assert [first.revision, second.revision, third.revision] == [before + 1, before + 2, before + 3]
        assert find(first.obj, "metadata", "resourceVersion") == str(first.revision)
        assert find(third.obj, "metadata", "resourceVersion") == str(third.revision)
        assert [first.type, third.type] == [ChangeType.ADDED, ChangeType.DELETED]

    def test_given_objects_are_not_altered(self) -> None:
        storage = self.new()
        key, obj = pod("x")

        storage.put(key, obj)

        assert "resourceVersion" not in obj["metadata"]  # type: ignore[operator]

    def test_deleting_an_absent_object_is_an_error(self) -> None:
        storage = self.new()
        revision = storage.revision

        with pytest.raises(KeyError):
            storage.delete(pod("x")[0])

        assert storage.revision == revision

    def test_lists_are_in_the_order_of_paths(self) -> None:
        storage = self.new()
        for name, namespace in (("z", "a"), ("a", "a-b"), ("b", "a")):
            storage.put(*pod(name, namespace))

        assert names(storage.list(PODS)) == ["a-b/a", "a/b", "a/z"]
        assert names(storage.list(PODS, "a")) == ["a/b", "a/z"]
        assert storage.list(NODES) == ()

    def test_a_list_at_an_older_revision_shows_the_older_objects(self) -> None:
        storage = self.new()
        first = storage.put(*pod("x", n=1))
        second = storage.put(*pod("y"))
        storage.put(*pod("x", n=2))
        storage.delete(second.key)

        then = storage.list(PODS, at=second.revision)

        assert then == (first.obj, second.obj)
        assert names(storage.list(PODS)) == ["a/x"]

    def test_compaction_drops_changes_and_older_lists(self) -> None:
        storage = self.new()
        first = storage.put(*pod("x"))
        storage.put(*pod("y"))

        storage.compact()

        assert storage.oldest == storage.revision
        assert storage.changes(PODS, storage.revision) == ()
        assert names(storage.list(PODS, at=storage.revision)) == ["a/x", "a/y"]
        with pytest.raises(CompactedError) as caught:
            storage.changes(PODS, first.revision)
        assert (caught.value.asked, caught.value.oldest) == (first.revision, storage.revision)
        with pytest.raises(CompactedError):
            storage.list(PODS, at=first.revision)

    def test_changes_are_listed_for_one_collection(self) -> None:
        storage = self.new()
        start = storage.revision
        change = storage.put(*pod("x"))
        storage.put(Key(NODES, "", "n"), {"metadata": {"name": "n"}})

        assert list(storage.changes(PODS, start)) == [change]
        assert list(storage.changes(PODS, change.revision)) == []


class StorageMachine(RuleBasedStateMachine):
    """A test that compares a storage with a model. The model remembers every earlier list completely."""

    def __init__(self, new: Callable[[], Storage]) -> None:
        super().__init__()
        self._new = new

    @initialize()
    def begin(self) -> None:
        self.storage = self._new()
        self.model: dict[tuple[str, str], int] = {}
        self.past: dict[int, dict[tuple[str, str], int]] = {self.storage.revision: {}}
        self.counter = 0

    @rule(namespace=st.sampled_from(["a", "a-b", "b"]), name=st.sampled_from(["x", "y", "z"]))
    def put(self, namespace: str, name: str) -> None:
        self.counter += 1
        change = self.storage.put(*pod(name, namespace, n=self.counter))
        assert (change.previous is None) == ((namespace, name) not in self.model)
        self.model[namespace, name] = self.counter
        self.past[change.revision] = dict(self.model)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        namespace, name = data.draw(st.sampled_from(sorted(self.model)))
        change = self.storage.delete(Key(PODS, namespace, name))
        assert change.previous is not None
        assert change.previous["n"] == self.model.pop((namespace, name))
        self.past[change.revision] = dict(self.model)

    @rule()
    def write_elsewhere(self) -> None:
        change = self.storage.put(Key(NODES, "", "n"), {"metadata": {"name": "n"}})
        self.past[change.revision] = dict(self.model)

    @rule()
    def compact(self) -> None:
        self.storage.compact()

    @invariant()
    def lists_are_right(self) -> None:
        if hasattr(self, "storage"):
            assert contents(self.storage.list(PODS)) == self.model
            for namespace in ("a", "a-b"):
                kept = {place: n for place, n in self.model.items() if place[0] == namespace}
                assert contents(self.storage.list(PODS, namespace)) == kept

    @rule(data=st.data())
    def look_back(self, data: st.DataObject) -> None:
        revision = data.draw(st.sampled_from(sorted(self.past)))
        if revision < self.storage.oldest:
            with pytest.raises(CompactedError):
                self.storage.list(PODS, at=revision)
            return
        assert contents(self.storage.list(PODS, at=revision)) == self.past[revision]
        replayed = dict(self.past[revision])
        for change in self.storage.changes(PODS, revision):
            if change.type is ChangeType.DELETED:
                del replayed[change.key.namespace, change.key.name]
            else:
                n = change.obj["n"]
                assert isinstance(n, int)
                replayed[change.key.namespace, change.key.name] = n
        assert replayed == self.model


def contents(objects: Sequence[JsonObject]) -> dict[tuple[str, str], int]:
    """Return the number that each object contains, by namespace and name. This is the form in which the model stores
    objects.
    """
    found = {}
    for item in objects:
        n = item["n"]
        assert isinstance(n, int)
        found[str(find(item, "metadata", "namespace")), str(find(item, "metadata", "name"))] = n
    return found
