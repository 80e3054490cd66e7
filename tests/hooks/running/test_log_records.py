"""Log records of hook output: every line appears once and in order, as text or as a JSON object."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.json.value import JsonValue
from wharfinger.hooks.running.log_lines import MAX_LINE_CHARS, TRUNCATED, LogLines
from wharfinger.hooks.running.log_records import DEFAULT_MESSAGE, JSON_MARK, MAX_OBJECT_LINES, RecordBuffer
from wharfinger.hooks.running.runner import LogRecord


def records_of(*lines: str) -> list[LogRecord]:
    found: list[LogRecord] = []
    buffer = RecordBuffer("stdout", found.append)
    for line in lines:
        buffer.line(line)
    buffer.end()
    return found


def text(*lines: str) -> list[LogRecord]:
    return [LogRecord("stdout", "info", line) for line in lines]


def record(
    level: str = "info", message: str = DEFAULT_MESSAGE, **fields: JsonValue
) -> tuple[str, str, dict[str, JsonValue]]:
    return level, message, {**fields, JSON_MARK: True}


def shown(found: Sequence[LogRecord]) -> list[tuple[str, str, dict[str, JsonValue]]]:
    return [(one.level, one.message, dict(one.fields)) for one in found]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (['{"level":"info","msg":"x","a":"b"}'], record(message="x", hook_a="b")),
        (['{"time":"2026-01-01","level":"WARN","msg":"x"}'], record("warning", "x")),
        (['{"level":"fatal"}'], record("error")),
        (['{"level":"loud","n":1}'], record(hook_n=1)),
        (['{"level":3,"msg":[1,2]}'], record(message="[1,2]")),
        (["{}"], record()),
        (['{"a":{"b":["}",1]}}'], record(hook_a={"b": ["}", 1]})),
        (["{", '"level": "debug",', '"a": [', "1,", "-2", "],", '"b": true,', '"c":', "null", "}"],
         record("debug", hook_a=[1, -2], hook_b=True, hook_c=None)),
        (['{"a": "\\"{"}'], record(hook_a='"{')),
    ],
)  # fmt: skip
def test_json_object_is_one_record(lines: list[str], expected: tuple[str, str, dict[str, JsonValue]]) -> None:
    assert shown(records_of(*lines)) == [expected]


@pytest.mark.parametrize(
    "lines",
    [
        ["plain", "text"],
        ["[1, 2]", "3", '"x"', "null"],
        ["{ not json }"],
        ["{a: 1}"],
        ['{"a":1', "never closed"],
        ['{"a":1', '"b":2'],
        ['{"a":"open', 'string"}'],
        ['{"a":1}}'],
        ['{"a":1} trailing'],
        ['{"a":1,}'],
        ['{"a":]'],
        ["{", "starting up", "}"],
        ['{"a":1}{"b":2}'],
    ],
)
def test_incomplete_objects_are_text_line_by_line(lines: list[str]) -> None:
    assert records_of(*lines) == text(*lines)


def test_lines_after_an_incomplete_object_are_separate_records() -> None:
    found = records_of('{"a":', "oops", '{"level":"error","msg":"m"}', "text", '{"b":', '{"c":1}', "}", "end")
    assert found[:2] == text('{"a":', "oops")
    assert shown(found[2:3]) == [record("error", "m")]
    assert found[3:4] == text("text")
    assert shown(found[4:5]) == [record(hook_b={"c": 1})]
    assert found[5:] == text("end")


def test_record_is_emitted_with_the_line_that_closes_it() -> None:
    found: list[LogRecord] = []
    buffer = RecordBuffer("stderr", found.append)
    buffer.line('{"msg":')
    assert found == []
    buffer.line('"m"}')
    assert [(one.stream, one.message) for one in found] == [("stderr", "m")]


def test_object_in_a_truncated_line_is_marked_as_truncated() -> None:
    line = '{"a":"' + "x" * (MAX_LINE_CHARS - 6) + TRUNCATED
    found = records_of('{"b":', line)
    assert found[0] == text('{"b":')[0]
    assert shown(found[1:]) == [record(hook={"truncated": line})]


def test_text_in_a_truncated_line_is_text() -> None:
    line = "x" * MAX_LINE_CHARS + TRUNCATED
    assert records_of(line) == text(line)


@pytest.mark.parametrize(
    "lines",
    [["{", *['"a":1,'] * (MAX_OBJECT_LINES + 5)], ["{", *['"a":"' + "x" * 5_000 + '",'] * 3]],
    ids=["too many lines", "too many characters"],
)
def test_buffered_lines_are_limited(lines: list[str]) -> None:
    found: list[LogRecord] = []
    buffer = RecordBuffer("stdout", found.append)
    for line in lines:
        buffer.line(line)
    assert found
    buffer.end()
    assert found == text(*lines)


@given(
    st.dictionaries(
        st.text(max_size=8), st.recursive(st.none() | st.integers() | st.text(max_size=5), st.lists, max_leaves=5)
    )
)
def test_any_object_is_one_record_compact_or_indented(document: dict[str, JsonValue]) -> None:
    compact = json.dumps(document).encode()
    spread = json.dumps(document, indent=1).encode()
    expected = {f"hook_{key}": value for key, value in document.items() if key not in {"level", "msg", "time"}}
    for data in (compact, spread):
        found: list[LogRecord] = []
        buffer = RecordBuffer("stdout", found.append)
        lines = LogLines(10_000, also_stdout=buffer.line)
        for at in range(0, len(data), 7):
            lines.stdout.feed(data[at : at + 7])
        lines.end()
        buffer.end()
        assert [dict(one.fields) for one in found] == [{**expected, JSON_MARK: True}]


@given(
    st.lists(
        st.sampled_from(["{", "}", '"a":', '"', "[", "]", "1,", "text", "null", '{"a":1}', "\\", "{}"]), max_size=30
    )
)
def test_no_line_of_any_output_is_lost(lines: list[str]) -> None:
    found = records_of(*lines)
    plain = [one.message for one in found if not one.fields]
    rest = iter(lines)
    assert all(line in rest for line in plain), "text lines are out of order"
    assert len(plain) + sum(1 for one in found if one.fields) <= len(lines)
    if not any(one.fields for one in found):
        assert plain == lines
