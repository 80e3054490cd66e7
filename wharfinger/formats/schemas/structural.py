"""The walk over a value and its structural schema, which finds the schema of each member and item.

Defaulting, pruning and list types follow the same keywords: ``properties``, ``additionalProperties`` and ``items``. They ignore
``allOf``, ``anyOf``, ``oneOf`` and ``not``, as Kubernetes' apiextensions-apiserver does. The daemon uses this module for settings
and values, and the embedded control plane for custom resources. The caller decides what to do at each part.
"""

from collections.abc import Iterator
from typing import TypeAlias

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.schemas.document import item_schema

Part: TypeAlias = tuple[str | int, JsonValue, JsonObject | None]
"""A part of a value: the name of a member or the index of an item, the member or the item, and its schema (None if none)."""


def parts(schema: JsonObject | None, value: JsonValue) -> Iterator[Part]:
    """Yield the members of an object, or the items of a list; nothing for any other value."""
    if isinstance(value, dict):
        for name, member, node, _ in members(schema, value):
            yield name, member, node
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield index, item, None if schema is None else item_schema(schema, index)


def sorted_parts(schema: JsonObject | None, value: JsonValue) -> list[Part]:
    """Return the parts that `parts` yields, with the members of an object sorted by name."""
    found = list(parts(schema, value))
    return sorted(found, key=lambda part: str(part[0])) if isinstance(value, dict) else found


def members(schema: JsonObject | None, value: JsonObject) -> Iterator[tuple[str, JsonValue, JsonObject | None, bool]]:
    """Yield each member with its name, its schema, and whether it is declared; a declared member may have no schema.

    ``additionalProperties`` declares every name, whether it is a schema or a boolean.
    """
    found = None if schema is None else schema.get("properties")
    declared = found if isinstance(found, dict) else {}
    additional = None if schema is None else schema.get("additionalProperties")
    others = additional if isinstance(additional, dict) else None
    open_ended = isinstance(additional, dict | bool)
    for name, member in value.items():
        if name in declared:
            node = declared[name]
            yield name, member, node if isinstance(node, dict) else None, True
        else:
            yield name, member, others, open_ended
