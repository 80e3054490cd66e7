"""Label selectors in the fields of objects."""

import pytest

from wharfinger.control_plane.objects.label_selectors import (
    has_invalid_value,
    is_empty,
    is_readable,
    labels_of,
    selector_errors,
    selects,
    shown_labels,
    shown_selector,
    template_labels,
)
from wharfinger.formats.json.value import JsonObject, JsonValue


def _term(operator: str, *values: str) -> JsonObject:
    return {"matchExpressions": [{"key": "k", "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "labels", "taken"),
    [
        (None, {}, False),
        ({}, {}, True),
        ({"matchLabels": {"a": "b"}}, {"a": "b", "c": "d"}, True),
        ({"matchLabels": {"a": "b"}}, {"a": "c"}, False),
        (_term("In", "x"), {"k": "x"}, True),
        (_term("In", "x"), {}, False),
        (_term("NotIn", "x"), {}, True),
        (_term("NotIn", "x"), {"k": "x"}, False),
        (_term("Exists"), {"k": ""}, True),
        (_term("DoesNotExist"), {"k": ""}, False),
    ],
)
def test_invalid_selectors_are_reported(selector: JsonValue, labels: JsonValue, taken: bool) -> None:
    assert selects(selector, labels) is taken


def test_any_value_accepts_invalid_label_values() -> None:
    selector = _term("In", "a b")
    assert has_invalid_value(selector)
    assert not has_invalid_value(None)
    assert len(selector_errors(selector, "s")) == 1
    assert not selector_errors(selector, "s", any_value=True)
    assert not is_readable(selector)


def test_selectors_and_labels_are_printed_as_in_go() -> None:
    selector: JsonObject = {
        "matchExpressions": [{"values": ["v"], "operator": "In", "key": "k"}],
        "matchLabels": {"b": "1", "a": "2"},
    }
    assert str(shown_selector(selector)) == (
        "{'matchLabels': {'a': '2', 'b': '1'}, 'matchExpressions': [{'key': 'k', 'operator': 'In', 'values': ['v']}]}"
    )
    assert shown_selector(None) is None
    assert shown_labels({}) == {}
    assert shown_labels(None) is None
    absent: JsonObject = {"a": None}
    assert labels_of(absent) == {"a": ""}
    assert template_labels({"template": 1}) == {}
    assert is_empty({})
    assert not is_empty(None)


WEB: JsonObject = {"app": "web", "tier": "front"}


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "db"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "gone", "operator": "NotIn", "values": ["web"]}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "Wrong"}]}, False),
    ],
)
def test_selectors_match_labels(selector: JsonValue, found: bool) -> None:
    assert selects(selector, WEB) is found
