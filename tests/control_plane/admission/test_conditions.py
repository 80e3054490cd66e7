"""Match conditions of webhooks and policies: all of them are true, one is false, or one raises an error."""

import pytest

from wharfinger.control_plane.admission.conditions import ConditionError, Conditions
from wharfinger.control_plane.api.admissionregistration.expression_environment import Environment
from wharfinger.control_plane.cel.values.documents import document_value
from wharfinger.formats.json.value import JsonValue

NAMES = {"object": document_value({"a": 1})}


def conditions(*expressions: str, strict: bool = True) -> Conditions:
    written: list[JsonValue] = [{"name": "c", "expression": each} for each in expressions]
    return Conditions({"matchConditions": written}, Environment(variables=()), {}, strict=strict)


def test_every_request_matches_if_there_are_no_conditions() -> None:
    assert conditions().hold(NAMES)
    assert conditions("object.a == 1", "true").hold(NAMES)
    assert not conditions("object.a == 1", "object.a == 2").hold(NAMES)


def test_a_false_condition_takes_precedence_over_an_error() -> None:
    assert not conditions("object.b == 1", "false").hold(NAMES)
    with pytest.raises(ConditionError, match="no such key: b"):
        conditions("object.b == 1").hold(NAMES)
    assert not conditions("object.b == 1", strict=False).hold(NAMES)
