"""Snapshots of the objects of a package's release."""

from typing import assert_never

from wharfinger.cluster.objects.desired import identity_of
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.releases.object_states import ObjectState
from wharfinger.cluster.watch.readiness import Current, Failed, InProgress, Readiness
from wharfinger.formats.listing import listed
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.core.runtime import Runtime
from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.package_details import ResourceSnapshot
from wharfinger.runtime.resources.identity import has_release

NOT_WATCHED = "not watched: the last operation on its release has not succeeded"
_SHOWN = 5


def resource_snapshots(runtime: Runtime, instance: Instance) -> tuple[ResourceSnapshot, ...]:
    """Return the objects of a package's release: the watched objects, and the objects of the last apply that are not watched."""
    name = instance.id.name
    if not has_release(instance.id):
        return ()
    states = runtime.tools.releases.object_states(Owner(instance.id.release, instance.id.namespace))
    watched = {identity_of(state.key) for state in states}
    rest = [key for key in instance.applied.objects if identity_of(key) not in watched]
    found = [(state.key, _snapshot(name, state)) for state in states]
    found += [(key, _unwatched(name, key)) for key in rest]
    return tuple(snapshot for _, snapshot in sorted(found, key=lambda pair: pair[0]))


def _snapshot(package: str, state: ObjectState) -> ResourceSnapshot:
    key, (health, message) = state.key, health_text(state.readiness)
    drift = ""
    if state.drift is not None:
        drift = "gone" if state.drift.missing else listed(state.drift.fields, _SHOWN)
    return ResourceSnapshot(
        package=package,
        kind=key.resource.group_kind,
        api_version=key.resource.api_version,
        namespace=key.namespace,
        name=key.name,
        health=health,
        message=message,
        apply=state.status.kind.value if state.status is not None else "",
        error=state.status.error if state.status is not None else "",
        drift=drift,
        labels=state.labels,
    )


def _unwatched(package: str, key: ObjectKey) -> ResourceSnapshot:
    return ResourceSnapshot(
        package=package,
        kind=key.resource.group_kind,
        api_version=key.resource.api_version,
        namespace=key.namespace,
        name=key.name,
        health="Unknown",
        message=NOT_WATCHED,
    )


def health_text(readiness: Readiness) -> tuple[str, str]:
    """Return the health of an object in one word, and its message."""
    match readiness:
        case Current():
            return "Current", ""
        case InProgress(message, absent=True):
            return "Absent", message
        case InProgress(message):
            return "InProgress", message
        case Failed(message):
            return "Failed", message
        case _:
            assert_never(readiness)
