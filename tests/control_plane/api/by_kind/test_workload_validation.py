"""The validation rules in the table of workload kinds."""

from wharfinger.control_plane.api.by_kind.workload_validation import WORKLOAD_RULES


def test_empty_objects_are_refused() -> None:
    fine = {"PodDisruptionBudget.policy"}
    for kind, rules in WORKLOAD_RULES.items():
        assert bool(rules.create({})) is (kind not in fine), kind
