"""Warnings about settings that their schema marks as deprecated. Pure.

The keywords are ``deprecated: true`` (OpenAPI), ``x-deprecated`` and ``x-doc-deprecated`` (documentation of Deckhouse
modules). A text instead of true, such as the name of a replacement, becomes a part of the warning.
"""

from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.schemas.document import ValuePath, alternatives, item_schema, path_text, properties
from wharfinger.formats.schemas.problem import Problem

MAX_FOUND: Final = 20
MAX_CHECKED: Final = 100_000
_MARKS: Final = ("deprecated", "x-deprecated", "x-doc-deprecated")
_LONGEST: Final = 200


def has_deprecated(schema: JsonValue) -> bool:
    """Return whether anything in an expanded schema is deprecated. If not, no value needs a search for deprecated parts."""
    if isinstance(schema, dict):
        return any(schema.get(mark) for mark in _MARKS) or any(map(has_deprecated, schema.values()))
    return isinstance(schema, list) and any(map(has_deprecated, schema))


def deprecation_warnings(value: JsonValue, schema: JsonObject) -> tuple[Problem, ...]:
    """Return at most MAX_FOUND warnings about the deprecated parts of a value, which must not have defaults filled in.

    Only the beginning of a very large value is searched.
    """
    search = _Search()
    search.visit(value, schema, ())
    return tuple(search.found.values())


class _Search:
    def __init__(self) -> None:
        self.found: dict[ValuePath, Problem] = {}
        self.visited = 0

    def visit(self, value: JsonValue, schema: JsonObject, path: ValuePath) -> None:
        self.visited += 1
        if value is None or self.visited > MAX_CHECKED or len(self.found) >= MAX_FOUND:
            return
        mark = next((schema[mark] for mark in _MARKS if schema.get(mark)), None)
        if mark is not None and path:
            self.found.setdefault(path, Problem(path_text(path), _message(mark)))
            return
        if isinstance(value, dict):
            declared, others = properties(schema), schema.get("additionalProperties")
            for name, item in value.items():
                inner = declared.get(name, others)
                if isinstance(inner, dict):
                    self.visit(item, inner, (*path, name))
        elif isinstance(value, list):
            for index, item in enumerate(value):
                inner = item_schema(schema, index)
                if inner is not None:
                    self.visit(item, inner, (*path, index))
        for branch in alternatives(schema):
            self.visit(value, branch, path)


def _message(mark: JsonValue) -> str:
    if not isinstance(mark, str):
        return "is deprecated"
    text = " ".join(mark.split())
    return f"is deprecated: {text if len(text) <= _LONGEST else text[:_LONGEST] + '…'}"
