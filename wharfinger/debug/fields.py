"""The fields of encoded snapshots that JSON has no type for (times, readable durations), and checks of field types.

Pure. Readers raise ShapeError naming the field.
"""

from datetime import UTC, datetime

from wharfinger.formats.json.value import JsonValue, ShapeError, find, find_list, need_str, type_name
from wharfinger.kube.times import parse_time


def duration(seconds: float) -> str:
    """Format seconds for people: ``250ms``, ``12.3s``, ``4m05s``, ``3h02m``, ``2d07h``; a negative duration has a minus."""
    if seconds < 0:
        return "-" + duration(-seconds)
    if seconds < 0.9995:
        return f"{round(seconds * 1000)}ms"
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02}h"


def read_time(value: JsonValue, key: str) -> datetime:
    """Return the time that ``value`` has under ``key``, in UTC."""
    text = need_str(value, key)
    moment = parse_time(text)
    if moment is None:
        raise ShapeError(f"{key}: expected a time with a time zone, found {text!r}")
    return moment.astimezone(UTC)


def find_texts(value: JsonValue, *path: str) -> tuple[str, ...]:
    """Return the list of strings at ``path``; empty if it is missing."""
    return tuple(_text(item, path[-1]) for item in find_list(value, *path))


def read_flag(value: JsonValue, key: str) -> bool:
    """Return the boolean under ``key``, which must be present."""
    found = find(value, key)
    if not isinstance(found, bool):
        raise ShapeError(f"{key}: expected a boolean, found {type_name(found)}")
    return found


def _text(value: JsonValue, what: str) -> str:
    if not isinstance(value, str):
        raise ShapeError(f"{what}: expected a string, found {type_name(value)}")
    return value
