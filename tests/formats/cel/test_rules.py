"""The evaluation of a schema's rules on values: where rules apply, which values they see, and what they find."""

from typing import Final

import pytest

from wharfinger.formats.cel.protocol import MAX_FINDINGS, CelRequest, Finding, FindingKind
from wharfinger.formats.cel.rules import CompiledRules, Outcome, compile_rules
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, as_object, decode_json
from wharfinger.formats.schemas.document import path_text
from wharfinger.formats.schemas.openapi_schema import compile_schema
from wharfinger.formats.schemas.validations import DECKHOUSE, KUBERNETES, MAX_MESSAGE

K: Final = KUBERNETES


def compiled(schema: JsonObject) -> CompiledRules:
    rules = compile_schema(schema, what="s").rules
    assert rules is not None
    return compile_rules(as_object(decode_json(rules.text, max_bytes=10**6, what="rules"), "rules"))


def outcome(schema: JsonObject, value: JsonValue, *old: JsonValue) -> Outcome:
    places: list[str] = []
    request = CelRequest(b"", True, value, old[0] if old else None)
    return compiled(schema).evaluated(request, places.append)


def findings(schema: JsonObject, value: JsonValue, *old: JsonValue) -> list[str]:
    return [f"{path_text(each.path)}: {each.message}" for each in outcome(schema, value, *old).findings]


def rule(text: str, message: str = "no", **more: JsonValue) -> JsonObject:
    return {"rule": text, "message": message, **more}


def ours(text: str, message: str = "no") -> JsonObject:
    return {"expression": text, "message": message}


IS_SMALL: JsonObject = {DECKHOUSE: [ours("self < 5", "too large")], K: [rule("self < 7", "much too large")]}


@pytest.mark.parametrize(
    ("schema", "value", "found"),
    [
        (IS_SMALL, 1, []),
        (IS_SMALL, 6, [": too large"]),
        (IS_SMALL, 8, [": much too large", ": too large"]),
        ({"properties": {"a": IS_SMALL}}, {"a": 6, "b": 9}, ["a: too large"]),
        ({"properties": {"a": IS_SMALL}}, {}, []),
        ({"properties": {"a": IS_SMALL}}, [6], []),
        (
            {"additionalProperties": IS_SMALL, "properties": {"x": {"type": "integer"}}},
            {"k.l": 6, "j": 1},
            ['["k.l"]: too large'],
        ),
        ({"items": IS_SMALL}, [1, 6, 2, 6], ["[1]: too large", "[3]: too large"]),
        ({"items": {"items": {"properties": {"a": IS_SMALL}}}}, [[], [{}, {"a": 6}]], ["[1][1].a: too large"]),
        ({"items": [{}, IS_SMALL]}, [6, 6, 6], ["[1]: too large"]),
        ({"allOf": [IS_SMALL, {"properties": {"a": IS_SMALL}}]}, 6, [": too large"]),
        ({"allOf": [{"properties": {"a": IS_SMALL}}]}, {"a": 6}, ["a: too large"]),
    ],
)
def test_rules_are_evaluated_at_every_level(schema: JsonObject, value: JsonValue, found: list[str]) -> None:
    assert findings(schema, value) == found


def test_a_declared_property_without_keywords_is_not_additional() -> None:
    """A property with an empty schema is declared, as in Kubernetes: rules about additional properties do not apply to it."""
    schema: JsonObject = {"properties": {"x": {}}, "additionalProperties": {DECKHOUSE: [ours("false")]}}
    assert findings(schema, {"x": 1, "y": 1}) == ["y: no"]


@pytest.mark.parametrize("text", ["self.nope > 1", "self.deep.nope == 1"])
def test_a_missing_key_never_satisfies_a_rule(text: str) -> None:
    """A rule about a missing key is an error. If it were skipped, a misspelt key would disable the check."""
    (finding,) = outcome({"properties": {"a": {DECKHOUSE: [ours(text)]}}}, {"a": {"deep": {}}}).findings
    assert finding.kind is FindingKind.ERROR
    assert finding.path == ("a",)
    assert finding.at == f"properties.a.{DECKHOUSE}[0]"
    assert finding.message == "could not be evaluated: no such key: nope"


def test_a_failed_rule_does_not_hide_other_findings() -> None:
    schema: JsonObject = {
        K: [rule("self.nope"), rule("false", "first"), rule("1 / (self.a - 1) == 1"), rule("false", "last")]
    }
    assert findings(schema, {"a": 1}) == [
        ": could not be evaluated: no such key: nope",
        ": first",
        ": could not be evaluated: divide by zero",
        ": last",
    ]


def test_a_rule_without_a_boolean_result_is_reported() -> None:
    assert findings({K: [rule("self.a")]}, {"a": "x"}) == [": could not be evaluated: its result is not a bool"]


ONLY_UP: JsonObject = {K: [rule("self >= oldSelf", "only up")]}
BY_NAME: JsonObject = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}


@pytest.mark.parametrize(
    ("schema", "value", "old", "found"),
    [
        (ONLY_UP, 1, 2, [": only up"]),
        (ONLY_UP, 2, 2, []),
        ({"properties": {"a": ONLY_UP}}, {"a": 1}, {"a": 2}, ["a: only up"]),
        ({"properties": {"a": ONLY_UP}}, {"a": 1}, {}, []),
        ({"properties": {"a": ONLY_UP}}, {"a": 1}, "other", []),
        ({"properties": {"a": ONLY_UP}}, {}, {"a": 2}, []),
        ({"additionalProperties": ONLY_UP}, {"a": 1, "b": 1}, {"a": 2}, ["a: only up"]),
        (
            {**BY_NAME, "items": {"properties": {"v": ONLY_UP}}},
            [{"name": "b", "v": 1}, {"name": "new", "v": 0}, {"name": "a", "v": 1}, "odd", {"v": 0}],
            [{"name": "a", "v": 1}, {"name": "b", "v": 2}, {"v": 1}, None],
            ["[0].v: only up", "[4].v: only up"],
        ),
        ({"items": {DECKHOUSE: [ours("self >= oldSelf")]}}, [1], [2], []),
        ({"allOf": [ONLY_UP]}, 1, 2, [": only up"]),
    ],
)
def test_rules_with_old_self_compare_changes(
    schema: JsonObject, value: JsonValue, old: JsonValue, found: list[str]
) -> None:
    assert findings(schema, value, old) == found
    assert findings(schema, value) == []


def test_nulls_are_skipped_and_count_as_no_old_value() -> None:
    """No rule applies to a null, and an old null counts as no old value, as in Kubernetes."""
    schema: JsonObject = {"properties": {"a": {K: [rule("self == oldSelf", "changed"), rule("self > 5", "small")]}}}
    assert findings(schema, {"a": None}, {"a": 1}) == []
    assert findings(schema, {"a": 1}, {"a": None}) == ["a: small"]
    assert findings({K: [rule("self.a != null", "is null")], **schema}, {"a": None}) == [": is null"]
    optional: JsonObject = {"properties": {"a": {K: [rule("oldSelf.hasValue()", "new", optionalOldSelf=True)]}}}
    assert findings(optional, {"a": 1}, {"a": None}) == ["a: new"]


@pytest.mark.parametrize("old", [0, 0.0, False, "", [], {}])
def test_falsy_old_values_count_as_old_values(old: JsonValue) -> None:
    """Old values such as 0, false and empty ones count as old values. Only null does not."""
    schema: JsonObject = {"properties": {"a": {K: [rule("self == oldSelf", "changed")]}}}
    assert findings(schema, {"a": "other"}, {"a": old}) == ["a: changed"]
    told = rule("false", "static", messageExpression="oldSelf == 1 ? 'x' : 'there was one'")
    assert findings({K: [told]}, 1, old) == [": there was one"]
    optional = rule("!oldSelf.hasValue()", "there was one", optionalOldSelf=True)
    assert findings({K: [optional]}, 1, old) == [": there was one"]


def test_the_first_old_item_of_a_repeated_key_counts() -> None:
    schema: JsonObject = {**BY_NAME, "items": {"properties": {"v": {K: [rule("self == oldSelf", "changed")]}}}}
    twice: JsonValue = [{"name": "a", "v": 1}, {"name": "a", "v": 2}]
    assert findings(schema, [{"name": "a", "v": 1}], twice) == []
    assert findings(schema, [{"name": "a", "v": 2}], twice) == ["[0].v: changed"]


def test_rules_with_an_optional_old_value_apply_to_new_items() -> None:
    schema: JsonObject = {
        "items": {K: [rule("oldSelf.hasValue() || self < 5", "new ones are small", optionalOldSelf=True)]},
        "properties": {"a": {K: [rule("self >= oldSelf.orValue(3)", "up", optionalOldSelf=True)]}},
    }
    assert compiled(schema).checked().findings == ()
    assert findings(schema, [1, 6], [6, 6]) == ["[1]: new ones are small"]
    assert findings(schema, {"a": 2}) == ["a: up"]
    assert findings(schema, {"a": 2}, {"a": 1}) == []


def test_rules_that_do_not_compile_are_reported() -> None:
    schema: JsonObject = {
        "properties": {
            "a": {
                "type": "string",
                K: [rule("self > 1"), rule("self == 'x'"), rule("self.size() > 0", messageExpression="1")],
            },
            "b": {"items": ONLY_UP},
        },
        "additionalProperties": {DECKHOUSE: [ours("self.")]},
        "items": [{}, {DECKHOUSE: [ours("nope")]}],
        "allOf": [{K: [rule("self.x == nope")]}],
    }
    checked = compiled(schema).checked()
    assert [(finding.at, finding.message.partition("; ")[0][:72]) for finding in checked.findings] == [
        (f"properties.a.{K}[0]", "does not compile: 1:6: found no matching overload for '_>_' applied to '"),
        (f"properties.a.{K}[2]", "its messageExpression does not compile: returns int, not string"),
        (f"properties.b.items.{K}[0]", "uses oldSelf inside a list that is not a map (x-kubernetes-list-type), s"),
        (f"allOf[0].{K}[0]", "does not compile: 1:11: undeclared reference to 'nope'"),
        (f"additionalProperties.{DECKHOUSE}[0]", checked.findings[4].message.partition("; ")[0][:72]),
        (f"items[1].{DECKHOUSE}[0]", "does not compile: 1:1: undeclared reference to 'nope'"),
    ]
    assert "Syntax error" in checked.findings[4].message
    # An evaluation of such rules returns an error, never success.
    assert findings(schema, {"a": "x"})[0].startswith("a: does not compile")


def test_a_failed_message_expression_gives_the_static_message() -> None:
    def say(told: str, value: JsonValue = 7, *old: JsonValue) -> Finding:
        (finding,) = outcome(
            {K: [rule("self == 1", "static", messageExpression=told, reason="FieldValueRequired")]}, value, *old
        ).findings
        return finding

    told = say("'is ' + string(self)")
    assert (told.kind, told.message, told.static) == (FindingKind.FAILED, "is 7", "static")
    assert len(say("'x'.replace('x', self)", "y" * 3000).message) == MAX_MESSAGE
    for nothing in ("''", "'a\\nb'", "self.nope", "string(self / 0)", "'was ' + string(oldSelf)"):
        silent = say(nothing)
        assert (silent.kind, silent.message, silent.static) == (FindingKind.WARNING, "static", "")
    assert say("'was ' + string(oldSelf)", 7, 6).message == "was 6"


def test_a_rule_may_have_a_field_path() -> None:
    schema: JsonObject = {"properties": {"a": {"properties": {"b": {}}}}, K: [rule("false", fieldPath=".a.b")]}
    assert findings(schema, {}) == ["a.b: no"]
    schema = {"properties": {"x": {**schema, K: [rule("false", fieldPath=".a.b", messageExpression="'made'")]}}}
    (finding,) = outcome(schema, {"x": {}}).findings
    assert (finding.path, finding.below, finding.made_of) == (("x", "a", "b"), 2, ("x",))


def test_kubernetes_rules_read_typed_values() -> None:
    typed: JsonObject = {
        "properties": {
            "n": {"type": "number"},
            "i": {"type": "integer"},
            "x-y": {"type": "integer"},
            "in": {"type": "integer"},
            "l": {"items": {"type": "number"}},
            "m": {"additionalProperties": {"properties": {"a.b": {"type": "number"}}}},
        }
    }
    value: JsonObject = {"n": 1, "i": 2.0, "x-y": 3, "in": 4, "l": [1, None], "m": {"k": {"a.b": 5}, "s": "x"}, "u": 1}
    text = (
        "self.n + 0.5 == 1.5 && self.i + 1 == 3 && self.x__dash__y == 3 && self.__in__ == 4 && self.l[0] + 0.5 == 1.5 && "
        "self.m['k'].a__dot__b + 0.5 == 5.5 && self.u + 1 == 2 && self['x-y'] == 3"
    )
    assert findings({**typed, K: [rule(text)]}, value) == []
    assert (
        findings({**typed, DECKHOUSE: [ours("self.n + 1 == 2 && self.size() == 7 && self['x-y'] == 3")]}, value) == []
    )
    assert findings({**typed, K: [rule("self.n == oldSelf.n && self.n + oldSelf.n == 2.0")]}, value, value) == []
    assert findings({"type": "number", K: [rule("self > 1")]}, 2**2000) == [
        ": could not be evaluated: the value does not have the type that the schema declares, or is too large a number"
    ]


def test_each_rule_is_announced_before_its_evaluation() -> None:
    places: list[str] = []
    schema: JsonObject = {
        "items": {K: [rule("true")]},
        "additionalProperties": {DECKHOUSE: [ours("true"), ours("true")]},
    }
    rules = compiled(schema)
    rules.evaluated(CelRequest(b"", True, [1, 2, 3]), places.append)
    assert places == [f"items.{K}[0]"]
    rules.evaluated(CelRequest(b"", True, {"a": 1}), places.append)
    assert places[1:] == [f"additionalProperties.{DECKHOUSE}[0]", f"additionalProperties.{DECKHOUSE}[1]"]


def test_the_number_of_findings_is_limited() -> None:
    found = outcome({"items": {K: [rule("false"), rule("false")]}}, [1] * 100)
    assert len(found.findings) == MAX_FINDINGS
    assert not found.out_of_memory


@pytest.mark.parametrize(
    ("node", "why"),
    [
        ({"rules": 1}, "list"),
        ({"rules": [{}]}, "rule: required"),
        ({"properties": []}, "object"),
        ({"keys": {}}, "list"),
    ],
)
def test_invalid_rule_documents_are_refused(node: JsonObject, why: str) -> None:
    with pytest.raises(ShapeError, match=why):
        compile_rules(node)
