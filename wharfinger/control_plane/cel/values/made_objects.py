"""Objects and JSON patches that an expression constructs (``Object.spec{…}``, ``JSONPatch{…}``), as JSON."""

import base64
import math
from collections.abc import Iterator

from wharfinger.control_plane.cel.values.objects import ListView, ObjectView
from wharfinger.control_plane.cel.values.times import format_duration, format_time
from wharfinger.control_plane.cel.values.values import CelMap, Duration, MadeObject, Timestamp, Value, type_name
from wharfinger.formats.json.value import JsonObject, JsonValue


class MadeError(Exception):
    """A value that a CEL expression constructs cannot be written as JSON."""


def document_of(value: Value) -> JsonValue:
    """Return a value as JSON. Raises MadeError."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise MadeError(f"the number {value} could not marshal to JSON")
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Duration):
        return format_duration(value.nanoseconds)
    if isinstance(value, Timestamp):
        return format_time(value.nanoseconds)
    if isinstance(value, list | ListView):
        return [document_of(item) for item in value]
    if isinstance(value, CelMap | ObjectView):
        return _members(value)
    raise MadeError(f"a value of type {type_name(value)} could not marshal to JSON")


def _members(value: CelMap | ObjectView) -> JsonObject:
    found: JsonObject = {}
    for key in value.keys():  # noqa: SIM118 - a map of an expression, which has no iterator
        if not isinstance(key, str):
            raise MadeError(f"map key {key} is of type {type_name(key)}, not string")
        found[key] = document_of(value.find(key)[1])
    return found


def misnamed(value: MadeObject) -> str:
    """Return the errors of objects whose type name does not match the path of their field; "" if there are none."""
    return "\n".join(_misnamed(value, value.made_type))


def _misnamed(value: Value, path: str) -> Iterator[str]:
    if isinstance(value, MadeObject):
        if value.made_type != path:
            names = f'unexpected type name "{value.made_type}", expected "{path}"'
            yield f"{names}, which matches field name path from root Object type"
        for name in value.keys():  # noqa: SIM118 - a map of an expression, which has no iterator
            yield from _misnamed(value.find(name)[1], f"{path}.{name}")
    elif isinstance(value, CelMap):
        for name in value.keys():  # noqa: SIM118 - a map of an expression, which has no iterator
            yield from _misnamed(value.find(name)[1], path)
    elif isinstance(value, list):
        for item in value:
            yield from _misnamed(item, path)
