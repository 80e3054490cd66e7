"""Comparisons as text."""

import json

from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.output.comparison import Comparison, ObjectChange
from wharfinger.offline.output.diff_text import diff_json, summary_lines, unified
from wharfinger.offline.store.identity import object_id

OLD: JsonObject = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "x", "namespace": "n"},
    "data": {"a": "1"},
}
NEW: JsonObject = {**OLD, "data": {"a": "2\x1b[31m"}}
WHO = object_id(OLD)
CHANGED = Comparison((ObjectChange(WHO, OLD, NEW),), (WHO,))


def test_changes_are_printed_as_unified_diffs() -> None:
    text = unified(CHANGED)
    assert "--- ConfigMap n/x\n+++ ConfigMap n/x\n@@" in text
    assert "-  a: '1'" in text
    assert "\x1b" not in text
    assert "\x1b[31m-  a: '1'\x1b[0m\n" in unified(CHANGED, coloured=True)
    assert "+++ /dev/null" in unified(Comparison((ObjectChange(WHO, OLD, None),), ()))
    assert "--- /dev/null" in unified(Comparison((ObjectChange(WHO, None, OLD),), ()))


def test_summaries_count_changes_and_list_uncompared_objects() -> None:
    assert summary_lines(Comparison((), ())) == ["no differences"]
    assert summary_lines(CHANGED) == [
        "objects: 0 added, 1 changed, 0 deleted",
        "not compared, because it failed: ConfigMap n/x",
    ]


def test_releases_that_may_make_nodes_are_listed() -> None:
    many = tuple(object_id({**OLD, "metadata": {"name": f"x{number}", "namespace": "n"}}) for number in range(7))
    comparison = Comparison((), (), unsearched=many)
    assert summary_lines(comparison)[1] == (
        "not compared: Flux, Argo CD and Wharfinger objects that ConfigMap n/x0, ConfigMap n/x1, ConfigMap n/x2, ConfigMap n/x3, "
        "ConfigMap n/x4 and 2 more may make; --render-all compares them"
    )
    assert json.loads(diff_json(comparison))["notSearched"][0] == "ConfigMap n/x0"


def test_json_has_the_summary_and_the_changes() -> None:
    text = diff_json(CHANGED)
    assert "\x1b" not in text
    document = json.loads(text)
    assert document["summary"] == {"added": 0, "changed": 1, "deleted": 0}
    assert document["changes"][0]["after"] == NEW
    assert document["notCompared"] == ["ConfigMap n/x"]
