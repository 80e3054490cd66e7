"""Snapshots that are encoded field by field: a frozen dataclass becomes a JSON object with the names of its fields as keys.

The keys of a few fields differ (``_KEYS``). A field that has its default value is left out, and a missing field is read as its
default value. A field without a default is always present. Times are strings in RFC 3339, tuples are lists, and nested records
are objects. Readers ignore unknown keys.
"""

import types
from collections.abc import Container, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar, cast, get_args, get_origin, get_type_hints

import msgspec

from wharfinger.debug.fields import read_time
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, as_object, find_list
from wharfinger.kube.times import format_exact_time

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

R = TypeVar("R", bound="DataclassInstance")
R_co = TypeVar("R_co", covariant=True)

_KEYS: Final = {
    "last_transition": "lastTransitionTime",
    "enqueued_s_ago": "enqueued_seconds",
    "retry_in_s": "next_retry_seconds",
}
"""The JSON keys of the fields that have another name in JSON than in Python."""
_NOTHING: Final[Mapping[str, object]] = {}


class _Constructor(Protocol[R_co]):
    def __call__(self, **given: object) -> R_co: ...


class _Field(NamedTuple):
    """One field of a record; ``default`` is MISSING if the field has no default."""

    name: str
    key: str
    hint: object
    default: object


def record_to_json(record: "DataclassInstance", *, without: Container[str] = ()) -> JsonObject:
    """Return a record as JSON; the fields named in ``without`` are left out."""
    found = ((each, getattr(record, each.name)) for each in record_fields(type(record)) if each.name not in without)
    return {each.key: _plain(value) for each, value in found if each.default is MISSING or value != each.default}


def record_from_json(value: JsonValue, kind: type[R], what: str, given: Mapping[str, object] = _NOTHING) -> R:
    """Read a record; ``given`` are fields that have been read already. Raises ShapeError, which names the key."""
    obj, found = as_object(value, what), dict(given)
    for each in record_fields(kind):
        if each.name in found:
            continue
        if obj.get(each.key) is not None:
            found[each.name] = _read(obj[each.key], each.hint, each.key)
        elif each.default is MISSING:
            raise ShapeError(f"{what}: {each.key}: required")
    return cast("_Constructor[R]", kind)(**found)


@cache
def record_fields(kind: "type[DataclassInstance]") -> tuple[_Field, ...]:
    hints = get_type_hints(kind, localns={"JsonValue": object})  # the content of JSON objects is not read as a record
    return tuple(
        _Field(each.name, _KEYS.get(each.name, each.name), hints[each.name], each.default) for each in fields(kind)
    )


def _plain(value: object) -> JsonValue:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, datetime):
        return format_exact_time(value)
    if is_dataclass(value) and not isinstance(value, type):
        return record_to_json(value)
    return cast("JsonValue", value)


def _read(value: JsonValue, hint: object, key: str) -> object:
    arguments = get_args(hint)
    if get_origin(hint) is tuple:
        return tuple(_read(item, arguments[0], key) for item in find_list({key: value}, key))
    if get_origin(hint) is types.UnionType:  # `X | None`; a value of None was left out
        return _read(value, arguments[0], key)
    if hint is datetime:
        return read_time({key: value}, key)
    if isinstance(hint, type) and is_dataclass(hint):
        return record_from_json(value, hint, key)
    try:
        return msgspec.convert(value, hint)
    except msgspec.ValidationError as error:
        raise ShapeError(f"{key}: {error}") from error
