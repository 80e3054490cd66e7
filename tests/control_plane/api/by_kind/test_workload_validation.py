"""The table of workloads."""

from wharfinger.control_plane.api.by_kind.workload_validation import WORKLOAD_RULES


def test_every_kind_refuses_an_empty_one() -> None:
    fine = {"PodDisruptionBudget.policy"}
    for kind, rules in WORKLOAD_RULES.items():
        assert bool(rules.create({})) is (kind not in fine), kind
