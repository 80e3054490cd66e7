"""A comparison of two schemas of a CustomResourceDefinition, which finds values that only the old schema accepted.

Pure. The schemas are structural (apiextensions.k8s.io/v1): the API server drops ("prunes") each field that the schema does not
name, unless the schema preserves unknown fields. So the removal of a property from a schema loses data, and is a finding like the
refusal of a value. The module finds the changes that Carvel's kapp and OLM v1 refuse, and further changes that narrow a
structural schema. A changed default is a finding, too, because it changes the meaning of existing objects.

The module does not determine whether a new pattern, validation rule, `oneOf` or `not` accepts more than the old one: each new or
changed one counts as narrower. Below `allOf`, `anyOf`, `oneOf` and `not` no fields are dropped, so a property there is only a
condition on its value. If a condition contains further conditions, these are only compared for equality, and any difference
counts as narrower.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite
from typing import Final, TypeAlias

from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    ShapeError,
    as_object,
    encode_json,
    find,
    find_list,
    find_object,
    find_str,
)
from wharfinger.formats.listing import listed

NAMED: Final = 8
"""The largest number of values that a message names."""
QUOTED_CHARS: Final = 60
"""The largest number of characters quoted from a value."""


class CrdRule(StrEnum):
    """The rule that an unsafe upgrade breaks."""

    SCOPE = "scope-changed"
    NAMES = "names-changed"
    STORED_VERSION = "stored-version-removed"
    CONVERSION = "conversion-removed"
    SUBRESOURCE = "subresource-removed"
    TYPE = "type-changed"
    NULLABLE = "null-refused"
    REQUIRED = "required-added"
    PROPERTY = "property-removed"
    CLOSED = "unknown-fields-dropped"
    ENUM = "enum-narrowed"
    MINIMUM = "minimum-raised"
    MAXIMUM = "maximum-lowered"
    MULTIPLE = "multiple-of-added"
    PATTERN = "pattern-added"
    FORMAT = "format-added"
    LIST_TYPE = "list-type-narrowed"
    VALIDATION = "validation-added"
    DEFAULT = "default-changed"


@dataclass(frozen=True, slots=True)
class Narrowing:
    """One finding: at ``path``, the new schema makes the change ``what``, so that some values are no longer accepted or kept.

    Examples of paths: ``.spec.replicas``, ``.spec.ports[].name``, ``.spec.labels.*``; "" is the whole object.
    """

    rule: CrdRule
    path: str
    what: str


_Found: TypeAlias = Iterator[Narrowing]

_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_ANYTHING: Final[JsonObject] = {_PRESERVE: True}
_IMPLIED: Final = frozenset({"apiVersion", "kind", "metadata"})
"""The members that every object has, even if its schema does not name them."""
_ALL_TYPES: Final = frozenset({"object", "array", "string", "integer", "number", "boolean"})
_WIDER_FORMATS: Final = frozenset({("int32", "int64"), ("float", "double")})
_UNCHECKED_FORMATS: Final = frozenset({"int64", "float", "double", "password"})
_INT_OR_STRING_MEMBERS: Final = (b'{"type":"integer"}', b'{"type":"string"}')
_COUNTS: Final = (("minLength", "maxLength"), ("minItems", "maxItems"), ("minProperties", "maxProperties"))


def narrowings(old: JsonObject, new: JsonObject) -> Iterator[Narrowing]:
    """Yield each way in which the new ``openAPIV3Schema`` of a version accepts less than the old one. Raises ShapeError."""
    return _schema(old, new, "", _Place(root=True))


@dataclass(frozen=True, slots=True)
class _Place:
    """The position of a schema: ``root`` is True if it is the schema of a whole object, and ``condition`` is True if it is
    below allOf or a similar keyword.
    """

    root: bool = False
    condition: bool = False

    def inside(self) -> "_Place":
        """Return the position of a property, or of a list item, of the schema at this position."""
        return _Place(condition=self.condition)


def _schema(old: JsonObject, new: JsonObject, path: str, place: _Place) -> _Found:
    if old == new:
        return
    yield from _types(old, new, path)
    yield from _enum(old, new, path)
    yield from _bounds(old, new, path)
    yield from _texts(old, new, path)
    yield from _rules(old, new, path)
    yield from _members(old, new, path, place)
    yield from _items(old, new, path, place)
    yield from _required(old, new, path)
    if place.condition:
        yield from _conditions(old, new, path, place)
    else:
        yield from _default(old, new, path)
        yield from _properties(old, new, path, place)
        yield from _rest(old, new, path, place)


# -- types and values


def _types(old: JsonObject, new: JsonObject, path: str) -> _Found:
    taken, takes = _taken(old), _taken(new)
    if taken - takes - ({"integer"} if "number" in takes else set()):
        yield Narrowing(CrdRule.TYPE, path, f"the type was {_type_text(old)}, and is {_type_text(new)}")
    if find(old, "nullable") is True and find(new, "nullable") is not True and _limited(new):
        yield Narrowing(CrdRule.NULLABLE, path, "null was allowed, but is not allowed any more")


def _taken(schema: JsonObject) -> frozenset[str]:
    if find(schema, _INT_OR_STRING) is True:
        return frozenset({"integer", "string"})
    named = find_str(schema, "type")
    return frozenset({named}) if named else _ALL_TYPES


def _limited(schema: JsonObject) -> bool:
    return len(_taken(schema)) < len(_ALL_TYPES)


def _type_text(schema: JsonObject) -> str:
    taken = _taken(schema)
    return "anything" if taken == _ALL_TYPES else " or ".join(sorted(taken))


def _enum(old: JsonObject, new: JsonObject, path: str) -> _Found:
    if find(new, "enum") is None:
        return
    allowed = [_text(value) for value in find_list(new, "enum")]
    if find(old, "enum") is None:
        yield Narrowing(CrdRule.ENUM, path, f"every value was allowed, and now only {listed(allowed, NAMED)}")
    elif gone := [text for text in map(_text, find_list(old, "enum")) if text not in allowed]:
        yield Narrowing(
            CrdRule.ENUM, path, f"{listed(gone, NAMED)} {'is' if len(gone) == 1 else 'are'} not allowed any more"
        )


def _bounds(old: JsonObject, new: JsonObject, path: str) -> _Found:
    for least, most in _COUNTS:
        before, after = _number(old, least) or 0, _number(new, least) or 0
        if after > before:
            yield Narrowing(CrdRule.MINIMUM, path, f"{least} was {before:g}, and is {after:g}")
        highest, high = _number(old, most), _number(new, most)
        if high is not None and (highest is None or high < highest):
            yield Narrowing(CrdRule.MAXIMUM, path, f"{most} was {_bound_text(highest)}, and is {high:g}")
    for name, rule, sign in (("minimum", CrdRule.MINIMUM, 1), ("maximum", CrdRule.MAXIMUM, -1)):
        was, now = _bound(old, name, sign), _bound(new, name, sign)
        if now is not None and (was is None or now > was):
            yield Narrowing(rule, path, f"{name} was {_limit_text(was, sign)}, and is {_limit_text(now, sign)}")
    step, steps = _number(new, "multipleOf"), _number(old, "multipleOf")
    if step and not (steps and steps % step == 0):
        yield Narrowing(CrdRule.MULTIPLE, path, f"multipleOf was {_bound_text(steps)}, and is {step:g}")


def _number(schema: JsonObject, name: str) -> float | None:
    found = find(schema, name)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float) or not isfinite(found):
        raise ShapeError(f"{name}: expected a number")
    return found


def _bound(schema: JsonObject, name: str, sign: int) -> tuple[float, bool] | None:
    """Return a bound in a form in which a greater value is narrower; with equal numbers, a bound that excludes its own number
    is narrower. ``sign`` is 1 for a lower bound, and -1 for an upper bound.
    """
    found = _number(schema, name)
    excluded = find(schema, f"exclusive{name.capitalize()}") is True
    return None if found is None else (sign * found, excluded)


def _bound_text(value: float | None) -> str:
    return "not set" if value is None else f"{value:g}"


def _limit_text(bound: tuple[float, bool] | None, sign: int) -> str:
    return "not set" if bound is None else f"{sign * bound[0]:g}" + (" (excluded)" if bound[1] else "")


def _texts(old: JsonObject, new: JsonObject, path: str) -> _Found:
    pattern, before = find_str(new, "pattern"), find_str(old, "pattern")
    if pattern and pattern != before:
        was = f"was {_shown(before)}, and is" if before else "was added:"
        yield Narrowing(CrdRule.PATTERN, path, f"the pattern {was} {_shown(pattern)}")
    name, earlier = find_str(new, "format"), find_str(old, "format")
    if name and name != earlier and (earlier, name) not in _WIDER_FORMATS and name not in _UNCHECKED_FORMATS:
        yield Narrowing(CrdRule.FORMAT, path, f"the format was {earlier or 'not set'}, and is {name}")


def _rules(old: JsonObject, new: JsonObject, path: str) -> _Found:
    known = {find_str(rule, "rule").strip() for rule in find_list(old, "x-kubernetes-validations")}
    for rule in find_list(new, "x-kubernetes-validations"):
        text = find_str(rule, "rule").strip()
        if text not in known:
            yield Narrowing(CrdRule.VALIDATION, path, f"a rule was added: {_shown(text)}")


def _default(old: JsonObject, new: JsonObject, path: str) -> _Found:
    if old is _ANYTHING or _text(find(old, "default")) == _text(find(new, "default")):
        return
    was, now = ("not set" if find(one, "default") is None else _text(find(one, "default")) for one in (old, new))
    yield Narrowing(CrdRule.DEFAULT, path, f"the default was {was}, and is {now}: existing objects would change")


# -- conditions on the whole


def _members(old: JsonObject, new: JsonObject, path: str, place: _Place) -> _Found:
    added = "a condition was added, or changed"
    for member in _schemas(new, "allOf"):
        if not any(_follows(before, member, place) for before in (*_schemas(old, "allOf"), *_alone(old))):
            yield Narrowing(CrdRule.VALIDATION, path, f"{added}: allOf {_text(member)}")
    any_of, choices = _choices(new), _choices(old) or _alone(old)
    if any_of and not all(any(_follows(one, wider, place) for wider in any_of) for one in choices):
        yield Narrowing(CrdRule.VALIDATION, path, f"{added}: anyOf {_text(find(new, 'anyOf'))}")
    for name in ("oneOf", "not"):
        if find(new, name) is not None and find(new, name) != find(old, name):
            yield Narrowing(CrdRule.VALIDATION, path, f"{added}: {name} {_text(find(new, name))}")


def _choices(schema: JsonObject) -> list[JsonObject]:
    """Return the members of anyOf, except those that only repeat the meaning of int-or-string."""
    members = _schemas(schema, "anyOf")
    if find(schema, _INT_OR_STRING) is True and sorted(map(encode_json, members)) == list(_INT_OR_STRING_MEMBERS):
        return []
    return members


def _alone(schema: JsonObject) -> tuple[JsonObject, ...]:
    """Return a condition that consists of all keywords of the schema except allOf and default, as a tuple of one item."""
    return ({name: value for name, value in schema.items() if name not in {"allOf", "default"}},)


def _follows(old: JsonObject, new: JsonObject, place: _Place) -> bool:
    """Return whether every value that meets the old condition also meets the new condition. Inside of another condition, this
    is assumed only if the two conditions are equal.
    """
    return old == new or (not place.condition and next(_schema(old, new, "", _Place(condition=True)), None) is None)


def _schemas(schema: JsonObject, name: str) -> list[JsonObject]:
    return [as_object(member, name) for member in find_list(schema, name)]


# -- lists and objects


def _items(old: JsonObject, new: JsonObject, path: str, place: _Place) -> _Found:
    if find(new, "items") is not None and "array" in _taken(old):
        before = find_object(old, "items") if find(old, "items") is not None else _ANYTHING
        yield from _schema(before, find_object(new, "items"), f"{path}[]", place.inside())
    kind, was = (find_str(one, "x-kubernetes-list-type", default="atomic") for one in (new, old))
    keys, had = (sorted(map(_text, find_list(one, "x-kubernetes-list-map-keys"))) for one in (new, old))
    if kind != "atomic" and (kind, keys) != (was, had):
        what = f"a {kind} of items with unique {', '.join(keys)}" if keys else f"a {kind} of unique items"
        yield Narrowing(CrdRule.LIST_TYPE, path, f"the list became {what}")


def _required(old: JsonObject, new: JsonObject, path: str) -> _Found:
    had = {_text(name) for name in find_list(old, "required")}
    for name in find_list(new, "required"):
        filled = isinstance(name, str) and find(new, "properties", name, "default") is not None
        if _text(name) not in had and not filled:
            yield Narrowing(CrdRule.REQUIRED, f"{path}.{name}", "it is required now")


def _properties(old: JsonObject, new: JsonObject, path: str, place: _Place) -> _Found:
    """Yield findings about properties of the old schema that are dropped, or whose values are not all accepted any more."""
    names, rest = find_object(new, "properties"), _unnamed(new)
    implied = _IMPLIED if place.root or find(new, _EMBEDDED) is True else frozenset()
    for name, schema in find_object(old, "properties").items():
        here = f"{path}.{name}"
        if name in names:
            yield from _schema(as_object(schema, here), as_object(names[name], here), here, place.inside())
        elif rest is not None:
            yield from _schema(as_object(schema, here), rest, here, place.inside())
        elif name not in implied:
            yield Narrowing(CrdRule.PROPERTY, here, "the property was removed, so its stored values would be dropped")


def _rest(old: JsonObject, new: JsonObject, path: str, place: _Place) -> _Found:
    """Yield findings about fields that the old schema allowed without naming them, and that the new schema forbids or
    restricts.
    """
    if find(new, _EMBEDDED) is True and find(old, _EMBEDDED) is not True:
        yield Narrowing(CrdRule.TYPE, path, "it must be a complete API object now")
    kept, rest = _unnamed(old), _unnamed(new)
    if find(old, _EMBEDDED) is True and find(new, _EMBEDDED) is not True and rest is None:
        for name in sorted(_IMPLIED - find_object(new, "properties").keys()):
            yield Narrowing(
                CrdRule.PROPERTY,
                f"{path}.{name}",
                "the property was removed: its object need not be a complete API object now",
            )
    if kept is None or "object" not in _taken(old):
        return
    if rest is not None:
        yield from _schema(kept, rest, f"{path}.*", place.inside())
    elif "object" in _taken(new):
        yield Narrowing(
            CrdRule.CLOSED, path, "fields that the schema does not name were kept, and would be dropped now"
        )
    before = find_object(old, "properties")
    for name, schema in find_object(new, "properties").items():
        if name not in before:
            yield from _schema(kept, as_object(schema, name), f"{path}.{name}", place.inside())


def _unnamed(schema: JsonObject) -> JsonObject | None:
    """Return the schema of fields that ``properties`` does not name; None if the API server drops such fields."""
    more = find(schema, "additionalProperties")
    if isinstance(more, Mapping):
        return as_object(more, "additionalProperties")
    return _ANYTHING if more is True or find(schema, _PRESERVE) is True else None


def _conditions(old: JsonObject, new: JsonObject, path: str, place: _Place) -> _Found:
    """Yield the properties that are narrower than before, in a schema below allOf or a similar keyword. There, every property
    that is named is an additional condition.
    """
    before = find_object(old, "properties")
    for name, schema in find_object(new, "properties").items():
        was = as_object(before[name], name) if name in before else _ANYTHING
        yield from _schema(was, as_object(schema, name), f"{path}.{name}", place.inside())
    more = find(new, "additionalProperties")
    if more not in (None, True) and more != find(old, "additionalProperties"):
        yield Narrowing(CrdRule.VALIDATION, path, "a condition on its other fields was added, or changed")


# -- words


def _text(value: JsonValue) -> str:
    return _shown(encode_json(value).decode())


def _shown(text: str) -> str:
    return text if len(text) <= QUOTED_CHARS else text[: QUOTED_CHARS - 1] + "…"
