"""Small hands for defaults: each works in place, and only adds what is missing."""

from wharfinger.formats.json.value import JsonObject, JsonValue, find


def inner(obj: JsonObject, name: str) -> JsonObject:
    """The member as an object, put in where it is missing."""
    found = obj.get(name)
    if not isinstance(found, dict):
        found = {}
        obj[name] = found
    return found


def objects(obj: JsonObject, *path: str) -> list[JsonObject]:
    """The objects in the list at the path; [] where there is none."""
    found = find(obj, *path)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def fill(obj: JsonObject, **values: JsonValue) -> None:
    """Put in what is missing or an empty string."""
    for name, value in values.items():
        if obj.get(name) in (None, ""):
            obj[name] = value


def fill_absent(obj: JsonObject, **values: JsonValue) -> None:
    """Put in what is missing; an empty string is not, as in Go's pointers."""
    for name, value in values.items():
        if obj.get(name) is None:
            obj[name] = value
