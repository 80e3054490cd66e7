"""The names and API paths of kinds and objects."""

import pytest

from wharfinger.formats.json.value import JsonObject, ShapeError
from wharfinger.kube.resource import ObjectKey, ResourceType, kind_of, name_of, namespace_of, split_api_version

POD = ResourceType("", "v1", "Pod", "pods", namespaced=True)
NODE = ResourceType("", "v1", "Node", "nodes", namespaced=False)
DEPLOYMENT = ResourceType("apps", "v1", "Deployment", "deployments", namespaced=True)


def test_paths_follow_scope_and_group() -> None:
    assert POD.path() == "/api/v1/pods"
    assert POD.path("prod") == "/api/v1/namespaces/prod/pods"
    assert POD.path("prod", "a", "status") == "/api/v1/namespaces/prod/pods/a/status"
    assert NODE.path("stray", "n") == "/api/v1/nodes/n"
    assert ObjectKey(DEPLOYMENT, "prod", "web").path == "/apis/apps/v1/namespaces/prod/deployments/web"


def test_resources_and_keys_have_names() -> None:
    assert (POD.api_version, DEPLOYMENT.api_version) == ("v1", "apps/v1")
    assert (POD.group_kind, DEPLOYMENT.group_kind) == ("Pod", "Deployment.apps")
    assert str(ObjectKey(DEPLOYMENT, "prod", "web")) == "Deployment.apps prod/web"
    assert str(ObjectKey(NODE, "", "n")) == "Node n"
    assert [split_api_version(text) for text in ("v1", "apps/v1", "")] == [("", "v1"), ("apps", "v1"), ("", "")]


def test_kind_and_name_of_an_object_are_read() -> None:
    obj: JsonObject = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b"}}
    assert (kind_of(obj), namespace_of(obj), name_of(obj)) == (("v1", "Pod"), "b", "a")
    assert (kind_of({}), namespace_of({}), name_of({})) == (("", ""), "", "")
    with pytest.raises(ShapeError, match=r"metadata\.name"):
        name_of({"metadata": {"name": 5}})
