from wharfinger.control_plane.api.by_kind.other_groups_validation import GROUP_RULES
from wharfinger.control_plane.catalog.builtin_kinds import BUILTIN_KINDS


def test_all_rules_belong_to_served_kinds() -> None:
    served = {kind.group_kind for kind in BUILTIN_KINDS}

    assert GROUP_RULES.keys() <= served


def test_no_rules_are_lost_in_merging() -> None:
    assert {"Lease.coordination.k8s.io", "Ingress.networking.k8s.io", "Role.rbac.authorization.k8s.io"} <= set(
        GROUP_RULES
    )
