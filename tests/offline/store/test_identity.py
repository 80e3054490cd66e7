"""Identities of objects: kind with group, namespace, name."""

from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.store.identity import group_of, is_cluster_scoped, kind_id, object_id, shown
from wharfinger.runtime.fixpoint.model import Id


def test_the_version_is_no_part_of_an_identity() -> None:
    one = object_id({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "a"}})
    other = object_id({"apiVersion": "apps/v2", "kind": "Deployment", "metadata": {"name": "web", "namespace": "a"}})
    assert one == other == Id("Deployment.apps", "a", "web")


def test_only_objects_of_namespaced_kinds_get_the_namespace() -> None:
    assert object_id({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}, "a") == Id("Secret", "a", "x")
    node: JsonObject = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x", "namespace": "wrong"}}
    assert object_id(node, "a") == Id("Node", "", "x")
    assert object_id(
        {"apiVersion": "x.io/v1", "kind": "Y", "metadata": {"name": "z"}}, "a", frozenset({("x.io", "Y")})
    ) == Id("Y.x.io", "", "z")


def test_groups_and_kinds() -> None:
    assert (group_of("v1"), group_of("apps/v1")) == ("", "apps")
    assert (kind_id("", "Pod"), kind_id("apps", "Deployment")) == ("Pod", "Deployment.apps")
    assert is_cluster_scoped("wharfinger.dev", "Module")
    assert not is_cluster_scoped("wharfinger.dev", "Application")


def test_people_see_kind_namespace_and_name() -> None:
    assert shown(Id("Deployment.apps", "a", "web")) == "Deployment a/web"
    assert shown(Id("Node", "", "one")) == "Node one"
