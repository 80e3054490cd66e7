"""Package statuses for tests, and their *external conditions*: the conditions that the resource of the package shows."""

from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from wharfinger.formats.json.value import find, find_list
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.package_status import PackageStatus, Phase, Stage

T0 = datetime(2026, 1, 1, tzinfo=UTC)
T1 = T0 + timedelta(minutes=1)
T2 = T0 + timedelta(minutes=2)


def ready(now: datetime = T0) -> PackageStatus:
    """Return the status of version 1.0.0, installed without problems, at generation 1."""
    status = statuses.update_started(statuses.fresh(1, now), 1, now, version="1.0.0")
    for stage in list(Stage)[:-1]:
        status = statuses.succeeded(status, stage, now)
    status = statuses.released(statuses.placed(status, "prod"), "1.0.0", "sha256:aa", 1)
    return statuses.succeeded(status, Stage.SCALED, now)


def before(stage: Stage, phase: Phase) -> PackageStatus:
    """Return a status at generation 2 in which the stages before ``stage`` are done, and ``stage`` itself is not.

    If the phase is RECONCILE, ``stage`` is not used: all stages are done, and the installed version is the wanted one.
    """
    if phase is Phase.RECONCILE:
        return replace(ready(), generation=2)
    status = ready() if phase is Phase.UPDATE else statuses.fresh(1, T0)
    status = statuses.update_started(status, 2, T1, version="2.0.0")
    for earlier in Stage:
        if earlier is stage:
            break
        status = statuses.succeeded(status, earlier, T1)
    return status


def conditions(status: PackageStatus) -> dict[str, tuple[str, str]]:
    """Return the status and the reason of each external condition."""
    return {
        str(find(entry, "type")): (str(find(entry, "status")), str(find(entry, "reason")))
        for entry in find_list(statuses.external(status), "conditions")
    }


def times(status: PackageStatus) -> dict[str, str]:
    """Return the transition time of each external condition."""
    return {
        str(find(entry, "type")): str(find(entry, "lastTransitionTime"))
        for entry in find_list(statuses.external(status), "conditions")
    }
