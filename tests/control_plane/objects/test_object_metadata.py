"""Copies of objects with changed metadata, or without their status."""

from wharfinger.control_plane.objects.object_metadata import metadata_of, with_metadata, without_status
from wharfinger.formats.json.value import JsonObject


def test_with_metadata_changes_a_copy() -> None:
    before: JsonObject = {"metadata": {"a": 1, "b": 2}}
    assert with_metadata(before, {"a": None, "c": 3}) == {"metadata": {"b": 2, "c": 3}}
    assert before == {"metadata": {"a": 1, "b": 2}}


def test_without_status_removes_the_status() -> None:
    assert metadata_of({}) == {}
    assert with_metadata({}, {"a": None}) == {"metadata": {}}
    assert without_status({"a": 1, "status": {}}) == {"a": 1}
