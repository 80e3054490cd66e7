"""Validation of projected volumes: files with equal paths, and valid sources."""

from wharfinger.control_plane.api.core.pod_specs.projections import downward_errors, projected_errors
from wharfinger.formats.json.value import JsonObject


def test_two_projected_files_at_one_path_are_refused() -> None:
    item: JsonObject = {"key": "k", "path": "p"}
    sources: JsonObject = {
        "sources": [{"secret": {"name": "s", "items": [item]}}, {"configMap": {"name": "m", "items": [item]}}]
    }
    assert [str(error) for error in projected_errors(sources, "v")] == [
        'v: Invalid value: "m": conflicting duplicate paths'
    ]


def test_valid_projected_sources_are_accepted() -> None:
    field: JsonObject = {"path": "a", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels['a/b']"}}
    token: JsonObject = {"serviceAccountToken": {"path": "t", "expirationSeconds": 600}}
    assert downward_errors({"items": [field]}, "v") == []
    assert projected_errors({"sources": [token, {"downwardAPI": {"items": [field]}}]}, "v") == []
