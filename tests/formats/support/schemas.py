"""Hypothesis strategies for OpenAPI schemas, and for values that may fit them."""

from typing import Final

from hypothesis import strategies as st

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.schemas.openapi_schema import compile_schema

NAMES: Final = ("a", "b", "c", "x-d")
PATTERNS: Final = ("^[a-c]*$", "b", r"^\d+$", "a{2,3}", "^(a|b)+$", "[[:alpha:]]", "(?i)^B$")
FORMATS: Final = ("date", "uri", "ipv4", "byte", "duration", "cidr", "mac", "hostname", "nonsense", "int-or-string")
TEXTS: Final = ("", "a", "b", "aab", "B", "12", "2026-01-31", "10.0.0.0/8", "1h30m", "/x", "é", "abcabc")

scalars: st.SearchStrategy[JsonValue] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 12),
    st.sampled_from((0.5, 1.0, 0.07, 2.5, -1.5, 1e20)),
    st.sampled_from(TEXTS),
)


def _containers(inner: st.SearchStrategy[JsonValue]) -> st.SearchStrategy[JsonValue]:
    lists: st.SearchStrategy[JsonValue] = st.lists(inner, max_size=4)
    objects: st.SearchStrategy[JsonValue] = st.dictionaries(st.sampled_from((*NAMES, "zz")), inner, max_size=4)
    return lists | objects


values: st.SearchStrategy[JsonValue] = st.recursive(scalars, _containers, max_leaves=12)


def _object(**optional: st.SearchStrategy[JsonValue]) -> st.SearchStrategy[JsonObject]:
    return st.fixed_dictionaries({}, optional=optional)


def _merged(*parts: st.SearchStrategy[JsonObject]) -> st.SearchStrategy[JsonObject]:
    return st.tuples(*parts).map(lambda found: {name: item for part in found for name, item in part.items()})


def _typed(name: str, **optional: st.SearchStrategy[JsonValue]) -> st.SearchStrategy[JsonObject]:
    return st.fixed_dictionaries({"type": st.just(name)}, optional=optional)


small: st.SearchStrategy[JsonValue] = st.integers(0, 4)
booleans: st.SearchStrategy[JsonValue] = st.booleans()
numbers: st.SearchStrategy[JsonValue] = st.sampled_from((-1, 0, 1, 2.5, 7))
leaves: st.SearchStrategy[JsonObject] = st.one_of(
    _typed("string", minLength=small, maxLength=small, pattern=st.sampled_from(PATTERNS), nullable=booleans),
    _typed("string", format=st.sampled_from(FORMATS)),
    _typed("integer", minimum=numbers, maximum=numbers, exclusiveMinimum=booleans, nullable=booleans),
    _typed("number", exclusiveMaximum=numbers, multipleOf=st.sampled_from((0.01, 0.5, 2, 3)), nullable=booleans),
    _typed("boolean", nullable=booleans),
    _object(
        **{"x-kubernetes-int-or-string": st.just(True), "nullable": booleans, "pattern": st.sampled_from(PATTERNS)}
    ),
    _object(enum=st.lists(scalars, min_size=1, max_size=3), nullable=booleans),
    _typed("int-or-string", maximum=numbers),
    _object(type=st.just(["string", "null"]), writeOnly=booleans),
)


def _around(inner: st.SearchStrategy[JsonObject]) -> st.SearchStrategy[JsonObject]:
    names: st.SearchStrategy[JsonValue] = st.lists(st.sampled_from(NAMES), max_size=2, unique=True)
    mapped: st.SearchStrategy[JsonValue] = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    listed: st.SearchStrategy[JsonValue] = st.lists(inner, min_size=1, max_size=3)
    by_pattern: st.SearchStrategy[JsonValue] = st.dictionaries(st.sampled_from(PATTERNS), inner, max_size=2)
    combined = _object(allOf=listed, anyOf=listed, oneOf=listed, nullable=booleans, **{"not": inner})
    objects = _typed(
        "object",
        properties=mapped,
        required=names,
        additionalProperties=booleans | inner,
        patternProperties=by_pattern,
        minProperties=small,
        maxProperties=small,
        nullable=booleans,
    )
    lists = _typed(
        "array",
        items=inner | listed,
        additionalItems=booleans | inner,
        minItems=small,
        maxItems=small,
        uniqueItems=booleans,
    )
    return objects | lists | combined | _merged(objects, combined) | _merged(leaves, combined)


schemas: st.SearchStrategy[JsonObject] = st.recursive(leaves, _around, max_leaves=8)
"""Any schema, most of them with contradictions."""


def _with_default(schema: JsonObject, value: JsonValue) -> JsonObject:
    """Return the schema, with the value as its default if the value fits."""
    compiled = compile_schema(schema, what="generated")
    return {**schema, "default": value} if not compiled.problems(compiled.defaulted(value)) else schema


def _structural(inner: st.SearchStrategy[JsonObject]) -> st.SearchStrategy[JsonObject]:
    inner = st.builds(_with_default, inner, values)
    mapped: st.SearchStrategy[JsonValue] = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    names: st.SearchStrategy[JsonValue] = st.lists(st.sampled_from(NAMES), max_size=1)
    preserve = {"x-kubernetes-preserve-unknown-fields": booleans, "x-kubernetes-embedded-resource": booleans}
    return st.one_of(
        _typed("object", properties=mapped, required=names, nullable=booleans, **preserve),
        _typed("object", additionalProperties=booleans | inner, nullable=booleans, **preserve),
        _typed("array", items=inner, nullable=booleans),
    )


structural: st.SearchStrategy[JsonObject] = st.recursive(leaves, _structural, max_leaves=6)
"""Schemas as Kubernetes takes them in custom resources, with defaults that fit."""
