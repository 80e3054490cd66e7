import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.debug.support.samples import (
    CLUSTER_EVENTS,
    DAEMON_TASKS,
    DIFFERENCE,
    HOOK_SNAPSHOTS,
    JSON_OBJECTS,
    LOG,
    RESOURCES,
)
from wharfinger.debug.encoding.details import (
    events_from_json,
    events_to_json,
    resources_from_json,
    resources_to_json,
    snapshots_from_json,
    snapshots_to_json,
    tasks_from_json,
    tasks_to_json,
)
from wharfinger.debug.encoding.records import record_from_json, record_to_json
from wharfinger.formats.json.value import ShapeError
from wharfinger.runtime.package_details import (
    ClusterEventSnapshot,
    DaemonTaskSnapshot,
    DifferenceSnapshot,
    HookSnapshotsSnapshot,
    LogSnapshot,
    ResourceSnapshot,
)

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)


def test_details_survive_a_round_trip_through_json() -> None:
    assert resources_from_json(resources_to_json(RESOURCES)) == RESOURCES
    assert events_from_json(events_to_json(CLUSTER_EVENTS)) == CLUSTER_EVENTS
    assert snapshots_from_json(snapshots_to_json(HOOK_SNAPSHOTS)) == HOOK_SNAPSHOTS
    assert tasks_from_json(tasks_to_json(DAEMON_TASKS)) == DAEMON_TASKS
    assert record_from_json(record_to_json(LOG), LogSnapshot, "log") == LOG
    assert record_from_json(record_to_json(DIFFERENCE), DifferenceSnapshot, "diff") == DIFFERENCE


@given(st.lists(st.builds(ResourceSnapshot, *[_TEXT] * 10, st.lists(_TEXT, max_size=2).map(tuple)), max_size=3))
def test_any_resources_survive_a_round_trip(resources: list[ResourceSnapshot]) -> None:
    assert resources_from_json(resources_to_json(resources)) == tuple(resources)


@given(
    st.builds(ClusterEventSnapshot, *[_TEXT] * 4, st.integers(1, 9)),
    st.builds(DaemonTaskSnapshot, _TEXT, st.integers(0, 9)),
)
def test_any_events_and_tasks_survive_a_round_trip(event: ClusterEventSnapshot, task: DaemonTaskSnapshot) -> None:
    assert events_from_json(events_to_json([event])) == (event,)
    assert tasks_from_json(tasks_to_json([task])) == (task,)


@given(_TEXT, JSON_OBJECTS)
def test_any_hook_snapshots_survive_a_round_trip(hook: str, bindings: dict[str, object]) -> None:
    one = HookSnapshotsSnapshot(hook, bindings)  # type: ignore[arg-type]
    assert snapshots_from_json(snapshots_to_json([one])) == (one,)


def test_an_unexpected_shape_is_refused_with_its_field() -> None:
    with pytest.raises(ShapeError, match="package"):
        resources_from_json({"resources": [{}]})
    with pytest.raises(ShapeError):
        snapshots_from_json([])
