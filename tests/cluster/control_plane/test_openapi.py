from tests.cluster.control_plane.samples import SCHEMA, definition
from wharfinger.cluster.control_plane import openapi
from wharfinger.cluster.control_plane.catalog import Catalog
from wharfinger.cluster.control_plane.crds import kind_of_definition
from wharfinger.formats.json_value import find, find_list, find_object, find_str


def catalog() -> Catalog:
    found = Catalog()
    found.set_custom(kind_of_definition(definition()))
    return found


def test_the_index_leads_to_every_document() -> None:
    served = catalog()

    paths = find_object(openapi.index(served), "paths")

    assert {"api/v1", "apis/apps/v1", "apis/example.com/v1"} <= set(paths)
    assert all(openapi.document(served, name) is not None for name in paths)
    assert find_str(paths, "api/v1", "serverRelativeURL").startswith("/openapi/v3/api/v1?hash=")


def test_hashes_follow_the_content() -> None:
    before = find_object(openapi.index(Catalog()), "paths")
    after = find_object(openapi.index(catalog()), "paths")

    assert before["api/v1"] == after["api/v1"]
    assert "apis/example.com/v1" not in before


def test_patches_take_field_validation() -> None:
    document = openapi.document(catalog(), "apis/apps/v1")

    patch = find_object(document, "paths", "/apis/apps/v1/namespaces/{namespace}/deployments/{name}", "patch")
    assert "fieldValidation" in [find(item, "name") for item in find_list(patch, "parameters")]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert (
        find_list(
            find_object(document, "paths", "/apis/apps/v1/namespaces/{namespace}/deployments/{name}", "get"),
            "parameters",
        )
        == []
    )


def test_cluster_scoped_kinds_have_no_namespace_in_their_path() -> None:
    assert "/api/v1/nodes/{name}" in find_object(openapi.document(catalog(), "api/v1"), "paths")


def test_custom_kinds_bring_their_schema() -> None:
    schemas = find_object(openapi.document(catalog(), "apis/example.com/v1"), "components", "schemas")

    assert find(schemas, "com.example.v1.Widget", "properties") == SCHEMA["properties"]
    assert "com.example.v1.Widget" in find_object(openapi.version_2(catalog()), "definitions")


def test_what_is_not_served_has_no_document() -> None:
    for name in ("apis/apps/v9", "apis/apps", "api", "", "x/y", "api/v1/x"):
        assert openapi.document(catalog(), name) is None


def test_version_2_in_protobuf_says_nothing_of_kinds() -> None:
    assert openapi.version_2_protobuf() == b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.36.2"
