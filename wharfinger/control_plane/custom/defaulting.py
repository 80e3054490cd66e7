"""The defaults of structural schemas, which are set in objects when these are written or read, and the removal of nulls.

A null that the schema does not allow is removed, or replaced by the default if there is one. Under ``additionalProperties``,
defaults are only applied to existing members. The total size of defaults is limited, because a small object can have large
ones.
"""

from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, encode_json
from wharfinger.formats.schemas.structural import members, parts

_MAX_BYTES: Final = 16 * 1024 * 1024
"""The maximum total size of the defaults in one object, in bytes."""


def defaulted(schema: JsonObject, obj: JsonObject) -> JsonObject:
    """Return the object with its defaults and without disallowed nulls. Raises ShapeError if the defaults are too large."""
    result = _filled(schema, without_nulls(schema, obj), _Budget(_MAX_BYTES))
    return result if isinstance(result, dict) else obj


@dataclass(slots=True)
class _Budget:
    left: int

    def copied(self, value: JsonValue) -> JsonValue:
        """Count the size of a default, and return the default itself: no copy is needed, because values are never altered in
        place.
        """
        self.left -= len(encode_json(value))
        if self.left < 0:
            raise ShapeError(f"the defaults of the schema are larger than {_MAX_BYTES} bytes in total")
        return value


def _is_unwanted(value: JsonValue, schema: JsonObject | None) -> bool:
    return value is None and schema is not None and not schemas.flag(schema, "nullable")


def without_nulls(schema: JsonObject | None, value: JsonValue) -> JsonValue:
    """Remove each member of an object that is null although its schema forbids null, unless the schema has a default, which
    replaces the null later. Nulls that are items of a list are kept.
    """
    if isinstance(value, dict):
        kept: JsonObject = {}
        for name, member, node, _ in members(schema, value):
            if not (_is_unwanted(member, node) and node is not None and node.get("default") is None):
                kept[name] = without_nulls(node, member) if isinstance(member, dict | list) else member
        return kept
    if isinstance(value, list):
        return [
            without_nulls(node, item) if isinstance(item, dict | list) else item
            for _, item, node in parts(schema, value)
        ]
    return value


def _filled(schema: JsonObject | None, value: JsonValue, budget: _Budget) -> JsonValue:
    if schema is None:
        return value
    if isinstance(value, dict):
        return _members(schema, value, budget)
    if isinstance(value, list):
        return [item if node is None else _given(node, item, budget) for _, item, node in parts(schema, value)]
    return value


def _members(schema: JsonObject, value: JsonObject, budget: _Budget) -> JsonObject:
    declared = schemas.child(schema, "properties") or {}
    result = dict(value)
    for name, node in declared.items():
        default = node.get("default") if isinstance(node, dict) else None
        if default is not None and (name not in result or _is_unwanted(result[name], schemas.child(declared, name))):
            result[name] = budget.copied(default)
    for name, member, node, _ in members(schema, result):
        if node is not None:
            result[name] = _filled(node, member, budget) if name in declared else _given(node, member, budget)
    return result


def _given(schema: JsonObject, value: JsonValue, budget: _Budget) -> JsonValue:
    """Set the defaults in an item or an additional member. The value itself gets its default only if it is a disallowed null."""
    if _is_unwanted(value, schema):
        value = budget.copied(schema.get("default"))
    return _filled(schema, value, budget)
