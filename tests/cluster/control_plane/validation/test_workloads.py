"""The table of workloads."""

from wharfinger.cluster.control_plane.validation.workloads import WORKLOAD_RULES


def test_every_kind_refuses_an_empty_one() -> None:
    fine = {"PodDisruptionBudget.policy"}
    for kind, rules in WORKLOAD_RULES.items():
        assert bool(rules.create({})) is (kind not in fine), kind
