"""Objects as Go prints them: JSON in the order of the fields of structs, and maps as in ``fmt`` (``map[a:1 b:[x y]]``)."""

import json
from typing import Final

from wharfinger.control_plane.kinds.type_shapes import RAW, ListTypes
from wharfinger.control_plane.wire.field_errors import html_escaped
from wharfinger.control_plane.wire.go_numbers import go_float, native
from wharfinger.formats.json.value import JsonObject, JsonValue

_INT64: Final = range(-(2**63), 2**63)


def struct_order(obj: JsonObject, lists: ListTypes) -> JsonObject:
    """Return a new object with its members in the order of its Go type's fields, and with the members of maps sorted."""
    ordered = _ordered(obj, lists)
    return ordered if isinstance(ordered, dict) else {}


def _ordered(value: JsonValue, lists: ListTypes) -> JsonValue:
    if isinstance(value, list):
        return [_ordered(item, lists.item) for item in value]
    if not isinstance(value, dict) or lists is RAW:
        return value
    names = [name for name in lists.fields if name in value] if lists.closed else sorted(value)
    rest = sorted(value.keys() - set(names)) if len(names) < len(value) else []
    return {name: _ordered(value[name], lists.field(name)) for name in [*names, *rest]}


def json_text(value: JsonValue) -> str:
    """Return a value as JSON in the format of encoding/json; members keep their order."""
    return html_escaped(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def map_text(value: JsonValue) -> str:
    """Return a value as Go's ``%v`` prints it."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{map_text(value[name])}' for name in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(map_text, value))}]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    value = native(value)
    return go_float(value) if isinstance(value, float) else str(value)


def string_text(value: JsonValue) -> str:
    """Return a value as Go's ``%s`` prints it: a bool or a number has Go's error marker, such as ``%!s(bool=true)``."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{_inner_string_text(value[name])}' for name in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_inner_string_text, value))}]"
    if value is None:
        return "%!s(<nil>)"
    kind = "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) and value in _INT64 else "float64"
    return f"%!s({kind}={map_text(value)})"


def _inner_string_text(value: JsonValue) -> str:
    return "<nil>" if value is None else string_text(value)
