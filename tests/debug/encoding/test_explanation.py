"""Explanations to JSON and back."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.debug.support.samples import JSON_VALUES, WHY, WHY_READY, explanations
from wharfinger.debug.encoding.explanation import explanation_from_json, explanation_to_json
from wharfinger.formats.json.value import JsonValue, ShapeError
from wharfinger.runtime.inspector import ExplanationSnapshot


def test_the_documented_shape() -> None:
    assert explanation_to_json(WHY) == {
        "name": "prod.shop",
        "ready": False,
        "causes": [
            {"subject": "prod.shop", "state": "waits for ingress", "since": "2026-05-17T12:30:45.123456Z"},
            {
                "subject": "ingress",
                "state": "fails",
                "message": "PackageHookFailed: hooks/a.sh: exit status 3; attempt 4",
            },
        ],
        "remedy": "look at the hook's lines in the daemon's log",
        "also": ["prod.shop needs metrics"],
    }
    assert explanation_to_json(WHY_READY) == {"name": "ingress", "ready": True, "causes": []}


@given(explanations())
def test_it_comes_back(explanation: ExplanationSnapshot) -> None:
    assert explanation_from_json(json.loads(json.dumps(explanation_to_json(explanation)))) == explanation


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ([], "explanation: expected an object"),
        ({"ready": True}, "name: required"),
        ({"name": "a"}, "ready: expected a boolean"),
        ({"name": "a", "ready": True, "causes": {}}, "causes: expected a list"),
        ({"name": "a", "ready": True, "causes": [1]}, "causes: expected an object"),
        ({"name": "a", "ready": True, "causes": [{"subject": "a"}]}, "state: required"),
        ({"name": "a", "ready": True, "causes": [{"subject": "a", "state": "b", "since": "soon"}]}, "since: 'soon'"),
        ({"name": "a", "ready": True, "also": [1]}, "also: expected a string"),
    ],
)
def test_another_shape_is_named(value: JsonValue, why: str) -> None:
    with pytest.raises(ShapeError, match=why):
        explanation_from_json(value)


def test_keys_of_a_newer_daemon_are_ignored() -> None:
    assert explanation_from_json({**explanation_to_json(WHY), "invented": 1}) == WHY


@given(st.sampled_from(["name", "ready", "causes", "remedy", "also"]), JSON_VALUES)
def test_nothing_but_a_shape_error_comes_out_of_the_reader(key: str, value: JsonValue) -> None:
    with suppress(ShapeError):
        explanation_from_json({**explanation_to_json(WHY), key: value})
    with suppress(ShapeError):
        explanation_from_json({**explanation_to_json(WHY), "causes": [value]})
    with suppress(ShapeError):
        explanation_from_json(value)
