"""``x-deckhouse-immutable: true``: what may be set once, and never changed (spec runtime §10.3). Pure.

A marked part of a value is compared as a whole, after defaults were filled in on both sides. Where the old value had
nothing there, it may be set now; taking it away later is a change. Looked at are properties, additionalProperties (the keys
that both sides have), the items of lists by their index (those that both have), and all branches of allOf, anyOf and oneOf.
"""

from typing import Final

from wharfinger.formats.json_value import JsonObject, JsonValue, canonical_json
from wharfinger.formats.schema_document import ValuePath, alternatives, item_schema, path_text, properties
from wharfinger.formats.schema_problems import Problem

IMMUTABLE: Final = "x-deckhouse-immutable"
MAX_COMPARED: Final = 200_000
"""Schemas and parts of a value that are looked at: about half a second."""


def has_immutable(schema: JsonValue) -> bool:
    """Whether anything in an expanded schema is immutable, so that comparing is worth while."""
    if isinstance(schema, dict):
        return schema.get(IMMUTABLE) is True or any(map(has_immutable, schema.values()))
    return isinstance(schema, list) and any(map(has_immutable, schema))


def immutable_problems(value: JsonValue, old: JsonValue, schema: JsonObject) -> tuple[Problem, ...]:
    """What was changed and may not be; both values with their defaults. Raises ShapeError for what has no form in JSON.

    A value that is so large that this takes long is refused for that, as the one problem.
    """
    search = _Search()
    try:
        search.look(value, old, schema, ())
    except _WorkError:
        return (Problem("", "is too large to be compared with what was set before"),)
    return tuple(Problem(path_text(path), "cannot be changed once it is set") for path in search.found)


class _WorkError(Exception):
    """Comparing would take too long."""


class _Search:
    def __init__(self) -> None:
        self.found: dict[ValuePath, None] = {}
        self.work = 0

    def look(self, value: JsonValue, old: JsonValue, schema: JsonObject, path: ValuePath) -> None:
        self.work += 1
        if self.work > MAX_COMPARED:
            raise _WorkError
        if old is None:
            return
        if schema.get(IMMUTABLE) is True:
            if path not in self.found and not _equal(value, old):
                self.found[path] = None
            return
        if isinstance(value, dict) and isinstance(old, dict):
            self.members(value, old, schema, path)
        elif isinstance(value, list) and isinstance(old, list):
            for index, (item, before) in enumerate(zip(value, old, strict=False)):
                inner = item_schema(schema, index)
                if inner is not None:
                    self.look(item, before, inner, (*path, index))
        elif isinstance(old, dict):
            self.members({}, old, schema, path)
        for branch in alternatives(schema):
            self.look(value, old, branch, path)

    def members(self, value: JsonObject, old: JsonObject, schema: JsonObject, path: ValuePath) -> None:
        declared = properties(schema)
        for name, inner in declared.items():
            if name in old:
                self.look(value.get(name), old[name], inner, (*path, name))
        others = schema.get("additionalProperties")
        if isinstance(others, dict):
            for name, item in value.items():
                if name in old and name not in declared:
                    self.look(item, old[name], others, (*path, name))


def _equal(value: JsonValue, old: JsonValue) -> bool:
    return canonical_json(value) == canonical_json(old)
