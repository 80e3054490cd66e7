"""Conversion of selectors to their API form, and refusals of selectors that an API server would refuse."""

import pytest

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.hooks.config.selectors import SelectorError, field_selector, label_selector


def term(key: str, operator: str, *values: str) -> JsonObject:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        ({}, ""),
        ({"matchLabels": {}}, ""),
        ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
        ({"matchLabels": {"a": ""}}, "a="),
        ({"matchLabels": {"app.kubernetes.io/name": "X_1.y-z"}}, "app.kubernetes.io/name=X_1.y-z"),
        ({"matchExpressions": [term("a", "In", "x", "", "y")]}, "a in (x,,y)"),
        ({"matchExpressions": [term("a", "NotIn", "x")]}, "a notin (x)"),
        ({"matchExpressions": [term("a", "Exists"), {"key": "b", "operator": "DoesNotExist"}]}, "a,!b"),
        ({"matchLabels": {"z": "1"}, "matchExpressions": [term("a", "Exists")]}, "z=1,a"),
        ({"matchLabels": {"a" * 63: "b" * 63}}, "a" * 63 + "=" + "b" * 63),
    ],
)
def test_label_selectors_are_converted_to_text(selector: JsonObject, text: str) -> None:
    assert label_selector(selector) == text


@pytest.mark.parametrize(
    ("selector", "problem"),
    [
        ({"matchLabels": {"": "x"}}, "'' is not a label key"),
        ({"matchLabels": {"-a": "x"}}, "'-a' is not a label key"),
        ({"matchLabels": {"a,b": "x"}}, "'a,b' is not a label key"),
        ({"matchLabels": {"a" * 64: "x"}}, "is not a label key"),
        ({"matchLabels": {"/a": "x"}}, "'/a' is not a label key: the part before the / must be a DNS name"),
        ({"matchLabels": {"Foo/a": "x"}}, "the part before the /"),
        ({"matchLabels": {"a" * 254 + "/a": "x"}}, "the part before the /"),
        ({"matchLabels": {"a/b/c": "x"}}, "the part before the /"),
        ({"matchLabels": {"a": "x y"}}, "'x y' is not a label value"),
        ({"matchLabels": {"a": "x\n"}}, "is not a label value"),
        ({"matchLabels": {"a": "b" * 64}}, "is not a label value"),
        ({"matchExpressions": [term("a", "In")]}, "key 'a': operator In needs values"),
        ({"matchExpressions": [term("a", "Exists", "x")]}, "key 'a': operator Exists takes no values"),
        ({"matchExpressions": [term("a", "In", "(x)")]}, r"'\(x\)' is not a label value"),
    ],
)
def test_invalid_label_selectors_are_refused(selector: JsonObject, problem: str) -> None:
    with pytest.raises(SelectorError, match=problem):
        label_selector(selector)


@pytest.mark.parametrize(
    ("operator", "text"), [("=", "="), ("==", "="), ("Equals", "="), ("!=", "!="), ("NotEquals", "!=")]
)
def test_field_selectors_are_converted_to_text(operator: str, text: str) -> None:
    terms: list[JsonValue] = [
        {"field": "metadata.name", "operator": operator, "value": "a"},
        {"field": "status.podIP", "operator": "=", "value": ""},
    ]
    assert field_selector({"matchExpressions": terms}) == f"metadata.name{text}a,status.podIP="
    assert field_selector({"matchExpressions": []}) == field_selector({}) == ""


def test_special_characters_in_field_values_are_escaped() -> None:
    terms: list[JsonValue] = [{"field": "spec.x", "operator": "=", "value": r"a,b=c\d"}]
    assert field_selector({"matchExpressions": terms}) == r"spec.x=a\,b\=c\\d"


@pytest.mark.parametrize("field", ["", "a b", "a=b", "a,b", ".a", "a\n"])
def test_invalid_field_paths_are_refused(field: str) -> None:
    with pytest.raises(SelectorError, match="is not a path of a field"):
        field_selector({"matchExpressions": [{"field": field, "operator": "=", "value": "x"}]})
