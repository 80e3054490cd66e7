"""Objects as Go prints them: JSON in the order of its structs' fields, and maps as ``fmt`` shows them (``map[a:1 b:[x y]]``)."""

import json

from wharfinger.cluster.control_plane.list_types import ListTypes
from wharfinger.cluster.control_plane.validation.field_errors import html_escaped
from wharfinger.formats.json_value import JsonObject, JsonValue


def struct_order(obj: JsonObject, lists: ListTypes) -> JsonObject:
    """A new object with its members in the order of its Go type's fields, and those of maps sorted."""
    ordered = _ordered(obj, lists)
    return ordered if isinstance(ordered, dict) else {}


def _ordered(value: JsonValue, lists: ListTypes) -> JsonValue:
    if isinstance(value, list):
        return [_ordered(item, lists.item) for item in value]
    if not isinstance(value, dict):
        return value
    names = [name for name in lists.fields if name in value] if lists.closed else sorted(value)
    rest = sorted(value.keys() - set(names)) if len(names) < len(value) else []
    return {name: _ordered(value[name], lists.field(name)) for name in [*names, *rest]}


def json_text(value: JsonValue) -> str:
    """JSON as encoding/json writes it, members in their own order."""
    return html_escaped(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def map_text(value: JsonValue) -> str:
    """A value as ``%v`` shows it."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{map_text(value[name])}' for name in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(map_text, value))}]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        text = repr(value)
        return text.removesuffix(".0") if abs(value) < 1e21 and value.is_integer() and "e" not in text else text
    return str(value)
