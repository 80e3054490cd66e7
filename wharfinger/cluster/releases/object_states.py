"""The present state of each object of a release: its health, its last apply, its drift and its labels. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from wharfinger.cluster.drift.comparison import Drift
from wharfinger.cluster.objects.desired import DesiredObject, Identity
from wharfinger.cluster.reconciler.status import Status
from wharfinger.cluster.watch.readiness import Readiness
from wharfinger.formats.json.value import find_object
from wharfinger.kube.resource import ObjectKey


@dataclass(frozen=True, slots=True)
class ObjectState:
    """The state of one object. ``status`` is the status of its apply, None if it is not known; ``labels`` are ``key=value``,
    sorted.
    """

    key: ObjectKey
    readiness: Readiness
    status: Status | None
    drift: Drift | None
    labels: tuple[str, ...]


def object_states(
    rows: Iterable[DesiredObject],
    readiness: Callable[[DesiredObject], Readiness],
    status: Callable[[Identity], Status | None],
    drifts: Iterable[Drift],
) -> tuple[ObjectState, ...]:
    """Return the states of the objects of rows, sorted by key. Raises ShapeError for a row that is not an object."""
    drifted = {drift.identity: drift for drift in drifts}
    found = [
        ObjectState(row.key, readiness(row), status(row.identity), drifted.get(row.identity), _labels(row))
        for row in rows
    ]
    return tuple(sorted(found, key=lambda state: state.key))


def _labels(row: DesiredObject) -> tuple[str, ...]:
    labels = find_object(row.object(), "metadata", "labels")
    return tuple(sorted(f"{key}={value}" for key, value in labels.items()))
