"""The cache of objects, and subscriptions that combine several changes of one object."""

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.cluster.watch.object_cache import ObjectCache, ObjectChange, in_shared_texts, without_managers
from wharfinger.formats.json.value import JsonObject, ShapeError, find, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType

POD = ResourceType("", "v1", "Pod", "pods", namespaced=True)
NODE = ResourceType("", "v1", "Node", "nodes", namespaced=False)


def pod(name: str, version: str = "1", uid: str = "u") -> JsonObject:
    return {"metadata": {"name": name, "namespace": "prod", "resourceVersion": version, "uid": uid}}


def key(name: str) -> ObjectKey:
    return ObjectKey(POD, "prod", name)


def test_changed_keys_are_returned() -> None:
    cache = ObjectCache(POD)
    assert cache.replace([pod("a"), pod("b")]) == {key("a"), key("b")}
    assert cache.replace([pod("a"), pod("b", "2"), pod("c")]) == {key("b"), key("c")}
    assert cache.replace([pod("a", uid="other")]) == {key("a"), key("b"), key("c")}
    assert cache.put(pod("a", uid="other")) == frozenset()
    assert cache.put(pod("a", "2")) == {key("a")}
    assert cache.drop(pod("a")) == {key("a")}
    assert cache.drop(pod("a")) == frozenset()
    assert len(cache) == 0


def test_snapshots_are_immutable() -> None:
    cache = ObjectCache(POD)
    cache.put(pod("a"))
    before = cache.objects()
    assert cache.objects() is before
    cache.put(pod("b"))
    assert set(before) == {key("a")}
    assert set(cache.objects()) == {key("a"), key("b")}
    assert cache.get(key("b")) == pod("b")
    assert cache.get(key("c")) is None


def test_keys_of_cluster_scoped_kinds_have_no_namespace() -> None:
    assert ObjectCache(NODE).key_of({"metadata": {"name": "n", "namespace": "stray"}}) == ObjectKey(NODE, "", "n")


async def test_subscriptions_begin_with_all_keys_and_coalesce() -> None:
    cache = ObjectCache(POD)
    cache.put(pod("a"))
    with cache.subscribe() as changes:
        assert await changes.wait() == {key("a")}
        for version in "234":
            cache.put(pod("b", version))
        cache.drop(pod("a"))
        assert await changes.wait() == {key("a"), key("b")}
        with trio.move_on_after(0) as scope:
            await changes.wait()
        assert scope.cancelled_caught
    cache.put(pod("c"))
    with trio.move_on_after(0) as scope:
        await changes.wait()
    assert scope.cancelled_caught


async def test_a_waiting_subscriber_is_woken() -> None:
    cache = ObjectCache(POD)
    seen: list[frozenset[ObjectKey]] = []

    async def follow() -> None:
        with cache.subscribe() as changes:
            while len(seen) < 2:
                seen.append(await changes.wait())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(follow)
        await wait_all_tasks_blocked()
        cache.put(pod("a"))
        await wait_all_tasks_blocked()
        cache.replace([])
    assert seen == [{key("a")}, {key("a")}]


class Told:
    """A listener that records changes as ``("ADDED", "a", "1")``. The last item is the resourceVersion, or "" if it has none."""

    def __init__(self) -> None:
        self.changes: list[ObjectChange] = []

    def __call__(self, change: ObjectChange) -> None:
        self.changes.append(change)

    def take(self) -> list[tuple[str, str, str]]:
        short = [
            (
                str(one.type),
                one.key.name,
                "" if one.object is None else find_str(one.object, "metadata", "resourceVersion"),
            )
            for one in self.changes
        ]
        self.changes.clear()
        return short


def test_every_change_is_reported_with_its_object() -> None:
    told = Told()
    cache = ObjectCache(POD, on_change=told)
    cache.replace([pod("b"), pod("a")])
    assert told.take() == [("ADDED", "b", "1"), ("ADDED", "a", "1")]
    cache.put(pod("a"))
    cache.drop(pod("c"))
    assert told.take() == []
    cache.put(pod("a", "2"))
    cache.put(pod("c", "3"))
    cache.drop(pod("b", "4"))
    assert told.take() == [("MODIFIED", "a", "2"), ("ADDED", "c", "3"), ("DELETED", "b", "4")]
    cache.replace([pod("d", "5"), pod("a", "6")])
    assert told.take() == [("DELETED", "c", ""), ("ADDED", "d", "5"), ("MODIFIED", "a", "6")]


def test_a_replaced_object_is_reported_as_a_deletion_and_an_addition() -> None:
    told = Told()
    cache = ObjectCache(POD, on_change=told)
    cache.put(pod("a"))
    cache.put(pod("a", "2", uid="other"))
    assert told.take() == [("ADDED", "a", "1"), ("DELETED", "a", ""), ("ADDED", "a", "2")]
    cache.replace([pod("a", "2", uid="third")])
    assert told.take() == [("DELETED", "a", ""), ("ADDED", "a", "2")]


def test_an_unreadable_list_changes_nothing() -> None:
    told = Told()
    cache = ObjectCache(POD, on_change=told)
    cache.put(pod("a"))
    told.take()
    strange: JsonObject = {"metadata": {"name": "c", "namespace": "prod", "uid": 5}}
    with pytest.raises(ShapeError):
        cache.replace([pod("b"), strange])
    assert (told.take(), set(cache.objects())) == ([], {key("a")})


def test_an_object_is_stored_without_managed_fields() -> None:
    metadata: JsonObject = {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "1", "generation": 2}
    managed: JsonObject = {"metadata": {**metadata, "managedFields": [{"manager": "ann"}]}, "status": {"a": 1}}
    seen: list[JsonObject | None] = []
    cache = ObjectCache(POD, keep=without_managers, on_change=lambda change: seen.append(change.object))
    cache.put(managed)
    assert list(cache.objects().values()) == [{"metadata": metadata, "status": {"a": 1}}]
    assert seen == [managed]
    bare: JsonObject = {"metadata": metadata}
    assert without_managers(bare) is bare


def test_equal_texts_of_conditions_are_stored_once() -> None:
    def read(name: str) -> JsonObject:
        condition: JsonObject = {"type": b"Ready".decode(), "observedGeneration": 1}
        status: JsonObject = {"conditions": [condition], "summary": {"state": "Ready"}}
        return {"metadata": {"name": name, "managedFields": []}, "status": status}

    one, other = in_shared_texts(read("a")), in_shared_texts(read("b"))
    assert one == {**without_managers(read("a"))}
    assert find(one, "status", "conditions", 0, "type") is find(other, "status", "conditions", 0, "type")
    odd: list[JsonObject] = [{"status": 1}, {"status": {"conditions": "none"}}, {"metadata": {}}]
    assert [in_shared_texts(each) for each in odd] == odd


def test_stored_objects_may_be_smaller_than_reported_ones() -> None:
    told = Told()

    def keep(obj: JsonObject) -> JsonObject:
        return {"metadata": obj["metadata"]}

    cache = ObjectCache(POD, keep=keep, on_change=told)
    cache.put({**pod("a"), "spec": {"big": True}})
    assert cache.get(key("a")) == pod("a")
    assert told.changes[0].object == {**pod("a"), "spec": {"big": True}}
    cache.put({**pod("a"), "spec": {"big": True}})
    assert len(told.changes) == 1


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["put", "drop", "replace", "look"]), st.sampled_from("abc"), st.sampled_from("123"))
)


@given(OPERATIONS)
def test_a_subscriber_that_applies_its_keys_mirrors_the_cache(operations: list[tuple[str, str, str]]) -> None:
    cache = ObjectCache(POD)
    mirror: dict[ObjectKey, JsonObject] = {}
    with cache.subscribe() as changes:
        for verb, name, version in [*operations, ("look", "", "")]:
            if verb == "put":
                cache.put(pod(name, version))
            elif verb == "drop":
                cache.drop(pod(name, version))
            elif verb == "replace":
                cache.replace([pod(name, version)])
            else:
                for changed in changes.take_nowait():
                    current = cache.get(changed)
                    if current is None:
                        mirror.pop(changed, None)
                    else:
                        mirror[changed] = current
        assert mirror == dict(cache.objects())


@given(
    st.lists(st.tuples(st.sampled_from("ppdr"), st.sampled_from("abc"), st.sampled_from("123"), st.sampled_from("uv")))
)
def test_reported_changes_alternate_and_mirror_the_cache(operations: list[tuple[str, str, str, str]]) -> None:
    mirror: dict[ObjectKey, JsonObject] = {}

    def follow(change: ObjectChange) -> None:
        there = change.key in mirror
        assert there == (change.type is not WatchType.ADDED)
        if change.type is WatchType.DELETED:
            del mirror[change.key]
        else:
            assert change.object is not None
            mirror[change.key] = change.object

    cache = ObjectCache(POD, on_change=follow)
    for verb, name, version, uid in operations:
        if verb == "p":
            cache.put(pod(name, version, uid))
        elif verb == "d":
            cache.drop(pod(name, version, uid))
        else:
            cache.replace([pod(name, version, uid)])
        assert mirror == dict(cache.objects())
