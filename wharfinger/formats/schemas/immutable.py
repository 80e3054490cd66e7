"""Settings that may be set once and never changed (``x-deckhouse-immutable: true``). Pure.

A marked part of a value is compared as a whole with the same part of the old value, after defaults were filled in on both sides.
A part that the old value does not have may be set. Removing a part is a change. Marks are found in all branches of allOf, anyOf
and oneOf, and in these parts:

==========================  ==========================================================================================
part of the value           part of the old value with which it is compared
==========================  ==========================================================================================
properties                  the property of the same name
additionalProperties        the key of the same name, for keys that are not properties and that both sides have
items of a map list         the item with the same values for the ``x-kubernetes-list-map-keys``; items may be removed
other items                 the item with the same index, for indexes that both sides have
==========================  ==========================================================================================

A mark anywhere else (``patternProperties``, ``not``) would have no effect, so a schema with such a mark is refused.
"""

from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, canonical_json
from wharfinger.formats.schemas.document import (
    SchemaError,
    ValuePath,
    alternatives,
    by_keys,
    item_key,
    item_schema,
    map_keys,
    path_text,
    properties,
)
from wharfinger.formats.schemas.problem import Problem
from wharfinger.formats.schemas.work import Work, WorkError

IMMUTABLE: Final = "x-deckhouse-immutable"
MAX_COMPARED: Final = 200_000
"""The limit on the number of comparisons for one schema. So many comparisons take about half a second."""

_BELOW: Final = ("items", "additionalItems", "additionalProperties", "allOf", "anyOf", "oneOf")
_NOT_COMPARED: Final = ("patternProperties", "not")


def has_immutable(schema: JsonObject, *, what: str) -> bool:
    """Return whether any part of an expanded schema is marked as immutable, so that values have to be compared.

    Raises SchemaError if a mark is at a place where it would have no effect; the message names the place.
    """
    return _has(schema, (), what)


def _has(schema: JsonObject, path: ValuePath, what: str) -> bool:
    for keyword in _NOT_COMPARED:
        inner = schema.get(keyword)
        if isinstance(inner, dict) and _is_marked(inner):
            place = path_text((*path, keyword))
            raise SchemaError(
                f"{what}: {place}: has {IMMUTABLE} in it, which would not be checked there; move it out of {keyword}"
            )
    found = schema.get(IMMUTABLE) is True
    for name, inner in properties(schema).items():
        found = _has(inner, (*path, "properties", name), what) or found
    for keyword in _BELOW:
        below = schema.get(keyword)
        if isinstance(below, dict):
            found = _has(below, (*path, keyword), what) or found
        elif isinstance(below, list):
            for index, one in enumerate(below):
                if isinstance(one, dict):
                    found = _has(one, (*path, keyword, index), what) or found
    return found


def _is_marked(schema: JsonValue) -> bool:
    if isinstance(schema, dict):
        return schema.get(IMMUTABLE) is True or any(map(_is_marked, schema.values()))
    return isinstance(schema, list) and any(map(_is_marked, schema))


def immutable_problems(value: JsonValue, old: JsonValue, schema: JsonObject) -> tuple[Problem, ...]:
    """Return the changes from ``old`` to ``value`` that the schema forbids.

    The caller must have filled in the defaults of both values. If a changed value is too large to be compared quickly, its size
    is the only problem that is returned. Raises ShapeError for a value without a JSON form.
    """
    if _equal(value, old):
        return ()
    search = _Search()
    try:
        search.visit(value, old, schema, ())
    except WorkError:
        return (Problem("", "is too large to be compared with the former value"),)
    return tuple(Problem(path_text(path), "cannot be changed once it is set") for path in search.found)


class _Search:
    def __init__(self) -> None:
        self.found: dict[ValuePath, None] = {}
        self.work = Work(MAX_COMPARED)

    def visit(
        self, value: JsonValue, old: JsonValue, schema: JsonObject, path: ValuePath, keys: tuple[str, ...] = ()
    ) -> None:
        """Compare a part of the value with the old part, and record a forbidden change.

        If ``schema`` is a branch of the schema of a map list, ``keys`` are the keys of that list.
        """
        self.work.spend(1)
        if old is None:
            return
        if schema.get(IMMUTABLE) is True:
            if path not in self.found and not _equal(value, old):
                self.found[path] = None
            return
        if isinstance(value, dict) and isinstance(old, dict):
            self.members(value, old, schema, path)
        elif isinstance(value, list) and isinstance(old, list):
            keys = map_keys(schema) or keys
            self.items(value, old, schema, path, keys)
        elif isinstance(old, dict):
            self.members({}, old, schema, path)
        for branch in alternatives(schema):
            self.visit(value, old, branch, path, keys)

    def items(
        self, value: list[JsonValue], old: list[JsonValue], schema: JsonObject, path: ValuePath, keys: tuple[str, ...]
    ) -> None:
        if "items" not in schema:
            return
        self.work.spend(len(value) + len(old) if keys else 0)
        known = by_keys(old, keys)
        for index, item in enumerate(value if keys else value[: len(old)]):
            inner = item_schema(schema, index)
            if inner is not None:
                key = item_key(item, keys)
                before = old[index] if not keys else None if key is None else known.get(key)
                self.visit(item, before, inner, (*path, index))

    def members(self, value: JsonObject, old: JsonObject, schema: JsonObject, path: ValuePath) -> None:
        declared = properties(schema)
        for name, inner in declared.items():
            if name in old:
                self.visit(value.get(name), old[name], inner, (*path, name))
        others = schema.get("additionalProperties")
        if isinstance(others, dict):
            for name, item in value.items():
                if name in old and name not in declared:
                    self.visit(item, old[name], others, (*path, name))


def _equal(value: JsonValue, old: JsonValue) -> bool:
    return canonical_json(value) == canonical_json(old)
