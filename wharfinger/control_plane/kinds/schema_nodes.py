"""Accessors for one node of a schema (``JSONSchemaProps``).

A value of the wrong type is read as absent, without an error: request decoding has already rejected such values.
"""

from collections.abc import Callable, Iterator
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, strings_of

VALIDATIONS: Final = "x-kubernetes-validations"
PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
LIST_TYPE: Final = "x-kubernetes-list-type"
LIST_KEYS: Final = "x-kubernetes-list-map-keys"
MAP_TYPE: Final = "x-kubernetes-map-type"
BRANCHES: Final = ("allOf", "oneOf", "anyOf")
MAPS: Final = ("properties", "patternProperties", "definitions")


def text(schema: JsonObject, name: str) -> str:
    """Return the string in a field of a schema, "" if it is missing."""
    found = schema.get(name)
    return found if isinstance(found, str) else ""


def flag(schema: JsonObject, name: str) -> bool:
    """Return the boolean in a field of a schema, False if it is missing."""
    return schema.get(name) is True


def whole(schema: JsonObject, name: str) -> int | None:
    """Return the integer in a field of a schema, such as ``maxLength``; None if it is missing."""
    found = schema.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def number(schema: JsonObject, name: str) -> float | None:
    """Return a number such as ``maximum``, which Go keeps as a float64."""
    found = schema.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    try:
        return float(found)
    except OverflowError:
        return None


def strings(schema: JsonObject, name: str) -> list[str]:
    """Return a list of strings such as ``required``."""
    found = schema.get(name)
    return strings_of(found)


def values(schema: JsonObject, name: str) -> list[JsonValue]:
    """Return a list of arbitrary values, such as ``enum``."""
    found = schema.get(name)
    return found if isinstance(found, list) else []


def child(schema: JsonObject, name: str) -> JsonObject | None:
    """Return the schema in a field such as ``not``, or None if it is missing."""
    found = schema.get(name)
    return found if isinstance(found, dict) else None


def children(schema: JsonObject, name: str) -> dict[str, JsonObject]:
    """Return the schemas in a map such as ``properties``, sorted by name (a map in Go has no order of its own)."""
    found = schema.get(name)
    if not isinstance(found, dict):
        return {}
    return {key: node for key, node in sorted(found.items()) if isinstance(node, dict)}


def properties(schema: JsonObject | None) -> dict[str, JsonObject]:
    """Return the schemas in ``properties`` by name."""
    return {} if schema is None else children(schema, "properties")


def branches(schema: JsonObject, name: str) -> list[JsonObject]:
    """Return the schemas in a list of ``schema``; ``name`` is the name of the list, such as ``anyOf``."""
    return [node for node in values(schema, name) if isinstance(node, dict)]


def items(schema: JsonObject) -> JsonObject | None:
    """Return the schema of all items of a list."""
    return child(schema, "items")


def additional(schema: JsonObject) -> JsonObject | None:
    """Return the schema in ``additionalProperties``, if the keyword has a schema and not a boolean."""
    return child(schema, "additionalProperties")


def has_additional(schema: JsonObject) -> bool:
    """Return whether ``additionalProperties`` is given at all."""
    return isinstance(schema.get("additionalProperties"), dict | bool)


def rules(schema: JsonObject) -> list[JsonObject]:
    """Return the rules in CEL."""
    return branches(schema, VALIDATIONS)


def list_type(schema: JsonObject) -> str:
    """Return the list type: ``atomic``, ``set``, ``map``, or "" for none."""
    return text(schema, LIST_TYPE)


def walked(schema: JsonObject) -> Iterator[JsonObject]:
    """Yield a schema and all schemas in it."""
    yield schema
    nested = items(schema)
    listed = [node for name in BRANCHES for node in branches(schema, name)] + branches(schema, "items")
    singles = [nested, child(schema, "not"), additional(schema), child(schema, "additionalItems")]
    mapped = [node for name in (*MAPS, "dependencies") for node in children(schema, name).values()]
    for node in [*listed, *(single for single in singles if single is not None), *mapped]:
        yield from walked(node)


def has(schema: JsonObject, wanted: Callable[[JsonObject], bool]) -> bool:
    """Return whether a schema, or any schema in it, satisfies ``wanted``."""
    return any(wanted(node) for node in walked(schema))
