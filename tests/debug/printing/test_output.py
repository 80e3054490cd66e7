"""JSON and YAML documents. A program that reads them gets the same value, and no control character reaches a terminal."""

import json
import subprocess
from collections.abc import Callable

import pytest
import yaml
from hypothesis import given

from tests.debug.support.samples import HOSTILE, JSON_VALUES
from wharfinger.debug.printing.output import render, render_json, render_yaml
from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.terminal_text import is_safe
from wharfinger.formats.yaml.reader import read_yaml

KUBERNETES_READS_OTHERWISE = [
    *("y", "n", "Y", "N", "yes", "no", "on", "off", "true", "null", "~", "", "=", "<<", ".inf"),
    *(
        "1",
        "1e3",
        "1.0e3",
        "0777",
        "010",
        "0o777",
        "08",
        "-.5",
        "+1",
        "1e400",
        "0x1F",
        "1_000",
        "12:30:45",
        "2026-01-01",
    ),
    *("- a", "a: b", "a #b", "#a", "&a", "*a", "!a", "|", ">", "%a", "@a", "`a", "{}", "[]", "'", '"', "---", "..."),
    *(" a", "a ", "a\n", "\na", "a\n\n b\n"),
]


@given(JSON_VALUES)
def test_json_is_read_back(value: JsonValue) -> None:
    document = render(value, "json")
    assert json.loads(document) == value
    assert document.endswith("\n")
    assert is_safe(document, allow="\n")


@given(JSON_VALUES)
def test_yaml_is_read_back(value: JsonValue) -> None:
    document = render(value, "yaml")
    assert read_yaml(document, what="a dump") == value
    assert document.endswith("\n")
    assert is_safe(document, allow="\n")


def test_kubernetes_reads_the_same_values_from_yaml() -> None:
    value: JsonValue = {"texts": list(KUBERNETES_READS_OTHERWISE), **dict.fromkeys(KUBERNETES_READS_OTHERWISE, "x")}
    manifest: JsonValue = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "value": value}
    done = subprocess.run(
        ["kubectl", "patch", "--local", "-f", "-", "--type=merge", "-p", "{}", "-o", "json"],
        input=render_yaml(manifest).encode(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["value"] == value


def test_yaml_is_written_in_readable_block_style() -> None:
    value: JsonValue = {"b": 1, "a": ["x", {"c": "one\ntwo\n"}], "empty": {}, "none": None, "text": "ü ✓"}
    assert render_yaml(value) == ("b: 1\na:\n- x\n- c: |\n    one\n    two\nempty: {}\nnone: null\ntext: ü ✓\n")


@pytest.mark.parametrize("output", [render_json, render_yaml])
def test_hostile_text_is_escaped_and_read_back(output: Callable[[JsonValue], str]) -> None:
    document = output({HOSTILE: HOSTILE})
    assert is_safe(document, allow="\n")
    read = yaml.safe_load(document)
    expected = HOSTILE.replace("\ud800", "?")
    assert read == {expected: expected}


def test_a_lone_surrogate_does_not_hide_the_remaining_text() -> None:
    value: JsonValue = {"a": ["\udfff", 1, None, {"\ud800": 2.5}]}
    assert json.loads(render_json(value)) == {"a": ["?", 1, None, {"?": 2.5}]}


def test_deeply_nested_values_are_printed() -> None:
    deep: JsonValue = "bottom"
    for level in range(220):
        deep = [deep] if level % 2 else {"a": deep}
    assert json.loads(render_json(deep)) == deep
    assert yaml.load(render_yaml(deep), yaml.CSafeLoader) == deep


def test_large_and_non_finite_numbers_are_printed() -> None:
    assert json.loads(render_json([2**70, 1e300])) == [2**70, 1e300]
    assert yaml.safe_load(render_yaml([2**70])) == [2**70]
    assert json.loads(render_json([float("nan"), float("inf")])) == [None, None]
    assert yaml.safe_load(render_yaml([float("nan")])) == [None]
