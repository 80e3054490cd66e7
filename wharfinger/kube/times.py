"""Times in RFC 3339 and UTC, as Kubernetes and Helm write them, and ages as kubectl shows them."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from wharfinger.formats.json.value import JsonValue, find, find_str

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

_ZONE_CHARS: Final = 255
"""The largest length of a zone's name. All names in the tz database are shorter, and the lookup of a longer name may
exceed Python's recursion limit.
"""


def format_time(moment: datetime) -> str:
    """Return a time in whole seconds, as ``metav1.Time``: ``2026-11-21T04:03:00Z``."""
    return _formatted(moment.astimezone(UTC).replace(microsecond=0))


@lru_cache(maxsize=16)
def _formatted(second: datetime) -> str:
    """Return the text of a time in whole seconds; it is cached, because many calls fall into one second."""
    return second.strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(moment: datetime) -> str:
    """Return a time in microseconds, as ``metav1.MicroTime``: ``2026-11-21T04:03:00.000000Z``."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def format_exact_time(moment: datetime) -> str:
    """Return a time as Helm writes it, but a fraction that is not 0 has six digits: ``2026-11-21T04:03:00.250000Z``."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def parse_time(text: str) -> datetime | None:
    """Return a time, cut to microseconds (Go writes nine digits); None for a text that is not a time with a zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def zone_of(name: str) -> "ZoneInfo | None":
    """Return the zone of that name in the tz database, or None if it is unknown."""
    if not 0 < len(name) <= _ZONE_CHARS:
        return None
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415 - a client of the daemon starts without it

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def human_duration(span: timedelta) -> str:
    """Return a text like ``17s``, ``4m12s`` or ``3d``: one unit, or two if the larger number is small.

    Source: apimachinery's HumanDuration.
    """
    seconds = int(span.total_seconds())
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _two_units(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two_units(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two_units(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 8 * 365:
        return _two_units(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two_units(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def age(text: str, now: datetime) -> str:
    """Return the age of a timestamp as shown in a table, ``<unknown>`` without a timestamp."""
    moment = parse_time(text) if text else None
    return "<unknown>" if moment is None else human_duration(now - moment)


def transition_time(conditions: Iterable[JsonValue], kind: str, status: str, now: str) -> str:
    """Return the ``lastTransitionTime`` for a condition that gets ``status``: the old time if it has this status already, else
    ``now``.
    """
    before = next((one for one in conditions if find(one, "type") == kind), None)
    since = find_str(before, "lastTransitionTime") if find(before, "status") == status else ""
    return since or now
