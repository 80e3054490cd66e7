"""Conditions of a status: one per type, with the time of its last transition."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list
from wharfinger.kube.times import format_time


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition to set; ``status`` is ``True``, ``False`` or ``Unknown``. An empty reason or message is left out."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


def conditions(
    obj: JsonObject, new: Sequence[Condition], now: datetime, *, updated: str = "", probed: bool = False
) -> list[JsonValue]:
    """Return ``status.conditions`` with the ``new`` conditions; other conditions are kept, and unchanged ones keep their times.

    ``updated`` is the name of the field with the time of the last change of status, reason or message (``lastUpdateTime``), ""
    if the kind has no such field. ``probed`` adds ``lastProbeTime`` (Jobs).
    """
    types = {condition.type for condition in new}
    before = {
        str(find(entry, "type")): entry for entry in find_list(obj, "status", "conditions") if isinstance(entry, dict)
    }
    others: list[JsonValue] = [entry for kind, entry in before.items() if kind not in types]
    made = [
        _entry(condition, before.get(condition.type), format_time(now), updated, probed=probed) for condition in new
    ]
    return others + made


def _entry(condition: Condition, old: JsonObject | None, time: str, updated: str, *, probed: bool) -> JsonObject:
    texts: JsonObject = {"type": condition.type, "status": condition.status}
    if condition.reason:
        texts["reason"] = condition.reason
    if condition.message:
        texts["message"] = condition.message
    if old is not None and all(old.get(name) == texts.get(name) for name in ("status", "reason", "message")):
        return old
    same_status = old is not None and old.get("status") == condition.status
    since = old.get("lastTransitionTime") if old is not None and same_status else time
    times: JsonObject = {"lastTransitionTime": since}
    if updated:
        times[updated] = time
    if probed:
        times["lastProbeTime"] = time
    return texts | times
