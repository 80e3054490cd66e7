"""The validation of the fields that the subresource ``scale`` reads: two numbers from 0 to 2³¹-1, and a string (the selector)."""

from typing import Final

from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.control_plane.wire.field_errors import invalid
from wharfinger.control_plane.wire.go_numbers import native
from wharfinger.control_plane.wire.go_printing import map_text
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue

_MAX_REPLICAS: Final = 2**31 - 1
_OBJECT: Final = "map[string]interface{}"
_GO_TYPES: Final[dict[type, str]] = {
    bool: "bool", int: "int64", float: "float64", str: "string", list: "[]interface {}", dict: "map[string]interface {}",
}  # fmt: skip


def scale_errors(scale: JsonObject, obj: JsonObject, *, status_only: bool = False) -> list[FieldError]:
    """Return the errors of an object at the paths in a definition's ``scale``; with ``status_only``, the replicas in the spec
    are not checked.
    """
    errors: list[FieldError] = []
    for name in ("statusReplicasPath",) if status_only else ("specReplicasPath", "statusReplicasPath"):
        path = schemas.text(scale, name)
        count, problem = _found(obj, path, "int64")
        if problem:
            errors.append(invalid(path, 0, problem))
        elif isinstance(count, int) and count < 0:
            errors.append(invalid(path, count, "should be a non-negative integer"))
        elif isinstance(count, int) and count > _MAX_REPLICAS:
            errors.append(invalid(path, count, f"should be less than or equal to {_MAX_REPLICAS}"))
    selector = scale.get("labelSelectorPath")
    if isinstance(selector, str):
        _, problem = _found(obj, selector, "string")
        errors += [invalid(selector, "", problem)] if problem else []
    return errors


def _found(obj: JsonObject, path: str, wanted: str) -> tuple[JsonValue, str]:
    """Return the value at a path; if its type is not ``wanted``, return None and the error. An absent value is not an error."""
    steps = path.removeprefix(".").split(".")
    value: JsonValue = obj
    for index, step in enumerate(steps):
        if value is None:
            return None, ""
        if not isinstance(value, dict):
            return None, _accessor(steps[: index + 1], value, _OBJECT)
        if step not in value:
            return None, ""
        value = native(value[step])
    return (value, "") if _go_type(value) == wanted else (None, _accessor(steps, value, wanted))


def _accessor(steps: list[str], value: JsonValue, wanted: str) -> str:
    return f".{'.'.join(steps)} accessor error: {map_text(value)} is of the type {_go_type(value)}, expected {wanted}"


def _go_type(value: JsonValue) -> str:
    return "<nil>" if value is None else _GO_TYPES[type(value)]
