"""The validation of lists in schemas: their list types and keys, and the items of lists of the types set and map."""

from typing import Final

from wharfinger.control_plane.api.apiextensions.form import shown_schema
from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.control_plane.objects.lenient_fields import repeated
from wharfinger.control_plane.wire.field_errors import forbidden, invalid, not_supported, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue

_TYPES: Final = ("atomic", "set", "map")


def list_errors(schema: JsonObject, path: str, *, check_sets: bool) -> list[FieldError]:
    """Return the errors of the list type and the map keys of a list; with ``check_sets``, also of the items of a set."""
    errors: list[FieldError] = []
    said, kind, keys = (
        schema.get(schemas.LIST_TYPE),
        schemas.text(schema, "type"),
        schemas.strings(schema, schemas.LIST_KEYS),
    )
    if said is not None and kind != "array":
        why = "must be array if x-kubernetes-list-type is specified"
        errors.append(invalid(f"{path}.type", kind, why) if kind else required(f"{path}.type", why))
    elif said == "set" and check_sets:
        errors += set_item_errors(schema, path)
    if said is not None and said not in _TYPES:
        errors.append(not_supported(f"{path}.{schemas.LIST_TYPE}", said, _TYPES))
    if keys and said != "map":
        why, field = "must be map if x-kubernetes-list-map-keys is non-empty", f"{path}.{schemas.LIST_TYPE}"
        errors.append(required(field, why) if said is None else invalid(field, said, why))
    return errors + (_map_errors(schema, path, keys) if said == "map" else [])


def set_item_errors(schema: JsonObject, path: str) -> list[FieldError]:
    """Return the errors in the schema of a set's items: items that are objects or lists must be atomic, because a set compares
    each item as a whole.
    """
    items = schemas.items(schema) or {}
    why = "must be atomic as item of a list with x-kubernetes-list-type=set"
    said = items.get(schemas.LIST_TYPE)
    match schemas.text(items, "type"):
        case "array" if said not in (None, "atomic"):
            return [invalid(f"{path}.items.{schemas.LIST_TYPE}", said, why)]
        case "object" if items.get(schemas.MAP_TYPE) != "atomic":
            return [invalid(f"{path}.items.{schemas.MAP_TYPE}", said, why)]
    return []


def _map_errors(schema: JsonObject, path: str, keys: list[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    if not keys:
        why = "must not be empty if x-kubernetes-list-type is map"
        errors.append(required(f"{path}.{schemas.LIST_KEYS}", why))
    items = schemas.items(schema)
    if items is None:
        return errors + _no_items(schema, path)
    kind = schemas.text(items, "type")
    if kind != "object":
        why = "must be object if parent array's x-kubernetes-list-type is map"
        return [*errors, invalid(f"{path}.items.type", kind, why)]
    declared = schemas.properties(items)
    shown: list[JsonValue] = [*keys]
    twice = repeated(keys)
    for index, key in enumerate(keys):
        if key not in declared:
            why = "entries must all be names of item properties"
            errors.append(invalid(f"{path}.{schemas.LIST_KEYS}", shown, why))
        elif schemas.text(declared[key], "type") in {"array", "object"}:
            why = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            errors.append(invalid(f"{path}.items.properties[{key}].type", kind, why))
        if index in twice:
            errors.append(invalid(f"{path}.{schemas.LIST_KEYS}", shown, "must not contain duplicate entries"))
    return errors


def _no_items(schema: JsonObject, path: str) -> list[FieldError]:
    listed = schemas.branches(schema, "items")
    if not listed:
        return [required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")]
    shown: JsonObject = {"Schema": None, "JSONSchemas": [shown_schema(node) for node in listed]}
    return [invalid(f"{path}.items", shown, "must only have a single schema if x-kubernetes-list-type is map")]


def key_errors(schema: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of items of sets and maps: items cannot be null, and every item of a map must have the map's keys."""
    said, items = schemas.list_type(schema), schemas.items(schema)
    if items is None or said not in {"set", "map"}:
        return []
    errors: list[FieldError] = []
    if schemas.flag(items, "nullable"):
        errors.append(forbidden(f"{path}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {said}"))
    needed, declared = schemas.strings(items, "required"), schemas.properties(items)
    for key in schemas.strings(schema, schemas.LIST_KEYS) if said == "map" else ():
        if key not in declared:
            continue
        place = f"{path}.items.properties[{key}]"
        why = "this property is in x-kubernetes-list-map-keys, so it "
        if key not in needed and declared[key].get("default") is None:
            errors.append(required(f"{place}.default", why + "must have a default or be a required property"))
        if schemas.flag(declared[key], "nullable"):
            errors.append(forbidden(f"{place}.nullable", why + "cannot be nullable"))
    return errors
