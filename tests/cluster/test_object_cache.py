"""The cache and its coalescing subscriptions."""

import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from wharfinger.cluster.object_cache import ObjectCache
from wharfinger.cluster.resource import ObjectKey, ResourceType
from wharfinger.formats.json_value import JsonObject

POD = ResourceType("", "v1", "Pod", "pods", namespaced=True)
NODE = ResourceType("", "v1", "Node", "nodes", namespaced=False)


def pod(name: str, version: str = "1", uid: str = "u") -> JsonObject:
    return {"metadata": {"name": name, "namespace": "prod", "resourceVersion": version, "uid": uid}}


def key(name: str) -> ObjectKey:
    return ObjectKey(POD, "prod", name)


def test_what_changed_is_told_by_what_it_returns() -> None:
    cache = ObjectCache(POD)
    assert cache.replace([pod("a"), pod("b")]) == {key("a"), key("b")}
    assert cache.replace([pod("a"), pod("b", "2"), pod("c")]) == {key("b"), key("c")}
    assert cache.replace([pod("a", uid="other")]) == {key("a"), key("b"), key("c")}
    assert cache.put(pod("a", uid="other")) == frozenset()
    assert cache.put(pod("a", "2")) == {key("a")}
    assert cache.drop(pod("a")) == {key("a")}
    assert cache.drop(pod("a")) == frozenset()
    assert len(cache) == 0


def test_snapshots_stay_as_they_were() -> None:
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


async def test_subscriptions_begin_with_all_and_coalesce() -> None:
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


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["put", "drop", "replace", "look"]), st.sampled_from("abc"), st.sampled_from("123"))
)


@given(OPERATIONS)
def test_a_subscriber_that_applies_the_keys_it_gets_sees_what_is_there(operations: list[tuple[str, str, str]]) -> None:
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
