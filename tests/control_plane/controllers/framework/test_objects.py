"""Helpers with which controllers read objects of any kind."""

from wharfinger.control_plane.controllers.framework.objects import (
    annotation,
    condition_of,
    controller_of,
    generation_of,
    is_controlled_by,
    is_true,
    owner_reference,
    replicas_of,
    with_fields,
)
from wharfinger.formats.json.value import JsonObject


def test_controller_owners_are_recognized() -> None:
    owner: JsonObject = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "uid": "1"}}
    owned: JsonObject = {"metadata": {"ownerReferences": [{"uid": "0"}, owner_reference(owner)]}}
    assert is_controlled_by(owned, owner)
    assert not is_controlled_by(owned, None)
    assert controller_of({"metadata": {"ownerReferences": [{"uid": "1"}, 3]}}) is None


def test_accessors_return_fields_or_defaults() -> None:
    obj: JsonObject = {"metadata": {"name": "a", "generation": 3}, "spec": {"replicas": 2}}
    obj["status"] = {"conditions": [3, {"type": "Ready", "status": "True"}]}
    assert (generation_of(obj), generation_of({}), replicas_of(obj), replicas_of({})) == (3, 0, 2, 1)
    assert (is_true(obj, "Ready"), condition_of(obj, "Other"), annotation(obj, "x")) == (True, None, "")
    assert with_fields(obj, name=None, labels={"a": "b"})["metadata"] == {"generation": 3, "labels": {"a": "b"}}
