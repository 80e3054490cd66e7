from tests.control_plane.support.samples import builtin, definition
from wharfinger.control_plane.verbs.preparation import keeps_status, prepared
from wharfinger.formats.json.value import find


def test_some_kinds_get_an_initial_status() -> None:
    namespace = prepared(builtin("", "v1", "namespaces").kind, {"metadata": {"name": "a"}})

    assert find(namespace, "status", "phase") == "Active"
    assert "status" not in prepared(builtin("", "v1", "configmaps").kind, {})
    crd = prepared(builtin("apiextensions.k8s.io", "v1", "customresourcedefinitions").kind, definition())
    assert find(crd, "status", "storedVersions") == ["v1"]


def test_nodes_keep_the_status_of_the_client() -> None:
    node = builtin("", "v1", "nodes").kind

    assert keeps_status(node)
    assert prepared(node, {"status": {"a": 1}}) == {"status": {"a": 1}}
    assert "status" in prepared(node, {})
