from tests.cluster.control_plane.samples import builtin, definition
from wharfinger.cluster.control_plane.object_metadata import with_metadata, without_status
from wharfinger.cluster.control_plane.preparation import keeps_status, prepared
from wharfinger.formats.json_value import find


def test_metadata_is_copied() -> None:
    obj = with_metadata({"metadata": {"a": 1, "b": 2}}, {"a": None, "c": 3})

    assert obj == {"metadata": {"b": 2, "c": 3}}
    assert without_status({"a": 1, "status": {}}) == {"a": 1}


def test_the_first_status() -> None:
    namespace = prepared(builtin("", "v1", "namespaces").kind, {"metadata": {"name": "a"}})

    assert find(namespace, "status", "phase") == "Active"
    assert "status" not in prepared(builtin("", "v1", "configmaps").kind, {})
    crd = prepared(builtin("apiextensions.k8s.io", "v1", "customresourcedefinitions").kind, definition())
    assert find(crd, "status", "storedVersions") == ["v1"]


def test_nodes_bring_their_status() -> None:
    node = builtin("", "v1", "nodes").kind

    assert keeps_status(node)
    assert prepared(node, {"status": {"a": 1}}) == {"status": {"a": 1}}
    assert "status" in prepared(node, {})
