"""The lookup of fields, keys and items in values."""

from wharfinger.control_plane.cel.values import operations
from wharfinger.control_plane.cel.values.objects import ListView, ObjectView
from wharfinger.control_plane.cel.values.values import NONE, CelError, CelMap, Optional, Value, type_name


def selected(value: Value, field: str) -> Value:
    """Return ``value.field``. Raises CelError."""
    if isinstance(value, Optional):
        return found(value.value, field) if value.present else NONE
    if isinstance(value, ObjectView | CelMap):
        there, held = value.find(field)
        if not there:
            raise CelError(f"no such key: {field}")
        return held
    raise _missing(value, field)


def has(value: Value, field: str) -> bool:
    """Return ``has(value.field)``. Raises CelError."""
    if isinstance(value, Optional):
        return value.present and has(value.value, field)
    if isinstance(value, ObjectView | CelMap):
        return value.find(field)[0]
    if isinstance(value, list | ListView):
        raise _missing(value, field)
    return False


def found(value: Value, key: Value) -> Value:
    """Return the value at a key or an index as an optional."""
    if isinstance(value, ObjectView | CelMap):
        there, held = value.find(key)
        return Optional(present=True, value=held) if there else NONE
    if isinstance(value, list | ListView) and isinstance(key, int) and not isinstance(key, bool):
        return Optional(present=True, value=operations.element(value, key)) if 0 <= key < len(value) else NONE
    if isinstance(value, list | ListView):
        raise CelError(operations.NO_OVERLOAD)
    return NONE


def _missing(value: Value, field: str) -> CelError:
    """Return the error for reading a field of a value that has no fields, such as a list."""
    if isinstance(value, list | ListView):
        return CelError("unsupported index type 'string' in list")
    return CelError(f"no such key: {field}")


def ranged(value: Value, *, pairs: bool) -> list[tuple[Value, ...]]:
    """Return the values of the loop variables in each pass of a loop over a list or a map.

    With one variable, this is the item of the list or the key of the map. With two (``pairs``), it is the index and the item,
    or the key and its value.
    """
    if isinstance(value, list | ListView):
        return list(enumerate(value)) if pairs else [(item,) for item in value]
    if isinstance(value, ObjectView | CelMap):
        keys = list(value.keys())
        return [(key, value.find(key)[1]) for key in keys] if pairs else [(key,) for key in keys]
    raise CelError(f"got '{type_name(value)}', expected iterable type")
