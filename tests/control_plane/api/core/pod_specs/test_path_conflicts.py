"""Warnings about conflicting paths of files in one volume."""

from wharfinger.control_plane.api.core.pod_specs.path_conflicts import path_warnings
from wharfinger.formats.json.value import JsonObject, JsonValue


def test_a_file_at_the_folder_of_another_file_causes_a_warning() -> None:
    items: JsonObject = {"items": [{"key": "a", "path": "p"}, {"key": "b", "path": "p/q"}, {"key": "c", "path": "pq"}]}
    assert path_warnings([{"name": "v", "configMap": {"name": "m", **items}}]) == [
        'volume "v" (ConfigMap "m"): overlapping paths: "p/q" with "p"'
    ]


def test_files_without_a_path_cause_no_warnings() -> None:
    assert path_warnings([{"name": "v", "secret": {"items": [{"path": ""}, {"path": ""}]}}, {"name": "w"}]) == []


def test_warnings_are_in_the_order_of_the_files() -> None:
    items: list[JsonValue] = [{"path": path} for path in ("a/b/c/", "a", "a/b", "x", "/a", "/a/b", "a//b")]
    said = path_warnings([{"name": "v", "secret": {"secretName": "s", "items": items}}])
    assert [warning.rpartition(": ")[2] for warning in said] == [
        '"a" with "a/b/c"',
        '"a/b" with "a/b/c"',
        '"a/b" with "a"',
        '"/a/b" with "/a"',
        '"a//b" with "a"',
    ]
