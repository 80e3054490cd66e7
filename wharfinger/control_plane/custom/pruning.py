"""Pruning: fields that a structural schema does not declare are removed (KEP-1693), and reported for strict validation.

``x-kubernetes-preserve-unknown-fields`` keeps the undeclared fields of an object; inside its declared fields, pruning continues.
``additionalProperties: true`` keeps scalars. The fields of objects under it are not declared, and are removed.
"""

from typing import Final

from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.control_plane.kinds.field_paths import at_step, joined
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.schemas.structural import members, parts

META: Final = frozenset({"apiVersion", "kind", "metadata"})


def pruned(schema: JsonObject, value: JsonValue, *, root: bool) -> tuple[JsonValue, list[str]]:
    """Return the value without undeclared fields, and the sorted paths of these fields. ``root`` is set if the value has
    metadata.
    """
    unknown: list[str] = []
    kept = _pruned({**schema, schemas.EMBEDDED: True} if root else schema, value, "", unknown)
    return kept, sorted(unknown)


def _pruned(schema: JsonObject | None, value: JsonValue, path: str, unknown: list[str]) -> JsonValue:
    if schema is not None and schemas.flag(schema, schemas.PRESERVE):
        return _preserved(schema, value, path, unknown)
    if isinstance(value, list):
        return [_pruned(node, item, at_step({}, path, index), unknown) for index, item, node in parts(schema, value)]
    if not isinstance(value, dict):
        return value
    kept: JsonObject = {}
    embedded = schema is not None and schemas.flag(schema, schemas.EMBEDDED)
    for name, member, node, declared in members(schema, value):
        if embedded and name in META:
            kept[name] = member
        elif declared:
            kept[name] = (
                _pruned(node, member, joined(path, name), unknown) if isinstance(member, dict | list) else member
            )
        elif name not in META or path:
            unknown.append(joined(path, name))
    return kept


def _preserved(schema: JsonObject | None, value: JsonValue, path: str, unknown: list[str]) -> JsonValue:
    """Return the value with its undeclared fields, and with its declared fields pruned."""
    if schema is None:
        return value
    if isinstance(value, list):
        return [
            _preserved(node, item, at_step(schema, path, index), unknown) for index, item, node in parts(schema, value)
        ]
    if not isinstance(value, dict):
        return value
    meta = META if schemas.flag(schema, schemas.EMBEDDED) else ()
    return {
        name: _pruned(node, member, joined(path, name), unknown) if declared and name not in meta else member
        for name, member, node, declared in members(schema, value)
    }
