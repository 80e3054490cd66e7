"""Paths of fields in a schema, such as ``.spec.list['a key']``, in the format of rules and selectable fields."""

import re
from collections.abc import Iterator
from typing import Final

from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.control_plane.kinds.field_paths import joined, keyed
from wharfinger.formats.json.value import JsonObject

_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}
_ESCAPE: Final = re.compile(r"\\.")


class FieldPathError(ValueError):
    """The path is invalid, or does not exist in the schema."""


def valid_field_path(text: str, schema: JsonObject, *, arrays: bool = True) -> tuple[JsonObject, str]:
    """Return the schema of the field, and the path in the format of ``field.Path``. Raises FieldPathError."""
    path, tokens = "", _tokens(text)
    for token in tokens:
        if token == "[":  # noqa: S105 - a bracket
            if not arrays:
                raise FieldPathError("array notation is not allowed")
            name = _unquoted(_next(tokens))
            schema, path = _step(schema, name, path)
            closing = _next(tokens)
            if closing != "]":
                raise FieldPathError(f"expected ] but got {closing}")
        elif token == ".":  # noqa: S105
            schema, path = _step(schema, _next(tokens), path)
        else:
            raise FieldPathError(f"expected [ or . but got: {token}")
    return schema, path


def _step(schema: JsonObject, name: str, path: str) -> tuple[JsonObject, str]:
    declared = schemas.child(schema, "properties")
    if declared:
        node = schemas.child(declared, name)
        if node is None:
            raise FieldPathError("does not refer to a valid field")
        return node, joined(path, name)
    additional = schemas.additional(schema)
    if additional is None:
        raise FieldPathError("does not refer to a valid field")
    return additional, keyed(path, name)


def _next(tokens: Iterator[str]) -> str:
    found = next(tokens, None)
    if found is None:
        raise FieldPathError("unexpected end of JSON path")
    return found


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        if text[at] == "'":
            end = at + 1
            while end < len(text) and not (text[end] == "'" and text[end - 1] != "\\"):
                end += 1
            end = min(end + 1, len(text))
        elif text[at] in ".[]":
            end = at + 1
        else:
            end = next((index for index in range(at, len(text)) if text[index] in ".[]"), len(text))
        yield text[at:end]
        at = end


def _unquoted(token: str) -> str:
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise FieldPathError(f"expected single quoted string but got {token}")

    def plain(found: re.Match[str]) -> str:
        if found[0][1] not in _ESCAPES:
            raise FieldPathError(f"invalid string literal: invalid escape char {found[0]}")
        return _ESCAPES[found[0][1]]

    return _ESCAPE.sub(plain, token[1:-1])
