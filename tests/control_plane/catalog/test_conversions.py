"""The conversions of kinds whose versions differ in form."""

from wharfinger.control_plane.catalog.catalog import Catalog, Served
from wharfinger.control_plane.catalog.conversions import (
    at_version,
    is_converted,
    settled,
    shown,
    stored_field,
    to_stored,
)
from wharfinger.formats.json.value import JsonObject


def served(group: str, version: str, plural: str) -> Served:
    found = Catalog().find(group, version, plural)
    assert found is not None
    return found


def test_an_object_without_conversion_is_returned_itself() -> None:
    kind = served("", "v1", "configmaps")
    obj: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap"}
    assert to_stored(kind, obj) is obj
    assert shown(kind, obj) is obj
    assert settled(kind, obj) is obj
    assert not is_converted(kind)
    assert stored_field(kind, "metadata.name") == "metadata.name"


def test_events_are_converted_between_both_groups() -> None:
    kind = served("events.k8s.io", "v1", "events")
    stored = to_stored(kind, {"kind": "Event", "metadata": {"name": "a"}, "note": "n", "regarding": {"name": "p"}})
    assert (stored["apiVersion"], stored["message"]) == ("v1", "n")
    again = shown(kind, stored)
    assert (again["apiVersion"], again["note"]) == ("events.k8s.io/v1", "n")
    assert stored_field(kind, "regarding.name") == "involvedObject.name"


def test_an_object_is_converted_to_known_versions_only() -> None:
    kind = served("autoscaling", "v2", "horizontalpodautoscalers")
    assert is_converted(kind)
    found = at_version(kind, {"apiVersion": "autoscaling/v2", "metadata": {}, "spec": {}}, "autoscaling/v1")
    assert found is not None
    assert found[0]["apiVersion"] == "autoscaling/v1"
    assert at_version(kind, {}, "autoscaling/v9") is None
    assert at_version(kind, {}, "apps/v1") is None
