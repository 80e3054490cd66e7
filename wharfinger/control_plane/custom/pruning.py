"""Pruning: fields that a structural schema does not declare are removed (KEP-1693), and reported for strict validation.

``x-kubernetes-preserve-unknown-fields`` keeps undeclared fields; declared fields inside are pruned again.
``additionalProperties: true`` keeps scalars, but the fields of objects under it are undeclared, and are removed.
"""

from collections.abc import Iterator
from typing import Final

from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.control_plane.kinds.field_paths import indexed, joined
from wharfinger.formats.json.value import JsonObject, JsonValue

META: Final = frozenset({"apiVersion", "kind", "metadata"})


def pruned(schema: JsonObject, value: JsonValue, *, root: bool) -> tuple[JsonValue, list[str]]:
    """Return the value without undeclared fields, and their sorted paths; ``root`` is set if it has metadata."""
    unknown: list[str] = []
    kept = _pruned({**schema, schemas.EMBEDDED: True} if root else schema, value, "", unknown)
    return kept, sorted(unknown)


def _pruned(schema: JsonObject | None, value: JsonValue, path: str, unknown: list[str]) -> JsonValue:
    if schema is not None and schemas.flag(schema, schemas.PRESERVE):
        return _preserved(schema, value, path, unknown)
    if isinstance(value, list):
        items = None if schema is None else schemas.items(schema)
        return [_pruned(items, item, indexed(path, index), unknown) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    kept: JsonObject = {}
    for name, member, node, declared in _members(schema, value):
        if declared:
            kept[name] = (
                _pruned(node, member, joined(path, name), unknown) if isinstance(member, dict | list) else member
            )
        elif schema is not None and schemas.flag(schema, schemas.EMBEDDED) and name in META:
            kept[name] = member
        elif name not in META or path:
            unknown.append(joined(path, name))
    return kept


def _members(schema: JsonObject | None, value: JsonObject) -> Iterator[tuple[str, JsonValue, JsonObject | None, bool]]:
    """Yield each member with its schema, and whether it is declared; a declared member may have no schema."""
    properties = {} if schema is None else schemas.child(schema, "properties") or {}
    embedded = schema is not None and schemas.flag(schema, schemas.EMBEDDED)
    additional = None if schema is None else schemas.additional(schema)
    others = schema is not None and schemas.has_additional(schema)
    for name, member in value.items():
        if embedded and name in META:
            yield name, member, None, False
        elif name in properties:
            yield name, member, schemas.child(properties, name), True
        else:
            yield name, member, additional, others


def _preserved(schema: JsonObject | None, value: JsonValue, path: str, unknown: list[str]) -> JsonValue:
    """Return the value with its undeclared fields, and prune the declared ones inside."""
    if schema is None:
        return value
    if isinstance(value, list):
        items = schemas.items(schema)
        return [_preserved(items, item, indexed(path, index), unknown) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    return {
        name: _pruned(node, member, joined(path, name), unknown) if declared else member
        for name, member, node, declared in _members(schema, value)
    }
