import json

from tests.control_plane.support.samples import definition
from wharfinger.control_plane.catalog.catalog import Catalog
from wharfinger.control_plane.catalog.custom_kinds import kind_of_definition
from wharfinger.control_plane.discovery.openapi import OpenApi
from wharfinger.formats.json.value import find_object, find_str


def custom() -> Catalog:
    found = Catalog()
    found.set_custom(kind_of_definition(definition()))
    return found


def test_the_index_has_every_document() -> None:
    served = OpenApi(custom())

    paths = json.loads(served.index().body)["paths"]

    assert {"api/v1", "apis/apps/v1", "apis/example.com/v1"} <= set(paths)
    for name in paths:
        document = served.version_3(name)
        assert document is not None
        assert find_str(paths, name, "serverRelativeURL") == f"/openapi/v3/{name}?hash={document.hash}"


def test_documents_follow_the_catalog() -> None:
    catalog = Catalog()
    served = OpenApi(catalog)
    before = served.version_2()
    assert served.version_3("apis/example.com/v1") is None

    catalog.set_custom(kind_of_definition(definition()))

    assert served.version_2().hash != before.hash
    document = served.version_3("apis/example.com/v1")
    assert document is not None
    schemas = find_object(json.loads(document.body), "components", "schemas")
    assert {"com.example.v1.Widget", "com.example.v1.WidgetList"} <= set(schemas)
    assert "io.k8s.api.autoscaling.v1.Scale" not in schemas
    assert not [name for name in schemas if "token" in name]
    assert served.version_3("apis/example.com/v1") is document


def test_version_2_has_all_kinds() -> None:
    served = OpenApi(custom())
    whole = json.loads(served.version_2().body)

    assert {"com.example.v1.Widget", "io.k8s.api.core.v1.Pod"} <= set(whole["definitions"])
    assert served.version_2_protobuf().hash == served.version_2().hash
    assert b"com.example.v1.Widget" in served.version_2_protobuf().body
