"""Helpers for defaults: readers of nested values, and setters that modify the object in place and only add missing values."""

from wharfinger.formats.json.value import JsonObject, JsonValue, find


def inner(obj: JsonObject, name: str) -> JsonObject:
    """Return a member as an object; if it is missing or not an object, set it to an empty object."""
    found = obj.get(name)
    if not isinstance(found, dict):
        found = {}
        obj[name] = found
    return found


def objects(obj: JsonValue, *path: str) -> list[JsonObject]:
    """Return the objects in the list at a path, without items of other types; [] if there is no list."""
    found = find(obj, *path)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def fill(obj: JsonObject, **values: JsonValue) -> None:
    """Set the fields that are missing, null or an empty string."""
    for name, value in values.items():
        if obj.get(name) in (None, ""):
            obj[name] = value


def fill_absent(obj: JsonObject, **values: JsonValue) -> None:
    """Set the fields that are missing or null; an empty string is kept, as in a pointer field of a Go struct."""
    for name, value in values.items():
        if obj.get(name) is None:
            obj[name] = value
