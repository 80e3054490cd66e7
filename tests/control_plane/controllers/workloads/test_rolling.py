"""The computation of the numbers of replicas in rolling updates."""

import pytest

from wharfinger.control_plane.controllers.workloads.rolling import (
    MAXIMUM,
    bounds,
    desired_of,
    new_set_replicas,
    proportional,
    scaled_down,
    share,
)
from wharfinger.formats.json.value import JsonObject, JsonValue


def deployment(replicas: int, surge: JsonValue = "25%", unavailable: JsonValue = "25%") -> JsonObject:
    update: JsonObject = {"maxSurge": surge, "maxUnavailable": unavailable}
    return {"spec": {"replicas": replicas, "strategy": {"type": "RollingUpdate", "rollingUpdate": update}}}


def one(name: str, replicas: int, available: int | None = None, maximum: str = "") -> JsonObject:
    annotations: JsonObject = {MAXIMUM: maximum} if maximum else {}
    seen = replicas if available is None else available
    metadata: JsonObject = {"name": name, "annotations": annotations, "creationTimestamp": name}
    return {"metadata": metadata, "spec": {"replicas": replicas}, "status": {"availableReplicas": seen}}


@pytest.mark.parametrize(
    ("value", "up", "found"),
    [(3, True, 3), ("25%", True, 3), ("25%", False, 2), ("x%", True, 0), (-1, True, 0), (None, True, 3)],
)
def test_shares_of_ten_replicas(value: JsonValue, up: bool, found: int) -> None:
    assert share(value, 10, up=up) == found


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (deployment(10), (3, 2)),
        (deployment(1), (1, 0)),
        (deployment(4, 0, 0), (0, 1)),
        (deployment(2, 0, 9), (0, 2)),
        ({"spec": {"replicas": 3, "strategy": {"type": "Recreate"}}}, (0, 0)),
    ],
)
def test_surge_and_unavailability_are_rounded_for_the_replicas(given: JsonObject, found: tuple[int, int]) -> None:
    assert bounds(given) == found


def test_the_new_set_grows_up_to_the_allowed_surge() -> None:
    assert new_set_replicas(deployment(10), [one("1", 10)], 0) == 3
    assert new_set_replicas(deployment(10), [one("1", 10), one("2", 3)], 3) == 3
    assert new_set_replicas({"spec": {"replicas": 5, "strategy": {"type": "Recreate"}}}, [], 0) == 5


def test_old_sets_lose_unavailable_pods_first() -> None:
    old = [one("1", 5, 5), one("2", 5, 1)]
    lost = {str(scale.one["metadata"]): scale.replicas for scale in scaled_down(deployment(10), one("3", 3, 3), old)}
    assert list(lost.values()) == [4, 1]
    assert scaled_down(deployment(10), one("3", 3, 0), [one("1", 8)]) == []


def test_a_new_scale_is_distributed_proportionally() -> None:
    made = proportional(deployment(20, 0, 1), [one("1", 8, maximum="10"), one("2", 2, maximum="10")])
    assert [scale.replicas for scale in made] == [16, 4]
    fewer = proportional(deployment(5, 0, 1), [one("1", 8, maximum="10"), one("2", 2, maximum="10")])
    assert sum(scale.replicas for scale in fewer) == 5


def test_the_desired_replicas_annotation_is_read() -> None:
    assert desired_of({"metadata": {"annotations": {"deployment.kubernetes.io/desired-replicas": "7"}}}) == 7
    assert desired_of({"metadata": {"annotations": {"deployment.kubernetes.io/desired-replicas": "x"}}}) is None
