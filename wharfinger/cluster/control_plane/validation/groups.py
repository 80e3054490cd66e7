"""The rules of kinds of the other groups, merged: leases, roles, priority classes, networking, storage and more."""

from typing import Final

from wharfinger.cluster.control_plane.validation.admission_policies import ADMISSION_POLICY_RULES
from wharfinger.cluster.control_plane.validation.api_services import API_SERVICE_RULES
from wharfinger.cluster.control_plane.validation.attributes_classes import ATTRIBUTES_CLASS_RULES
from wharfinger.cluster.control_plane.validation.certificate_requests import CERTIFICATE_REQUEST_RULES
from wharfinger.cluster.control_plane.validation.csi_drivers import CSI_DRIVER_RULES
from wharfinger.cluster.control_plane.validation.endpoint_slices import ENDPOINT_SLICE_RULES
from wharfinger.cluster.control_plane.validation.flow_schemas import FLOW_SCHEMA_RULES
from wharfinger.cluster.control_plane.validation.ingresses import INGRESS_RULES
from wharfinger.cluster.control_plane.validation.leases import LEASE_RULES
from wharfinger.cluster.control_plane.validation.mutating_policies import MUTATING_POLICY_RULES
from wharfinger.cluster.control_plane.validation.network_policies import NETWORK_POLICY_RULES
from wharfinger.cluster.control_plane.validation.priority_classes import PRIORITY_RULES
from wharfinger.cluster.control_plane.validation.priority_levels import PRIORITY_LEVEL_RULES
from wharfinger.cluster.control_plane.validation.resource_claims import RESOURCE_CLAIM_RULES
from wharfinger.cluster.control_plane.validation.resource_slices import RESOURCE_SLICE_RULES
from wharfinger.cluster.control_plane.validation.roles import ROLE_RULES
from wharfinger.cluster.control_plane.validation.rules import Rules
from wharfinger.cluster.control_plane.validation.runtime_classes import RUNTIME_CLASS_RULES
from wharfinger.cluster.control_plane.validation.service_ranges import SERVICE_RANGE_RULES
from wharfinger.cluster.control_plane.validation.storage_capacities import STORAGE_CAPACITY_RULES
from wharfinger.cluster.control_plane.validation.storage_classes import STORAGE_CLASS_RULES
from wharfinger.cluster.control_plane.validation.volume_attachments import VOLUME_ATTACHMENT_RULES
from wharfinger.cluster.control_plane.validation.webhooks import WEBHOOK_RULES

GROUP_RULES: Final[dict[str, Rules]] = {
    **ADMISSION_POLICY_RULES,
    **CERTIFICATE_REQUEST_RULES,
    **VOLUME_ATTACHMENT_RULES,
    **STORAGE_CAPACITY_RULES,
    **SERVICE_RANGE_RULES,
    **RUNTIME_CLASS_RULES,
    **PRIORITY_LEVEL_RULES,
    **FLOW_SCHEMA_RULES,
    **CSI_DRIVER_RULES,
    **ATTRIBUTES_CLASS_RULES,
    **API_SERVICE_RULES,
    **ENDPOINT_SLICE_RULES,
    **INGRESS_RULES,
    **LEASE_RULES,
    **MUTATING_POLICY_RULES,
    **NETWORK_POLICY_RULES,
    **PRIORITY_RULES,
    **RESOURCE_CLAIM_RULES,
    **RESOURCE_SLICE_RULES,
    **ROLE_RULES,
    **STORAGE_CLASS_RULES,
    **WEBHOOK_RULES,
}
