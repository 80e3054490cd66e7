"""Identities of objects: kind with group, namespace, and name."""

import pytest

from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.store.identity import group_of, is_cluster_scoped, kind_id, naming_problem, object_id, shown
from wharfinger.runtime.fixpoint.model import Id


def test_the_version_is_not_part_of_an_identity() -> None:
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


def test_kinds_are_qualified_by_their_group() -> None:
    assert (group_of("v1"), group_of("apps/v1")) == ("", "apps")
    assert (kind_id("", "Pod"), kind_id("apps", "Deployment")) == ("Pod", "Deployment.apps")
    assert is_cluster_scoped("wharfinger.dev", "Module")
    assert not is_cluster_scoped("wharfinger.dev", "Application")


def test_an_id_is_shown_as_kind_namespace_and_name() -> None:
    assert shown(Id("Deployment.apps", "a", "web")) == "Deployment a/web"
    assert shown(Id("Node", "", "one")) == "Node one"


def test_an_object_with_a_generated_name_is_identified_by_its_content() -> None:
    one, other = (
        object_id({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "a-"}, "spec": {"n": n}}, "n")
        for n in (1, 2)
    )
    assert one != other
    assert one.name.startswith("a-")
    assert naming_problem(one) == ""


@pytest.mark.parametrize(
    ("namespace", "name", "told"),
    [
        ("apps", "system:node", ""),
        ("", "a.b_C", ""),
        ("../x", "a", "metadata.namespace: '../x'"),
        ("/tmp", "a", "metadata.namespace: '/tmp'"),
        ("apps", "../a", "metadata.name: '../a'"),
        ("apps", "..", "metadata.name: '..'"),
        ("apps", "a%2f", "metadata.name: 'a%2f'"),
    ],
)
def test_names_refused_by_a_server_are_reported(namespace: str, name: str, told: str) -> None:
    found = naming_problem(Id("ConfigMap", namespace, name))
    assert found.startswith(told)
    assert bool(found) is bool(told)
