import pytest

from tests.control_plane.support.samples import NOW, builtin, definition
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.catalog.custom_kinds import kind_of_definition
from wharfinger.control_plane.http.tables import check_include_object, list_view, object_view
from wharfinger.control_plane.wire.negotiation import View
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import JsonObject, find, find_list

CONFIG = builtin("", "v1", "configmaps")
ITEM: JsonObject = {
    "kind": "ConfigMap",
    "apiVersion": "v1",
    "metadata": {"name": "a", "resourceVersion": "5", "creationTimestamp": "2026-11-21T03:59:59Z"},
    "data": {"x": "1"},
}
META: JsonObject = {"resourceVersion": "9"}


def test_a_table_has_columns_rows_and_partial_objects() -> None:
    table = list_view(CONFIG, [ITEM], META, View.TABLE, "Metadata", NOW)

    assert [find(column, "name") for column in find_list(table, "columnDefinitions")] == ["Name", "Data", "Age"]
    assert find(table, "rows", 0, "cells") == ["a", 1, "1s"]
    assert find(table, "rows", 0, "object", "kind") == "PartialObjectMetadata"
    assert table["metadata"] == META


def test_rows_contain_the_requested_form_of_the_object() -> None:
    whole = list_view(CONFIG, [ITEM], META, View.TABLE, "Object", NOW)
    bare = list_view(CONFIG, [ITEM], META, View.TABLE, "None", NOW)

    assert find(whole, "rows", 0, "object") == ITEM
    assert find(bare, "rows", 0, "object") is None
    assert check_include_object("") == "Metadata"
    with pytest.raises(StatusError, match="must be 'Metadata', 'Object', 'None', or empty"):
        check_include_object("Some")


def test_only_items_of_custom_lists_have_a_kind() -> None:
    kind = kind_of_definition(definition())

    built_in = list_view(CONFIG, [ITEM], META, View.OBJECT, "", NOW)
    custom = list_view(Served(kind, kind.versions[0]), [ITEM], META, View.OBJECT, "", NOW)

    assert "kind" not in find(built_in, "items", 0)  # type: ignore[operator]
    assert (built_in["kind"], custom["kind"]) == ("ConfigMapList", "WidgetList")
    assert find(custom, "items", 0, "kind") == "ConfigMap"
    assert custom["metadata"] == {"continue": "", "resourceVersion": "9"}


def test_metadata_views_contain_only_metadata() -> None:
    listed = list_view(CONFIG, [ITEM], META, View.METADATA_LIST, "", NOW)

    assert listed["kind"] == "PartialObjectMetadataList"
    assert find(listed, "items", 0) == object_view(CONFIG, ITEM, View.METADATA, "", NOW)
    assert object_view(CONFIG, ITEM, View.OBJECT, "", NOW) is ITEM


def test_later_events_of_a_watch_have_no_headers() -> None:
    first = object_view(CONFIG, ITEM, View.TABLE, "Metadata", NOW)
    later = object_view(CONFIG, ITEM, View.TABLE, "Metadata", NOW, headers=False)

    assert first["metadata"] == {"resourceVersion": "5"}
    assert find_list(first, "columnDefinitions") != []
    assert find_list(later, "columnDefinitions") == []
