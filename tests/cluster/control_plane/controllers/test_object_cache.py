"""What the controllers know: lookups by kind, uid and owner, and the changes they are told."""

from typing import Final

from wharfinger.cluster.control_plane.controllers.object_cache import Change, ObjectCache, key_of
from wharfinger.cluster.resource import ObjectKey, ResourceType
from wharfinger.formats.json_value import JsonObject, JsonValue

CONFIG_MAPS: Final = ResourceType("", "v1", "ConfigMap", "configmaps", namespaced=True)
NODES: Final = ResourceType("", "v1", "Node", "nodes", namespaced=False)


def made(name: str, namespace: str = "n", *owners: str, version: str = "1") -> JsonObject:
    references: list[JsonValue] = [{"uid": owner} for owner in owners]
    metadata: JsonObject = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": version}
    return {"metadata": metadata | {"ownerReferences": references}}


def key(name: str, namespace: str = "n") -> ObjectKey:
    return ObjectKey(CONFIG_MAPS, namespace, name)


def test_lookups() -> None:
    cache = ObjectCache()
    cache.put(key("a"), made("a"))
    cache.put(key("b", "m"), made("b", "m", "uid-a"))
    assert cache.get(key("a")) == made("a")
    assert cache.get(key("c")) is None
    assert [found for found, _ in cache.of_kind("ConfigMap")] == [key("a"), key("b", "m")]
    assert [found for found, _ in cache.of_kind("ConfigMap", "m")] == [key("b", "m")]
    assert cache.key_of_uid("uid-a") == key("a")
    assert cache.dependents("uid-a") == [(key("b", "m"), made("b", "m", "uid-a"))]
    assert cache.kinds() == (CONFIG_MAPS,)
    assert cache.statistics() == {"kinds": 1, "objects": 2}


def test_an_owner_that_is_let_go_has_no_dependents() -> None:
    cache = ObjectCache()
    cache.put(key("b"), made("b", "n", "uid-a", "uid-c"))
    cache.put(key("b"), made("b", "n", "uid-c"))
    assert cache.dependents("uid-a") == []
    cache.drop(key("b"))
    assert cache.dependents("uid-c") == []
    assert cache.key_of_uid("uid-b") is None


def test_changes_are_told() -> None:
    cache = ObjectCache()
    told: list[Change] = []
    cache.listen(told.append)
    old, new = made("a"), made("a", version="2")
    cache.put(key("a"), old)
    cache.put(key("a"), new)
    cache.drop(key("a"))
    cache.drop(key("a"))
    assert told == [Change(key("a"), None, old), Change(key("a"), old, new), Change(key("a"), new, None)]
    assert [change.known for change in told] == [old, new, new]


def test_a_new_list_tells_only_differences() -> None:
    cache = ObjectCache()
    cache.replace_kind(CONFIG_MAPS, [made("a"), made("b"), made("c")])
    told: list[Change] = []
    cache.listen(told.append)
    cache.replace_kind(CONFIG_MAPS, [made("b"), made("c", version="2"), made("d")])
    assert [(change.key.name, change.before is None, change.after is None) for change in told] == [
        ("a", False, True),
        ("c", False, False),
        ("d", True, False),
    ]
    cache.forget_kind(CONFIG_MAPS)
    assert cache.statistics() == {"kinds": 0, "objects": 0}


def test_a_name_used_again_keeps_the_new_uid() -> None:
    cache = ObjectCache()
    cache.put(key("a"), made("a"))
    again = made("a")
    again["metadata"] = {"name": "a", "namespace": "n", "uid": "uid-new"}
    cache.put(key("a"), again)
    assert (cache.key_of_uid("uid-a"), cache.key_of_uid("uid-new")) == (None, key("a"))


def test_keys_of_cluster_scoped_objects_have_no_namespace() -> None:
    assert key_of(NODES, made("x", "odd")) == ObjectKey(NODES, "", "x")
    assert key_of(CONFIG_MAPS, made("x")) == key("x")
