"""The removal of fields that the schema of a kind does not declare (field validation, KEP-2885; pruning of custom resources).

The declared fields come from the kind's :class:`ListTypes`, so built-in and custom kinds are treated in the same way. Inside a
custom resource, an object whose schema declares no properties keeps all of its fields.
"""

from wharfinger.control_plane.kinds.field_paths import indexed, joined
from wharfinger.control_plane.kinds.type_shapes import ListTypes
from wharfinger.formats.json.value import JsonObject, JsonValue


def prune(obj: JsonObject, lists: ListTypes) -> tuple[JsonObject, tuple[str, ...]]:
    """Return the object without undeclared fields, and the paths of these fields (``spec.containers[0].imge``), sorted.

    The object is not changed. If there are no undeclared fields, the result is the object itself.
    """
    if _is_declared(obj, lists):  # the usual case
        return obj, ()
    unknown: list[str] = []
    return _members(obj, lists, "", unknown), tuple(sorted(unknown))


def _is_declared(value: JsonValue, lists: ListTypes) -> bool:
    """Return whether everything at and below a value is declared."""
    if isinstance(value, dict):
        return all(
            lists.declares(name) and (not isinstance(inner, dict | list) or _is_declared(inner, lists.field(name)))
            for name, inner in value.items()
        )
    return not isinstance(value, list) or all(
        _is_declared(item, lists.item) for item in value if isinstance(item, dict | list)
    )


def _value(value: JsonValue, lists: ListTypes, path: str, unknown: list[str]) -> JsonValue:
    if isinstance(value, dict):
        return _members(value, lists, path, unknown)
    if isinstance(value, list):
        return [_value(item, lists.item, indexed(path, index), unknown) for index, item in enumerate(value)]
    return value


def _members(obj: JsonObject, lists: ListTypes, path: str, unknown: list[str]) -> JsonObject:
    kept: JsonObject = {}
    for name, value in obj.items():
        here = joined(path, name)
        if lists.declares(name):
            kept[name] = _value(value, lists.field(name), here, unknown)
        else:
            unknown.append(here)
    return kept
