"""The rules of kinds of the other groups, merged: leases, roles, priority classes, networking and more."""

from typing import Final

from wharfinger.cluster.control_plane.validation.endpoint_slices import ENDPOINT_SLICE_RULES
from wharfinger.cluster.control_plane.validation.ingresses import INGRESS_RULES
from wharfinger.cluster.control_plane.validation.leases import LEASE_RULES
from wharfinger.cluster.control_plane.validation.network_policies import NETWORK_POLICY_RULES
from wharfinger.cluster.control_plane.validation.priority_classes import PRIORITY_RULES
from wharfinger.cluster.control_plane.validation.roles import ROLE_RULES
from wharfinger.cluster.control_plane.validation.rules import Rules
from wharfinger.cluster.control_plane.validation.storage_classes import STORAGE_CLASS_RULES
from wharfinger.cluster.control_plane.validation.webhooks import WEBHOOK_RULES

GROUP_RULES: Final[dict[str, Rules]] = {
    **ENDPOINT_SLICE_RULES,
    **INGRESS_RULES,
    **LEASE_RULES,
    **NETWORK_POLICY_RULES,
    **PRIORITY_RULES,
    **ROLE_RULES,
    **STORAGE_CLASS_RULES,
    **WEBHOOK_RULES,
}
