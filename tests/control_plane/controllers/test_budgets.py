"""The counts in the statuses of PodDisruptionBudgets."""

import pytest
from trio.testing import MockClock

from tests.control_plane.support.controller_harness import conditions_of, look, obj, open_cluster, settle, workload
from wharfinger.formats.json.value import JsonObject, find


@pytest.mark.parametrize(
    ("spec", "counts"),
    [
        ({"minAvailable": 3}, (4, 3, 1)),
        ({"minAvailable": "50%"}, (4, 2, 2)),
        ({"maxUnavailable": 1}, (4, 3, 1)),
        ({"minAvailable": 9}, (4, 9, 0)),
    ],
)
async def test_a_budget_counts_expected_healthy_and_allowed_disruptions(
    spec: JsonObject, counts: tuple[int, int, int], autojump_clock: MockClock
) -> None:
    async with open_cluster() as client:
        selector: JsonObject = {"matchLabels": {"a": "b"}}
        await client.create(obj("policy/v1", "PodDisruptionBudget", "p", spec={"selector": selector, **spec}))
        await client.create(workload("Deployment", "web", replicas=4))
        await settle()
        found = await look(client, "policy/v1", "PodDisruptionBudget", "p")
        names = ("expectedPods", "desiredHealthy", "disruptionsAllowed")
        assert tuple(find(found, "status", name) for name in names) == counts
        reason = "SufficientPods" if counts[2] else "InsufficientPods"
        assert conditions_of(found)["DisruptionAllowed"][1] == reason
