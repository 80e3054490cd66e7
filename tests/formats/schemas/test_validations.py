"""The rules in schemas: how they are read, which of them are refused, and the types that rule workers get."""

import pytest
from hypothesis import given

from tests.formats.support.values import json_values
from wharfinger.formats.json.value import JsonObject, JsonValue, decode_json
from wharfinger.formats.schemas.document import SchemaError, expanded
from wharfinger.formats.schemas.openapi_schema import compile_schema
from wharfinger.formats.schemas.validations import (
    DECKHOUSE,
    KUBERNETES,
    MAX_EXPRESSION,
    MAX_MESSAGE,
    MAX_RULES,
    escaped,
    rules_of,
)

RULE: JsonObject = {"rule": "self > 1", "message": "too small"}
OTHER: JsonObject = {"expression": "self > 2", "message": "still too small"}


def passed_on(schema: JsonObject) -> JsonValue:
    rules = rules_of(expanded(schema, what="s"), what="s")
    return None if rules is None else decode_json(rules.text, max_bytes=10**6, what="rules")


def kubernetes_rule(place: str, **more: JsonValue) -> JsonObject:
    return {"at": place, "rule": "self > 1", "message": "too small", "kubernetes": True, **more}


def deckhouse_rule(place: str) -> JsonObject:
    return {"at": place, "rule": "self > 2", "message": "still too small"}


def test_a_schema_may_have_rules_of_both_kinds() -> None:
    schema: JsonObject = {"type": "integer", KUBERNETES: [RULE], DECKHOUSE: [OTHER]}
    assert passed_on(schema) == {
        "type": "integer",
        "rules": [kubernetes_rule(f"{KUBERNETES}[0]"), deckhouse_rule(f"{DECKHOUSE}[0]")],
    }
    rules = compile_schema(schema, what="s").rules
    assert rules is not None
    assert rules.count == 2


def test_rules_are_collected_at_every_level() -> None:
    inner: JsonObject = {DECKHOUSE: [OTHER]}
    schema: JsonObject = {
        "properties": {"a": inner, "b": {"type": "string"}},
        "additionalProperties": inner,
        "items": inner,
        "allOf": [{"description": "nothing"}, {"properties": {"c": inner}}],
    }
    assert passed_on(schema) == {
        "properties": {"a": {"type": "", "rules": [deckhouse_rule(f"properties.a.{DECKHOUSE}[0]")]}, "b": {}},
        "additionalProperties": {"type": "", "rules": [deckhouse_rule(f"additionalProperties.{DECKHOUSE}[0]")]},
        "items": {"type": "", "rules": [deckhouse_rule(f"items.{DECKHOUSE}[0]")]},
        "allOf": [
            {"properties": {"c": {"type": "", "rules": [deckhouse_rule(f"allOf[1].properties.c.{DECKHOUSE}[0]")]}}}
        ],
    }


def test_rules_of_single_items_are_collected() -> None:
    schema: JsonObject = {"items": [{}, {KUBERNETES: [RULE]}]}
    assert passed_on(schema) == {
        "items": [
            None,
            {"type": "", "rules": [kubernetes_rule(f"items[1].{KUBERNETES}[0]", uncorrelated=True)]},
        ]
    }


@pytest.mark.parametrize(
    ("extra", "correlated"),
    [
        ({}, False),
        ({"x-kubernetes-list-type": "atomic"}, False),
        ({"x-kubernetes-list-type": "set"}, False),
        ({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}, True),
    ],
)
def test_only_items_of_map_lists_are_correlated_by_key(extra: JsonObject, correlated: bool) -> None:
    items: JsonObject = {"properties": {"a": {KUBERNETES: [RULE]}}}
    place = f"items.properties.a.{KUBERNETES}[0]"
    rule = kubernetes_rule(place) if correlated else kubernetes_rule(place, uncorrelated=True)
    inner: JsonObject = {"type": "", "rules": [rule]}
    keys: JsonObject = {"keys": ["name"]} if correlated else {}
    assert passed_on({"items": items, **extra}) == {"items": {"properties": {"a": inner}}, **keys}


def test_types_below_a_kubernetes_rule_are_passed_on() -> None:
    properties: JsonObject = {
        "n": {"type": "number"},
        "i": {"type": "integer"},
        "s": {"type": "string"},
        "a-b": {"type": "string"},
        "namespace": {"type": "string"},
        "sub": {"properties": {"x.y": {"type": "number"}}},
        "0": {"type": "string"},
    }
    typed = {
        "n": {"type": "number"},
        "i": {"type": "integer"},
        "sub": {"properties": {"x.y": {"type": "number"}}, "names": {"x.y": "x__dot__y"}},
    }
    assert passed_on({"properties": properties, KUBERNETES: [RULE]}) == {
        "type": "",
        "rules": [kubernetes_rule(f"{KUBERNETES}[0]")],
        "properties": typed,
        "names": {"a-b": "a__dash__b", "namespace": "__namespace__"},
    }
    assert passed_on({"properties": properties, DECKHOUSE: [OTHER]}) == {
        "type": "",
        "rules": [deckhouse_rule(f"{DECKHOUSE}[0]")],
    }
    assert passed_on({"properties": properties}) is None


def test_a_nullable_value_has_no_single_type() -> None:
    schemas: list[JsonObject] = [
        {"type": "string", "nullable": True},
        {"type": ["string", "null"]},
        {"x-kubernetes-int-or-string": True},
    ]
    for schema in schemas:
        found = passed_on({**schema, DECKHOUSE: [OTHER]})
        assert isinstance(found, dict)
        assert found["type"] == ""


def test_every_field_of_a_kubernetes_rule_is_read() -> None:
    schema: JsonObject = {
        "properties": {
            "a": {"properties": {"b.c": {"type": "string"}}},
            "m": {"additionalProperties": {"properties": {}}},
        },
        KUBERNETES: [
            {
                "rule": "self.a ==\n self.m",
                "messageExpression": "'no'",
                "reason": "FieldValueForbidden",
                "fieldPath": ".a['b.c']",
                "optionalOldSelf": True,
            },
            {"rule": " self.a  == self.m ", "fieldPath": ".m.any", "optionalOldSelf": False},
        ],
    }
    found = passed_on(schema)
    assert isinstance(found, dict)
    assert found["rules"] == [
        {
            "at": f"{KUBERNETES}[0]",
            "rule": "self.a ==\n self.m",
            "message": "failed rule: self.a == self.m",
            "kubernetes": True,
            "messageExpression": "'no'",
            "field": ["a", "b.c"],
            "optional": True,
        },
        {
            "at": f"{KUBERNETES}[1]",
            "rule": " self.a  == self.m ",
            "message": "failed rule: self.a == self.m",
            "kubernetes": True,
            "field": ["m", "any"],
        },
    ]


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({KUBERNETES: {}}, r"s: x-kubernetes-validations: expected a list of rules, found an object"),
        ({KUBERNETES: ["self"]}, r"x-kubernetes-validations\[0\]: a rule is an object, found a string"),
        ({KUBERNETES: [{}]}, r"x-kubernetes-validations\[0\].rule: is required"),
        ({KUBERNETES: [{"rule": " \n"}]}, "rule: is empty"),
        ({KUBERNETES: [{"rule": 1}]}, "rule: expected text, found an integer"),
        ({KUBERNETES: [{"rule": "x" * (MAX_EXPRESSION + 1)}]}, f"has {MAX_EXPRESSION + 1} characters"),
        ({KUBERNETES: [{"rule": "x", "message": "x" * (MAX_MESSAGE + 1)}]}, f"at most {MAX_MESSAGE}"),
        ({KUBERNETES: [{"rule": "x", "message": ""}]}, "message: is empty"),
        ({KUBERNETES: [{"rule": "x", "message": "a\nb"}]}, "message: has a line break"),
        ({KUBERNETES: [{"rule": "x ||\ny"}]}, "message: is required, since the rule has a line break"),
        ({KUBERNETES: [{"rule": "x", "messageExpression": ""}]}, "messageExpression: is empty"),
        ({KUBERNETES: [{"rule": "x", "reason": "Because"}]}, "reason: is not one of FieldValueInvalid"),
        ({KUBERNETES: [{"rule": "x", "optionalOldSelf": 1}]}, "optionalOldSelf: expected true or false"),
        ({KUBERNETES: [{"rule": "x", "fieldPath": "a"}]}, "fieldPath: expected a path of fields"),
        ({KUBERNETES: [{"rule": "x", "fieldPath": ".a[0]"}], "properties": {"a": {}}}, "fieldPath: expected a path"),
        ({KUBERNETES: [{"rule": "x", "fieldPath": ".a.b"}], "properties": {"a": {}}}, "there is no 'b'"),
        ({DECKHOUSE: [{"expression": "x"}]}, r"x-deckhouse-validations\[0\].message: is required"),
        ({DECKHOUSE: [{"message": "x"}]}, "expression: is required"),
        ({DECKHOUSE: [{"expression": "x", "message": ""}]}, "message: is empty"),
        ({DECKHOUSE: [OTHER] * (MAX_RULES + 1)}, f"more than {MAX_RULES} rules"),
        ({"properties": {"a": {"anyOf": [{DECKHOUSE: [OTHER]}]}}}, "properties.a.anyOf: has .* move them out of anyOf"),
        ({"not": {"properties": {"a": {KUBERNETES: [RULE]}}}}, "move them out of not"),
        ({"oneOf": [{}, {KUBERNETES: [RULE]}]}, "move them out of oneOf"),
        ({"patternProperties": {"^a": {KUBERNETES: [RULE]}}}, "move them out of patternProperties"),
        ({"items": [{}], "additionalItems": {KUBERNETES: [RULE]}}, "move them out of additionalItems"),
    ],
)
def test_invalid_rules_are_refused(schema: JsonObject, why: str) -> None:
    with pytest.raises(SchemaError, match=why):
        compile_schema(schema, what="s")


def test_rules_are_counted_over_the_whole_schema() -> None:
    inner: JsonObject = {DECKHOUSE: [OTHER] * (MAX_RULES // 2)}
    assert passed_on({"properties": {"a": inner, "b": inner}}) is not None
    with pytest.raises(SchemaError, match=rf"properties\.c\.{DECKHOUSE}: the schema has more than {MAX_RULES} rules"):
        passed_on({"properties": {"a": inner, "b": inner, "c": inner}})


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("plain", "plain"),
        ("under_score", "under_score"),
        ("two__scores", "two__underscores__scores"),
        ("a.b-c/d", "a__dot__b__dash__c__slash__d"),
        ("namespace", "__namespace__"),
        ("in", "__in__"),
        ("_a", "_a"),
        ("0a", ""),
        ("a b", ""),
        ("", ""),
        ("é", ""),
    ],
)
def test_property_names_are_escaped_as_identifiers(name: str, spelled: str) -> None:
    assert escaped(name) == spelled


@given(json_values(), json_values())
def test_only_schema_errors_are_raised(rule: JsonValue, other: JsonValue) -> None:
    made: JsonObject = {"rule": rule, "message": other, "fieldPath": other, "expression": rule}
    ways: list[JsonValue] = [rule, [rule], [made]]
    for listed in ways:
        for keyword in (KUBERNETES, DECKHOUSE):
            try:
                passed_on({"properties": {"a": {keyword: listed}}})
            except SchemaError as error:
                assert str(error).startswith(f"s: properties.a.{keyword}")


@pytest.mark.parametrize(
    ("schema", "compares"),
    [
        ({}, False),
        ({KUBERNETES: [RULE]}, False),
        ({KUBERNETES: [{**RULE, "optionalOldSelf": True}]}, False),
        ({DECKHOUSE: [{"expression": "self > oldSelf", "message": "m"}]}, True),
        ({"items": {KUBERNETES: [{"rule": "oldSelf.hasValue()", "optionalOldSelf": True}]}}, True),
        ({"properties": {"a": {"x-deckhouse-immutable": True}}, KUBERNETES: [RULE]}, True),
    ],
)
def test_schemas_with_old_self_or_immutable_marks_compare_old_values(schema: JsonObject, compares: bool) -> None:
    assert compile_schema(schema, what="s").compares is compares
