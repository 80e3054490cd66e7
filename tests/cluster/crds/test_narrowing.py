"""Changes that narrow the schema of a CRD: tables of cases, random schemas, and values that a new schema refuses."""

from copy import deepcopy

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.scale import scaled
from wharfinger.cluster.crds.narrowing import CrdRule, Narrowing, narrowings
from wharfinger.control_plane.custom.schema import CustomSchema
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find, find_list, find_object
from wharfinger.formats.yaml.reader import read_yaml

PRESERVE = "x-kubernetes-preserve-unknown-fields"


def schema(text: str) -> JsonObject:
    return as_object(read_yaml(text, what="test"), "test")


def found(old: str, new: str) -> list[tuple[str, str]]:
    """Return the rule and the path of each narrowing. ``old`` and ``new`` are schemas of the property ``x`` of an object."""
    return [(one.rule.name, one.path) for one in narrowings(only_x(schema(old)), only_x(schema(new)))]


def only_x(made: JsonObject) -> JsonObject:
    """Return the schema of an object whose only property ``x`` has the given schema."""
    return {"type": "object", "properties": {"x": made}}


NARROWED = [
    ("{type: string}", "{type: integer}", "TYPE"),
    ("{type: number}", "{type: integer}", "TYPE"),
    ("{x-kubernetes-int-or-string: true}", "{type: string}", "TYPE"),
    (f"{{{PRESERVE}: true}}", "{type: string}", "TYPE"),
    ("{type: string, nullable: true}", "{type: string}", "NULLABLE"),
    ("{type: string}", "{type: string, enum: [a]}", "ENUM"),
    ("{type: string, enum: [a, b]}", "{type: string, enum: [b, c]}", "ENUM"),
    ("{type: integer}", "{type: integer, minimum: 1}", "MINIMUM"),
    ("{type: integer, minimum: 1}", "{type: integer, minimum: 2}", "MINIMUM"),
    ("{type: number, minimum: 1}", "{type: number, minimum: 1, exclusiveMinimum: true}", "MINIMUM"),
    ("{type: integer, maximum: 9}", "{type: integer, maximum: 8}", "MAXIMUM"),
    ("{type: integer}", "{type: integer, maximum: 8}", "MAXIMUM"),
    ("{type: string}", "{type: string, minLength: 1}", "MINIMUM"),
    ("{type: string, maxLength: 9}", "{type: string, maxLength: 8}", "MAXIMUM"),
    ("{type: array, items: {type: string}}", "{type: array, items: {type: string}, maxItems: 3}", "MAXIMUM"),
    ("{type: array, items: {type: string}}", "{type: array, items: {type: string}, minItems: 1}", "MINIMUM"),
    ("{type: object, minProperties: 1}", "{type: object, minProperties: 2}", "MINIMUM"),
    ("{type: object}", "{type: object, maxProperties: 2}", "MAXIMUM"),
    ("{type: integer}", "{type: integer, multipleOf: 2}", "MULTIPLE"),
    ("{type: integer, multipleOf: 2}", "{type: integer, multipleOf: 3}", "MULTIPLE"),
    ("{type: string}", "{type: string, pattern: a}", "PATTERN"),
    ("{type: string, pattern: a}", "{type: string, pattern: b}", "PATTERN"),
    ("{type: string}", "{type: string, format: date-time}", "FORMAT"),
    ("{type: integer, format: int64}", "{type: integer, format: int32}", "FORMAT"),
    ("{type: string}", "{type: string, default: a}", "DEFAULT"),
    ("{type: string, default: a}", "{type: string, default: b}", "DEFAULT"),
    ("{type: string, default: a}", "{type: string}", "DEFAULT"),
    ("{type: string}", "{type: string, x-kubernetes-validations: [{rule: self != ''}]}", "VALIDATION"),
    ("{type: string}", "{type: string, allOf: [{minLength: 2}]}", "VALIDATION"),
    ("{type: string}", "{type: string, anyOf: [{minLength: 2}, {maxLength: 1}]}", "VALIDATION"),
    ("{type: string, anyOf: [{enum: [a]}, {enum: [b]}]}", "{type: string, anyOf: [{enum: [a]}]}", "VALIDATION"),
    ("{type: string}", "{type: string, not: {enum: [a]}}", "VALIDATION"),
    ("{type: string, oneOf: [{enum: [a]}]}", "{type: string, oneOf: [{enum: [a]}, {enum: [b]}]}", "VALIDATION"),
    (
        "{type: array, items: {type: string}}",
        "{type: array, items: {type: string}, x-kubernetes-list-type: set}",
        "LIST_TYPE",
    ),
    ("{type: object, properties: {a: {type: string}}}", "{type: object}", "PROPERTY"),
    ("{type: object, additionalProperties: {type: string}}", "{type: object}", "CLOSED"),
    (f"{{type: object, {PRESERVE}: true}}", "{type: object}", "CLOSED"),
    ("{type: object}", "{type: object, required: [a]}", "REQUIRED"),
    (
        "{type: object, additionalProperties: {type: string}}",
        "{type: object, additionalProperties: {type: string, maxLength: 3}}",
        "MAXIMUM",
    ),
    (
        f"{{type: object, {PRESERVE}: true}}",
        f"{{type: object, {PRESERVE}: true, properties: {{a: {{type: string}}}}}}",
        "TYPE",
    ),
    (
        f"{{type: object, {PRESERVE}: true}}",
        f"{{type: object, {PRESERVE}: true, x-kubernetes-embedded-resource: true}}",
        "TYPE",
    ),
    (
        "{type: object, properties: {a: {type: string}}}",
        "{type: object, additionalProperties: {type: integer}}",
        "TYPE",
    ),
    (f"{{type: array, items: {{{PRESERVE}: true}}}}", "{type: array, items: {type: string}}", "TYPE"),
]


@pytest.mark.parametrize(("old", "new", "rule"), NARROWED)
def test_each_narrowing_is_found_with_its_path(old: str, new: str, rule: str) -> None:
    assert rule in {name for name, _ in found(old, new)}
    assert {path.partition(".x")[1] for _, path in found(old, new)} == {".x"}


WIDENED = [
    ("{type: integer}", "{type: number}"),
    ("{type: string}", "{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}"),
    ("{type: string, nullable: true}", f"{{{PRESERVE}: true}}"),
    ("{type: string, enum: [a]}", "{type: string, enum: [b, a]}"),
    ("{type: string, enum: [a]}", "{type: string}"),
    ("{type: integer, minimum: 2, maximum: 3}", "{type: integer, minimum: 1, maximum: 4}"),
    ("{type: number, minimum: 1, exclusiveMinimum: true}", "{type: number, minimum: 1}"),
    ("{type: integer, multipleOf: 6}", "{type: integer, multipleOf: 3}"),
    ("{type: integer, format: int32}", "{type: integer, format: int64}"),
    ("{type: string}", "{type: string, format: password, description: a secret}"),
    ("{type: string, pattern: a}", "{type: string}"),
    ("{type: string}", "{type: string, minLength: 0}"),
    ("{type: object, required: [a]}", "{type: object}"),
    ("{type: object}", "{type: object, properties: {a: {type: string}}}"),
    (
        "{type: object, properties: {a: {type: string, default: b}}}",
        "{type: object, properties: {a: {type: string, default: b}}, required: [a]}",
    ),
    ("{type: object, properties: {a: {type: string}}}", f"{{type: object, {PRESERVE}: true}}"),
    ("{type: object, properties: {a: {type: string}}}", "{type: object, additionalProperties: {type: string}}"),
    ("{type: object, additionalProperties: {type: string}}", "{type: object, additionalProperties: true}"),
    ("{type: object, additionalProperties: false}", "{type: object}"),
    ("{type: string, minLength: 3}", "{type: string, minLength: 3, allOf: [{minLength: 2}]}"),
    ("{type: string, allOf: [{minLength: 3}]}", "{type: string, allOf: [{minLength: 2}]}"),
    ("{type: string, maxLength: 1}", "{type: string, anyOf: [{maxLength: 2}, {enum: [abc]}]}"),
    ("{type: string, anyOf: [{enum: [a]}]}", "{type: string, anyOf: [{enum: [a]}, {enum: [b]}]}"),
    ("{type: string, not: {enum: [a]}}", "{type: string}"),
    (
        "{type: array, items: {type: string}, x-kubernetes-list-type: set}",
        "{type: array, items: {type: string}, x-kubernetes-list-type: atomic}",
    ),
    (
        "{type: string, x-kubernetes-validations: [{rule: self != ''}]}",
        "{type: string, x-kubernetes-validations: [{rule: ' self != '''' ', message: say something}]}",
    ),
]


@pytest.mark.parametrize(("old", "new"), WIDENED)
def test_schemas_that_accept_everything_they_accepted_have_no_narrowing(old: str, new: str) -> None:
    assert found(old, new) == []
    assert found(old, old) == []


def test_narrowings_name_their_path() -> None:
    old = (
        "{type: object, properties: {ports: {type: array, items: {type: object, properties: {name: {type: string}}}}}}"
    )
    new = (
        "{type: object, properties: {ports: {type: array, items: {type: object, properties: {name: {type: integer}}}}}}"
    )
    assert found(old, new) == [("TYPE", ".x.ports[].name")]
    assert list(narrowings(schema("{maximum: 3}"), schema("{maximum: 2.5}"))) == [
        Narrowing(CrdRule.MAXIMUM, "", "maximum was 3, and is 2.5")
    ]
    mapped = "{type: object, additionalProperties: {type: KIND}}"
    assert found(mapped.replace("KIND", "string"), mapped.replace("KIND", "integer")) == [("TYPE", ".x.*")]


def test_members_of_every_object_may_be_undeclared_at_the_root() -> None:
    whole = "{apiVersion: {type: string}, kind: {type: string}, metadata: {type: object}, spec: {type: object}}"
    old, new = (
        schema(f"{{type: object, properties: {whole}}}"),
        schema("{type: object, properties: {spec: {type: object}}}"),
    )
    assert list(narrowings(old, new)) == []
    assert [one.path for one in narrowings(only_x(old), only_x(new))] == [
        ".x.apiVersion",
        ".x.kind",
        ".x.metadata",
    ]
    embedded = {**new, "x-kubernetes-embedded-resource": True}
    assert list(narrowings(only_x(embedded), only_x(embedded))) == []
    assert len(list(narrowings(only_x(embedded), only_x(new)))) == 3


def test_properties_below_a_condition_are_compared_as_conditions() -> None:
    old = "{type: object, properties: {a: {type: string}}, allOf: [{properties: {a: {maxLength: 3}}}]}"
    assert found(old, "{type: object, properties: {a: {type: string}}}") == []
    tighter = "{type: object, properties: {a: {type: string}}, allOf: [{properties: {a: {maxLength: 2}}}]}"
    assert found(old, tighter) == [("VALIDATION", ".x")]
    more = "{type: object, properties: {a: {type: string}}, allOf: [{additionalProperties: {maxLength: 3}}]}"
    assert found(old, more) == [("VALIDATION", ".x")]
    nested = "{type: object, properties: {a: {type: string}}, allOf: [{allOf: [{maxProperties: %d}]}]}"
    assert found(nested % 3, nested % 3) == []
    assert found(nested % 3, nested % 4) == [
        ("VALIDATION", ".x")
    ]  # wider, but compared only for equality at this depth


def test_long_enumerations_are_truncated() -> None:
    many: list[JsonValue] = [f"value-{number}-{'x' * 80}" for number in range(20)]
    (one,) = narrowings({"enum": many}, {"enum": ["a"]})
    assert one.what.endswith("and 12 more are not allowed any more")
    assert "…" in one.what


# -- random schemas

NAMES = st.sampled_from(["a", "b", "c"])
TEXTS = st.sampled_from(["", "a", "bb", "ccc"])


def some(needed: JsonObject, **optional: st.SearchStrategy[JsonValue]) -> st.SearchStrategy[JsonObject]:
    """Return a strategy for objects with the required members and any of the optional ones."""
    return st.fixed_dictionaries({}, optional={**optional}).map(lambda drawn: {**needed, **drawn})


def names(strategy: st.SearchStrategy[str]) -> st.SearchStrategy[JsonValue]:
    return st.lists(strategy, min_size=1, unique=True).map(lambda drawn: [*drawn])


def leaf() -> st.SearchStrategy[JsonObject]:
    text = some({"type": "string"}, minLength=st.integers(0, 2), maxLength=st.integers(1, 4), enum=names(TEXTS))
    bounds: dict[str, st.SearchStrategy[JsonValue]] = {"minimum": st.integers(0, 3), "maximum": st.integers(2, 6)}
    number = some({"type": "number"}, **bounds, nullable=st.just(True))
    integer = some({"type": "integer"}, **bounds, nullable=st.just(True))
    others: list[JsonObject] = [{"type": "boolean"}, {"x-kubernetes-int-or-string": True}, {PRESERVE: True}]
    return st.one_of(text, number, integer, st.sampled_from(others))


def branch(inner: st.SearchStrategy[JsonObject]) -> st.SearchStrategy[JsonObject]:
    def with_inner(name: str, one: JsonValue, more: JsonObject) -> JsonObject:
        return {"type": "array" if name == "items" else "object", name: one, **more}

    bounds = some({}, maxItems=st.integers(1, 3), minItems=st.integers(0, 1))
    named = st.dictionaries(NAMES, inner, min_size=1).map(lambda drawn: {**drawn})
    return st.one_of(
        st.builds(with_inner, st.just("items"), inner, bounds),
        st.builds(with_inner, st.just("additionalProperties"), inner, st.just({})),
        st.builds(
            with_inner, st.just("properties"), named, some({}, required=names(NAMES), **{PRESERVE: st.just(True)})
        ),
    )


SCHEMAS: st.SearchStrategy[JsonObject] = st.recursive(leaf(), branch, max_leaves=6)


def values(made: JsonObject) -> st.SearchStrategy[JsonValue]:
    """Return a strategy for values that the schema is likely to accept."""
    anything: st.SearchStrategy[JsonValue] = TEXTS | st.integers(0, 6) | st.booleans() | st.just(None) | st.just({})
    match find(made, "type"):
        case "object":
            inner = {name: values(as_object(one, name)) for name, one in find_object(made, "properties").items()}
            more = find(made, "additionalProperties")
            rest = values(as_object(more, "more")) if isinstance(more, dict) else anything
            return st.fixed_dictionaries({}, optional={**dict.fromkeys("abc", rest), **inner}).map(
                lambda value: {**value}
            )
        case "array":
            return st.lists(values(find_object(made, "items")), max_size=4).map(lambda value: [*value])
        case "string":
            return TEXTS
        case "integer" | "number":
            return st.integers(0, 6)
        case _:
            return anything


def widen(made: JsonObject, data: st.DataObject) -> JsonObject:
    """Return a copy of the schema with at most one condition on values removed or relaxed."""
    result = deepcopy(made)
    spots = list(_spots(result))
    spot = data.draw(st.sampled_from(spots))
    limits = ("minLength", "maxLength", "enum", "minimum", "maximum", "required", "maxItems", "minItems")
    ways: list[str] = [name for name in limits if name in spot]
    if find(spot, "type") == "integer":
        ways.append("number")
    if find(spot, "type") == "object" and "additionalProperties" not in spot:
        ways.append("property")
    way = data.draw(st.sampled_from([*ways, "nullable", "nothing"]))
    match way:
        case "number":
            spot["type"] = "number"
        case "property":
            if PRESERVE not in spot:
                spot["properties"] = {**find_object(spot, "properties"), "new": {"type": "string", "maxLength": 1}}
        case "nullable":
            spot["nullable"] = True
        case "nothing":
            spot["description"] = "more words"
        case name:
            del spot[name]
    return result


NARROWERS: dict[str, tuple[CrdRule, JsonValue]] = {
    "minLength": (CrdRule.MINIMUM, 3),
    "maxLength": (CrdRule.MAXIMUM, 0),
    "minimum": (CrdRule.MINIMUM, 4),
    "maximum": (CrdRule.MAXIMUM, 1),
    "minItems": (CrdRule.MINIMUM, 2),
    "maxItems": (CrdRule.MAXIMUM, 0),
    "pattern": (CrdRule.PATTERN, "^x"),
    "enum": (CrdRule.ENUM, ["zzz"]),
    "type": (CrdRule.TYPE, "boolean"),
    "default": (CrdRule.DEFAULT, "zzz"),
    "x-kubernetes-validations": (CrdRule.VALIDATION, [{"rule": "false"}]),
    "required": (CrdRule.REQUIRED, ["a", "b", "c", "d"]),
}


def narrow(made: JsonObject, data: st.DataObject) -> tuple[JsonObject, CrdRule]:
    """Return a copy of the schema that accepts fewer values in one respect, and the rule that this change breaks."""
    result = deepcopy(made)
    spot = data.draw(st.sampled_from(_spots(result)))
    if find(spot, "properties") and PRESERVE not in spot and data.draw(st.booleans()):
        named = find_object(spot, "properties")
        del named[data.draw(st.sampled_from(sorted(named)))]
        return result, CrdRule.PROPERTY
    name = data.draw(st.sampled_from(sorted(NARROWERS)))
    rule, value = NARROWERS[name]
    assume(name != "type" or find(spot, "type") != "boolean")
    assume(name != "type" or "type" in spot)
    spot[name] = value
    return result, rule


def _spots(made: JsonObject) -> list[JsonObject]:
    below = [*find_object(made, "properties").values(), find(made, "items"), find(made, "additionalProperties")]
    return [made, *(spot for one in below if isinstance(one, dict) for spot in _spots(one))]


@settings(max_examples=scaled(5_000, 150), deadline=None)
@given(SCHEMAS, st.data())
def test_a_widened_schema_is_never_refused(made: JsonObject, data: st.DataObject) -> None:
    wider = made
    for _ in range(data.draw(st.integers(0, 4))):
        wider = widen(wider, data)
    assert list(narrowings(only_x(made), only_x(wider))) == []


@settings(max_examples=scaled(5_000, 150), deadline=None)
@given(SCHEMAS, st.data())
def test_a_narrowed_schema_is_always_refused(made: JsonObject, data: st.DataObject) -> None:
    narrower, rule = narrow(made, data)
    assert rule in {one.rule for one in narrowings(only_x(made), only_x(narrower))}


def pruned(made: JsonObject, value: JsonValue) -> JsonValue:
    """Return the value without the fields that an API server prunes, because the structural schema does not know them."""
    if isinstance(value, list):
        keeps_all = find(made, PRESERVE) is True and not find(made, "items")
        return value if keeps_all else [pruned(find_object(made, "items"), item) for item in value]
    if not isinstance(value, dict) or (find(made, PRESERVE) is True and not find(made, "properties")):
        return value
    named, more = find_object(made, "properties"), find(made, "additionalProperties")
    left: JsonObject = {}
    for name, item in value.items():
        if name in named:
            left[name] = pruned(as_object(named[name], name), item)
        elif isinstance(more, dict):
            left[name] = pruned(more, item)
        elif find(made, PRESERVE) is True:
            left[name] = item
    return left


def takes(made: JsonObject, value: JsonValue) -> bool:
    checked = CustomSchema(only_x(made))
    return not checked.errors({"x": value})


@pytest.mark.slow
@settings(max_examples=scaled(5_000, 150), deadline=None)
@given(SCHEMAS, SCHEMAS, st.data())
def test_values_newly_refused_or_pruned_always_have_a_narrowing(
    old: JsonObject, new: JsonObject, data: st.DataObject
) -> None:
    """The embedded control plane's validation decides which values are newly refused.

    In some examples, the new schema is made from the old one. In the others, the two schemas are unrelated.
    """
    if data.draw(st.booleans()):
        new = old
        for _ in range(data.draw(st.integers(1, 3))):
            new = widen(new, data)
        if data.draw(st.booleans()):
            new, _ = narrow(new, data)
            assume("default" not in str(new))
            assume("x-kubernetes-validations" not in str(new))
    value = data.draw(values(old))
    assume(pruned(old, value) == value and takes(old, value))
    if pruned(new, value) != value or not takes(new, value):
        assert list(narrowings(only_x(old), only_x(new))) != []


KEYS = st.sampled_from(
    [
        *("type", "properties", "items", "additionalProperties", "required", "enum", "minimum", "exclusiveMaximum"),
        *("maximum", "maxLength", "pattern", "format", "allOf", "anyOf", "not", "x-kubernetes-validations", "rule"),
        *("nullable", PRESERVE, "x-kubernetes-int-or-string", "x-kubernetes-list-map-keys", "a"),
    ]
)
ANY: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats() | st.sampled_from(["object", "string", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.slow
@settings(max_examples=scaled(5_000, 200), deadline=None)
@given(st.dictionaries(KEYS, ANY, max_size=5), st.dictionaries(KEYS, ANY, max_size=5))
def test_malformed_schemas_raise_only_the_declared_error(old: JsonObject, new: JsonObject) -> None:
    try:
        for one in narrowings(old, new):
            assert len(one.what) < 1_000
            assert find_list({"rules": [one.rule.value]}, "rules")
    except FormatError:
        pass
