"""The changes of a package's status as events, so that they can be recorded and stepped again.

A status is changed by one of many functions (:mod:`wharfinger.runtime.status.transitions`), and only its values before and
after are seen here. `reported` returns their difference as one event: the stages and fields that changed, and how the external
conditions followed. They are *derived* if the rules of :mod:`wharfinger.runtime.status.conditions` give them from the rest, which
is tried here; then the event does not contain them, and `step` derives them again. Otherwise the event contains them: a condition
may be kept as an earlier process reported it, or dropped at an uninstall, or have changed twice in one step.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from operator import attrgetter
from typing import Final, Protocol, cast

from wharfinger.runtime.status.conditions import tell
from wharfinger.runtime.status.package_status import Condition, PackageStatus, Stage, Told

_OTHERS: Final = tuple(each.name for each in fields(PackageStatus) if each.name not in ("stages", "told"))
_FIELDS: Final = cast("Callable[[PackageStatus], tuple[object, ...]]", attrgetter(*_OTHERS))


@dataclass(frozen=True, slots=True)
class Reported:
    """A change of a status. ``others``: the new values of fields, except the stages and the external conditions.

    The external conditions are ``told`` if that is not None; else they are derived at ``derived_at``; else they did not change.
    """

    stages: Mapping[Stage, Condition] = field(default_factory=dict)
    others: Mapping[str, object] = field(default_factory=dict)
    told: Mapping[str, Told] | None = None
    derived_at: datetime | None = None


class _Replace(Protocol):
    def __call__(self, status: PackageStatus, /, **changed: object) -> PackageStatus: ...


_replace: Final = cast("_Replace", replace)


def reported(before: PackageStatus, after: PackageStatus) -> Reported:
    """Return the event that turns one status into the other."""
    old = before.stages
    stages = {stage: new for stage, new in after.stages.items() if (was := old.get(stage)) is not new and was != new}
    was_fields, fields_now = _FIELDS(before), _FIELDS(after)
    others: dict[str, object] = {}
    if was_fields != fields_now:
        pairs = zip(_OTHERS, was_fields, fields_now, strict=True)
        others = {name: other for name, one, other in pairs if one is not other and one != other}
    if before.told is after.told or before.told == after.told:
        return Reported(stages, others)
    moment = _moment(before, after)
    if list(tell(replace(after, told=before.told), moment).items()) == list(after.told.items()):
        return Reported(stages, others, derived_at=moment)
    return Reported(stages, others, told=after.told)


def step(status: PackageStatus, event: Reported) -> PackageStatus:
    """Return the status after the event."""
    after = _replace(status, stages={**status.stages, **event.stages}, **event.others)
    if event.told is not None:
        return replace(after, told=event.told)
    return after if event.derived_at is None else replace(after, told=tell(after, event.derived_at))


def _moment(before: PackageStatus, after: PackageStatus) -> datetime:
    """Return the time of the change; any time if no external condition has another time, because it does not matter then."""
    for kind, told in after.told.items():
        earlier = before.told.get(kind)
        if earlier is None or earlier.since != told.since:
            return told.since
    return after.started
