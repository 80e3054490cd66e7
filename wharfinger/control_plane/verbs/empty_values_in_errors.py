"""Empty lists, maps and strings in the errors of a refused object: errors show them as they were sent (``[]``, not null).

Empty values that Go does not print are already omitted when a body is decoded
(:mod:`~wharfinger.control_plane.kinds.typed_form`). If an object is refused, its errors are computed again, with its empty
values restored. The errors of the second computation differ from the first errors only in the values that they show.
"""

from collections.abc import Callable

from wharfinger.control_plane.kinds.type_shapes import UNKNOWN, ListTypes
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue


def as_sent(
    errors: list[FieldError],
    obj: JsonObject,
    sent: JsonObject,
    find_errors: Callable[[JsonObject], list[FieldError]],
    lists: ListTypes = UNKNOWN,
) -> list[FieldError]:
    """Return ``errors`` with empty values shown as they were sent (``[]``, not null). ``find_errors`` computes the errors of an
    object again.
    """
    whole = with_empties(obj, sent, lists)
    if whole is obj:
        return errors
    again: dict[tuple[str, str], list[FieldError]] = {}
    for error in reversed(find_errors(whole)):
        again.setdefault((error.field, error.reason), []).append(error)
    return [found.pop() if (found := again.get((error.field, error.reason))) else error for error in errors]


def with_empties(obj: JsonObject, sent: JsonObject, lists: ListTypes = UNKNOWN) -> JsonObject:
    """Return the object with the empty values that were sent; the same object if there are no such values.

    An empty struct that the object lacks is not restored. Go prints empty structs, so this one was not omitted because it is
    empty.
    """
    changed: JsonObject = {}
    for name, value in sent.items():
        if not isinstance(value, dict | list | str):
            continue
        types = lists.field(name)
        if not value:
            changed |= {} if obj.get(name) is not None or types.closed else {name: value}
        elif not isinstance(value, str) and (inner := _inner(obj.get(name), value, types)) is not obj.get(name):
            changed[name] = inner
    return {**obj, **changed} if changed else obj


def _inner(value: JsonValue, sent: JsonValue, lists: ListTypes) -> JsonValue:
    if isinstance(value, dict) and isinstance(sent, dict):
        return with_empties(value, sent, lists)
    if not isinstance(value, list) or not isinstance(sent, list):
        return value
    pairs = zip(value, sent, strict=False)
    # Items that admission added are at the end, and were not sent.
    items = [*(_inner(item, was, lists.item) for item, was in pairs), *value[len(sent) :]]
    return value if all(new is old for new, old in zip(items, value, strict=True)) else items
