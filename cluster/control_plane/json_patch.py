"""JSON Patch (RFC 6902) over JSON Pointers (RFC 6901). Pure; the target is never altered.

As the kube-apiserver's library: at most 10,000 operations, and ``remove`` of what is not there is an error.
"""

from typing import Final

from wharfinger.formats.json_value import JsonObject, JsonValue, ShapeError, as_object, find_str

MAX_OPERATIONS: Final = 10_000


class JsonPatchError(Exception):
    """The patch is not a list of operations, or (JsonPatchFailedError) an operation cannot be done."""


class JsonPatchFailedError(JsonPatchError):
    """An operation is none, or does not fit its target."""


def apply_json_patch(target: JsonValue, patch: JsonValue) -> JsonValue:
    """The target with every operation done in order. Raises JsonPatchError."""
    if not isinstance(patch, list):
        raise JsonPatchError("a JSON patch is a list of operations")
    if len(patch) > MAX_OPERATIONS:
        raise JsonPatchError(f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(patch)}")
    for index, item in enumerate(patch):
        try:
            target = _operate(target, as_object(item, f"operation {index}"))
        except ShapeError as error:
            raise JsonPatchFailedError(f"operation {index}: {error}") from error
    return target


def _operate(target: JsonValue, operation: JsonObject) -> JsonValue:
    name, path = find_str(operation, "op"), _pointer(operation, "path")
    match name:
        case "add":
            return _add(target, path, _value(operation))
        case "replace":
            _get(target, path)
            return _add(_remove(target, path), path, _value(operation)) if path else _value(operation)
        case "remove":
            return _remove(target, path)
        case "move":
            source = _pointer(operation, "from")
            value = _get(target, source)
            return _add(_remove(target, source), path, value)
        case "copy":
            return _add(target, path, _get(target, _pointer(operation, "from")))
        case "test":
            if not _equal(_get(target, path), _value(operation)):
                raise JsonPatchFailedError(f"testing value {find_str(operation, 'path')} failed")
            return target
        case _:
            raise JsonPatchFailedError(f"Unexpected kind: {name!r}")


def _value(operation: JsonObject) -> JsonValue:
    if "value" not in operation:
        raise JsonPatchFailedError(f"operation {operation.get('op')!r} has no value")
    return operation["value"]


def _pointer(operation: JsonObject, name: str) -> list[str]:
    text = find_str(operation, name)
    if name not in operation or (text and not text.startswith("/")):
        raise JsonPatchFailedError(f"{name}: {text!r} is no JSON pointer: it starts with /")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _equal(left: JsonValue, right: JsonValue) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(_equal(*pair) for pair in zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)
    return left == right


def _missing(path: list[str]) -> JsonPatchFailedError:
    return JsonPatchFailedError(f"path /{'/'.join(path)} does not exist")


def _position(items: list[JsonValue], step: str, path: list[str], *, end: bool) -> int:
    if step == "-" and end:
        return len(items)
    if not step.isascii() or not step.isdigit() or (len(step) > 1 and step.startswith("0")):
        raise _missing(path)
    position = int(step)
    if position > len(items) or (position == len(items) and not end):
        raise _missing(path)
    return position


def _get(target: JsonValue, path: list[str]) -> JsonValue:
    for step in path:
        if isinstance(target, dict) and step in target:
            target = target[step]
        elif isinstance(target, list):
            target = target[_position(target, step, path, end=False)]
        else:
            raise _missing(path)
    return target


def _add(target: JsonValue, path: list[str], value: JsonValue) -> JsonValue:
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(target, dict):
        if rest and step not in target:
            raise _missing(path)
        return {**target, step: _add(target.get(step), rest, value)}
    if isinstance(target, list):
        position = _position(target, step, path, end=not rest)
        if rest:
            return [*target[:position], _add(target[position], rest, value), *target[position + 1 :]]
        return [*target[:position], value, *target[position:]]
    raise _missing(path)


def _remove(target: JsonValue, path: list[str]) -> JsonValue:
    if not path:
        return None
    step, rest = path[0], path[1:]
    if isinstance(target, dict) and step in target:
        if rest:
            return {**target, step: _remove(target[step], rest)}
        return {name: value for name, value in target.items() if name != step}
    if isinstance(target, list):
        position = _position(target, step, path, end=False)
        if rest:
            return [*target[:position], _remove(target[position], rest), *target[position + 1 :]]
        return [*target[:position], *target[position + 1 :]]
    raise _missing(path)
