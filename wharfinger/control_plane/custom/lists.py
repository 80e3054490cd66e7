"""Lists that are sets or maps (``x-kubernetes-list-type``): each item, or each key, may occur only once."""

from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.control_plane.kinds.field_paths import at_step, indexed
from wharfinger.control_plane.wire.field_errors import duplicate, invalid
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, canonical_json
from wharfinger.formats.schemas.structural import parts, sorted_parts


def list_errors(schema: JsonObject, obj: JsonValue, path: str = "") -> list[FieldError]:
    """Return an error for each duplicate in the lists of a value, at any depth."""
    if isinstance(obj, list):
        return _array_errors(schema, obj, path)
    errors: list[FieldError] = []
    for step, member, node in sorted_parts(schema, obj):
        if node is not None and isinstance(member, dict | list):
            errors += list_errors(node, member, at_step(schema, path, step))
    return errors


def _array_errors(schema: JsonObject, items: list[JsonValue], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    kind = schemas.list_type(schema)
    if kind == "set":
        errors += [duplicate(indexed(path, index), items[index]) for index in _repeated(list(map(_same_as, items)))]
    elif kind == "map":
        errors += _map_errors(schemas.strings(schema, schemas.LIST_KEYS), items, path)
    for step, item, inner in parts(schema, items):
        if inner is not None and isinstance(item, dict | list):
            errors += list_errors(inner, item, at_step(schema, path, step))
    return errors


def _same_as(value: JsonValue) -> tuple[str, bytes]:
    """Return a key that equal values share. As in Go, 1 does not equal 1.0, and true is not a number."""
    return type(value).__name__, canonical_json(value)


def _repeated(keys: list[tuple[str, bytes]]) -> list[int]:
    """Return the index of the second occurrence of each key that is repeated; further occurrences are not reported."""
    seen: dict[tuple[str, bytes], int] = {}
    found = []
    for index, key in enumerate(keys):
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            found.append(index)
    return found


def _map_errors(keys: list[str], items: list[JsonValue], path: str) -> list[FieldError]:
    for index, item in enumerate(items):
        if item is not None and not isinstance(item, dict):
            return [invalid(indexed(path, index), item, "must be an object for an array of list-type map")]
    found: list[JsonValue] = []
    for item in items:
        entry = item if isinstance(item, dict) else {}
        found.append({key: entry[key] for key in sorted(keys) if key in entry})
    return [duplicate(indexed(path, index), found[index]) for index in _repeated(list(map(_same_as, found)))]
