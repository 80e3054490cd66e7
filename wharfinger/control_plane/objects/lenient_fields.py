"""Lenient access to parts of objects: a value of an unexpected type is read as absent or empty.

The decoding of requests refuses such values, so these functions need not report them.
"""

from collections.abc import Hashable, Sequence

from wharfinger.formats.json.value import JsonObject, JsonValue


def part(obj: JsonValue, *path: str) -> JsonObject | None:
    """Return the object at a path; None if it is missing."""
    for name in path:
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj if isinstance(obj, dict) else None


def list_at(obj: JsonValue, *path: str) -> list[JsonValue]:
    """Return the list at a path, with items of any type; empty if it is missing."""
    found = _at(obj, path)
    return found if isinstance(found, list) else []


def parts(obj: JsonValue, *path: str) -> list[JsonObject]:
    """Return the objects of the list at a path; an item that is not an object reads as an empty object."""
    found = _at(obj, path)
    return [item if isinstance(item, dict) else {} for item in found] if isinstance(found, list) else []


def texts(obj: JsonValue, *path: str) -> list[str]:
    """Return the strings of the list at a path; an item that is not a string reads as "", a missing list as empty."""
    found = _at(obj, path)
    return [item if isinstance(item, str) else "" for item in found] if isinstance(found, list) else []


def text_map(obj: JsonValue, *path: str) -> dict[str, str]:
    """Return the map of strings at a path; a value that is not a string reads as "", a missing map as empty."""
    found = _at(obj, path)
    return (
        {key: item if isinstance(item, str) else "" for key, item in found.items()} if isinstance(found, dict) else {}
    )


def repeated(values: Sequence[Hashable]) -> set[int]:
    """Return the positions of the values that also occur earlier in the list."""
    first = {value: index for index, value in reversed([*enumerate(values)])}
    return {index for index, value in enumerate(values) if first[value] != index}


def flag(obj: JsonValue, *path: str) -> bool:
    """Return whether the boolean at a path is true."""
    return _at(obj, path) is True


def _at(obj: JsonValue, path: tuple[str, ...]) -> JsonValue:
    for name in path:
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj
