"""The status of a pool: its counts, and the reason why it differs from the desired state."""

from datetime import UTC, datetime

from tests.pools.pods.podstates import pod, pool_spec
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.pools.pods.pod_state import Phase
from wharfinger.pools.pods.pool_status import PoolNumbers, invalid_status, numbers, pool_status
from wharfinger.pools.pods.sizing_events import Demand, PodRefused, PodSeen
from wharfinger.pools.pods.sizing_machine import SizingState, new_sizing_state, step

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def state_of(*pods: object, **spec: int) -> SizingState:
    state = new_sizing_state(pool_spec(**spec), "w", 0.0)
    for each in pods:
        state, _ = step(state, PodSeen(each), 0.0)  # type: ignore[arg-type]
    state.making.clear()
    return state


def test_the_status_of_a_pool_of_the_desired_size() -> None:
    state = state_of(pod("1"), pod("2"), pod("3", phase=Phase.CLAIMED), size=2)
    assert numbers(state, 0.0) == PoolNumbers(desired=2, ready=2, starting=0, claimed=1, pods=3, waiting=0)


def test_pods_that_start_are_named_with_their_problem() -> None:
    found = numbers(state_of(pod("1"), pod("2", ready=False, problem="ImagePullBackOff"), size=2), 0.0)
    assert (found.ready, found.starting, found.reason) == (1, 1, "Starting")
    assert found.problem == "1 of 2 idle pods are not ready; pod-2: ImagePullBackOff"


def test_more_claims_than_max_allows() -> None:
    state = state_of(pod("1", phase=Phase.CLAIMED), size=1, max=1)
    state, _ = step(state, Demand(3, 3), 0.0)
    found = numbers(state, 0.0)
    assert (found.desired, found.waiting, found.reason) == (0, 3, "MaxReached")
    assert found.problem == "1 pods exist, but spec.max is 1"


def test_a_failed_write_is_the_reason_until_a_pod_is_made() -> None:
    state = state_of(size=1)
    state, _ = step(state, PodRefused("w-9", "exceeded quota"), 0.0)
    found = numbers(state, 0.0)
    assert (found.reason, found.problem) == ("WriteFailed", "exceeded quota")


def test_a_transition_keeps_its_time_as_long_as_it_lasts() -> None:
    found = PoolNumbers(desired=1, ready=0, starting=1, claimed=0, pods=1, waiting=0, reason="Starting", problem="x")
    first = pool_status(found, 3, {}, NOW)
    condition: JsonObject = {
        "type": "Ready",
        "status": "False",
        "reason": "Starting",
        "message": "x",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": 3,
    }
    assert first == {
        "observedGeneration": 3,
        "desired": 1,
        "ready": 0,
        "starting": 1,
        "claimed": 0,
        "waiting": 0,
        "conditions": [condition],
    }
    later = NOW.replace(year=2027)
    assert find(invalid_status("bad", 4, first, later), "conditions", 0, "lastTransitionTime") == "2026-01-01T00:00:00Z"
    well = PoolNumbers(desired=1, ready=1, starting=0, claimed=0, pods=1, waiting=0)
    ready = find(pool_status(well, 4, first, later), "conditions", 0)
    assert (find(ready, "status"), find(ready, "reason")) == ("True", "AsWanted")
    assert find(ready, "lastTransitionTime") == "2027-01-01T00:00:00Z"
