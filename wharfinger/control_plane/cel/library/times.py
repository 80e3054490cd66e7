"""Functions that return parts of timestamps and durations."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final

from wharfinger.control_plane.cel.values.times import SECOND
from wharfinger.control_plane.cel.values.values import CelError, Duration, Implementation, Timestamp, Value
from wharfinger.kube.times import zone_of

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY: Final = timedelta(days=1)
_NUMBER: Final = re.compile("[0-9]{1,5}")


def _zone(name: str) -> tzinfo:
    text = name.removeprefix("-") if name.startswith("-") else name.removeprefix("+")
    hours, colon, minutes = text.partition(":")
    if colon and _NUMBER.fullmatch(hours) and _NUMBER.fullmatch(minutes):
        offset = timedelta(hours=int(hours), minutes=int(minutes))
        if offset < _DAY:
            return timezone(-offset if name.startswith("-") else offset)
    zone = zone_of(name)
    if zone is None:
        raise CelError(f"unknown time zone {name}")
    return zone


def _moment(value: Value, zone: Value) -> datetime:
    if not isinstance(value, Timestamp) or not isinstance(zone, str):
        raise CelError("no such overload")
    moment = _EPOCH + timedelta(seconds=value.nanoseconds // SECOND)
    return moment.astimezone(_zone(zone)) if zone else moment


def _part(read: Callable[[datetime], int], nanoseconds: int = 0) -> Implementation:
    """Return a CEL function that returns a part of a timestamp.

    If ``nanoseconds`` is not 0, the function also accepts a duration, and returns the number of units of this length in the
    duration.
    """

    def part(value: Value, zone: Value = "") -> Value:
        if isinstance(value, Duration) and nanoseconds:
            count = abs(value.nanoseconds) // nanoseconds
            return -count if value.nanoseconds < 0 else count
        return read(_moment(value, zone))

    return part


def _milliseconds(value: Value, zone: Value = "") -> Value:
    if isinstance(value, Duration):
        return abs(value.nanoseconds) // 1_000_000 * (-1 if value.nanoseconds < 0 else 1)
    _moment(value, zone)
    return value.nanoseconds % SECOND // 1_000_000 if isinstance(value, Timestamp) else 0


TIMES: Final[Mapping[str, Implementation]] = {
    "getFullYear": _part(lambda moment: moment.year),
    "getMonth": _part(lambda moment: moment.month - 1),
    "getDayOfYear": _part(lambda moment: moment.timetuple().tm_yday - 1),
    "getDate": _part(lambda moment: moment.day),
    "getDayOfMonth": _part(lambda moment: moment.day - 1),
    "getDayOfWeek": _part(lambda moment: moment.isoweekday() % 7),
    "getHours": _part(lambda moment: moment.hour, 3600 * SECOND),
    "getMinutes": _part(lambda moment: moment.minute, 60 * SECOND),
    "getSeconds": _part(lambda moment: moment.second, SECOND),
    "getMilliseconds": _milliseconds,
}
