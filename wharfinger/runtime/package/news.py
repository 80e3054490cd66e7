"""The recognition of events that are no news: they would neither change the package nor have effects.

Tasks and the release engine report facts even if they are already known: a run of an unchanged package repeats a dozen
reports. `is_news` recognizes the frequent repetitions without a step of the state machine, so that they are neither processed
nor recorded. It may return True for an event that changes nothing, but never returns False for an event that changes
something. Pure.
"""

from typing import assert_never

from wharfinger.runtime.lifecycle.desired_state import DecisionKind
from wharfinger.runtime.package.events import (
    DesiredAdopted,
    DriftReported,
    Event,
    HealthSeen,
    Placed,
    Reachable,
    Released,
    Tracked,
    Troubled,
    WarnedOf,
)
from wharfinger.runtime.package.findings import ObjectsKnown, OverridesMatched, ValuesRead, Verified
from wharfinger.runtime.package.reports import DRIFT, UPKEEP
from wharfinger.runtime.package.state import Package
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.status.reasons import Reason


def is_news(package: Package, event: Event) -> bool:
    """Return whether the event may change the package or have effects."""
    match event:
        case WarnedOf(subject, warnings):
            return package.warnings.get(subject, ()) != warnings
        case OverridesMatched(unmatched):
            return package.applied.unmatched != unmatched
        case ObjectsKnown(objects):
            return package.applied.objects != objects
        case ValuesRead():
            return package.applied.dirty
        case Verified():
            return not package.applied.verified
        case DesiredAdopted():
            return not _is_adopted(package, event)
        case Placed() | Released() | Reachable() | Tracked():
            return _is_shown_anew(package, event)
        case HealthSeen() | DriftReported() | Troubled():
            return _is_found_anew(package, event)
        case _:
            return True


def _is_shown_anew(package: Package, event: Placed | Released | Reachable | Tracked) -> bool:
    status, manifest = package.status, package.files.manifest
    match event:
        case Placed():
            return status.namespace != package.id.namespace
        case Released(revision):
            digest = manifest.descriptor.digest.text if manifest is not None else ""
            return (status.version, status.digest, status.revision) != (package.desired.version, digest, revision)
        case Reachable(urls):
            return status.urls != urls
        case Tracked():
            return status.progress is not None or bool(event.remaining)
        case _:
            assert_never(event)


def _is_found_anew(package: Package, event: HealthSeen | DriftReported | Troubled) -> bool:
    status, applied, warnings = package.status, package.applied, package.warnings
    match event:
        case HealthSeen():
            return status.scale_checked or event.any_stalled
        case DriftReported(drift, fought):
            fights = status.stages[Stage.APPLIED].reason == Reason.DRIFT_FOUGHT
            return bool(drift or fought or applied.drift or applied.fought or warnings.get(DRIFT) or fights)
        case Troubled(texts):
            return bool(texts or warnings.get(UPKEEP))
        case _:
            assert_never(event)


def _is_adopted(package: Package, event: DesiredAdopted) -> bool:
    """Return whether the package already has exactly the desired state of the event."""
    given, desired, status = event.given, package.desired, package.status
    directives = given.directives
    if event.decision.kind is not DecisionKind.NONE or event.new_login or event.needs_changed or given.first:
        return False
    if status.blocked is not None or status.generation != event.generation or desired.account is not None:
        return False
    maintenance = status.maintenance.reason if status.maintenance is not None else ""
    shown = (maintenance, status.rollback, desired.attempt.asked)
    return shown == (directives.maintenance, directives.rolled_back, directives.asked) and (
        desired.package,
        desired.version,
        desired.source,
        desired.settings,
        desired.directives,
    ) == (given.package, given.version, given.source, given.settings, directives)
