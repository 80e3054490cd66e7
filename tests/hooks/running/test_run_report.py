"""Reports of a run: the changed values, their differences from the given values, problems, and responses to webhooks."""

from dataclasses import replace
from pathlib import Path

import pytest

from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.hooks.running.run_report import ADMISSION, CONVERSION, diff_of, document_of, report_on
from wharfinger.hooks.running.runner import HookOutcome, HookRun

RUN = HookRun("a", Path("/a"), Path("/"), (), {"global": {}, "web": {"b": 1, "a": [1, 2]}}, {"web": {}})
DONE = HookOutcome(
    succeeded=True,
    exit_description="exit status 0",
    log_lines=(),
    values_patch=({"op": "add", "path": "/web/c", "value": {"x": 1}}, {"op": "remove", "path": "/web/a/0"}),
    config_values_patch=(),
    object_patches=({"operation": "Delete"},),
    metrics=({"name": "m", "set": 1},),
    user_s=0.1,
    system_s=0.2,
    max_rss_bytes=3,
    wall_s=0.5,
)


def test_report_shows_values_only_if_the_run_changed_them() -> None:
    document = document_of(RUN, report_on(RUN, DONE, "web"))
    assert document["values"] == {"global": {}, "web": {"b": 1, "a": [2], "c": {"x": 1}}}
    assert "configValues" not in document
    assert "responses" not in document
    assert document["usage"] == {"wallSeconds": 0.5, "userSeconds": 0.1, "systemSeconds": 0.2, "maxRssBytes": 3}
    assert "values" not in document_of(RUN, report_on(RUN, replace(DONE, values_patch=()), "web"))


def test_diff_is_in_unified_format() -> None:
    assert diff_of(RUN, report_on(RUN, DONE, "web")).splitlines() == [
        "--- values",
        "+++ values after the hook",
        "@@ -1,6 +1,7 @@",
        " global: {}",
        " web:",
        "   a:",
        "-  - 1",
        "   - 2",
        "   b: 1",
        "+  c:",
        "+    x: 1",
    ]
    changed = replace(DONE, values_patch=(), config_values_patch=({"op": "add", "path": "/web/a", "value": 1},))
    assert diff_of(RUN, report_on(RUN, changed, "web")).splitlines()[:2] == [
        "--- config-values",
        "+++ config-values after the hook",
    ]
    assert diff_of(RUN, report_on(RUN, replace(DONE, succeeded=False), "web")) == ""


def test_values_without_a_block_style_are_compared_as_json() -> None:
    run = replace(RUN, values={"web": {"more than 64 bits": 2**70}})
    lines = diff_of(run, report_on(run, replace(DONE, values_patch=(DONE.values_patch[0],)), "web")).splitlines()
    assert [line[:3] for line in lines] == ["---", "+++", "@@ ", '-{"', '+{"']


def test_diff_from_empty_values_shows_additions() -> None:
    run = replace(RUN, values={})
    done = replace(DONE, values_patch=({"op": "add", "path": "/web/a", "value": 1},))
    assert diff_of(run, report_on(run, done, "")).splitlines()[2:] == ["@@ -0,0 +1,2 @@", "+web:", "+  a: 1"]


@pytest.mark.parametrize(
    ("section", "operation", "problem"),
    [
        ("web", {"op": "add", "path": "/other/a", "value": 1}, "path '/other/a' is not below /web"),
        ("web", {"op": "test", "path": "/web/b", "value": 2}, "cannot apply values patch"),
        ("web", {"op": "remove", "path": "/web/none"}, "cannot apply values patch"),
        ("", {"op": "add", "path": "/other/a", "value": 1}, ""),
        ("", {"op": "add", "path": "/otherEnabled", "value": True}, ""),
        ("", {"op": "add", "path": "", "value": 1}, "the path of its first operation names no section of values"),
        ("", {"op": "add", "path": 1}, "the path of its first operation names no section of values"),
        ("", 1, "the path of its first operation names no section of values"),
        ("web", {"op": "add", "path": "/webEnabled", "value": True}, "is not below /web"),
    ],
)
def test_a_patch_that_the_daemon_would_refuse_is_reported_as_a_problem(
    section: str, operation: JsonValue, problem: str
) -> None:
    report = report_on(RUN, replace(DONE, values_patch=(operation,)), section)
    assert bool(report.problems) == bool(problem)
    assert all(each.startswith("values: ") and problem in each for each in report.problems), report.problems
    assert (report.values == RUN.values) == bool(problem)


@pytest.mark.parametrize(
    ("answers", "responses"),
    [
        ({ADMISSION[0]: b'{"allowed":true}'}, {"admission": {"allowed": True}}),
        ({ADMISSION[0]: b"\n", ADMISSION[1]: b'{"allowed":false}'}, {"admission": {"allowed": False}}),
        ({CONVERSION: b'{"convertedObjects":[]}'}, {"conversion": {"convertedObjects": []}}),
        ({CONVERSION: b"\xffno"}, {"conversion": "\N{REPLACEMENT CHARACTER}no"}),
    ],
)
def test_report_shows_webhook_answers(answers: dict[str, bytes], responses: JsonObject) -> None:
    assert find(document_of(RUN, report_on(RUN, replace(DONE, answers=answers), "web")), "responses") == responses
