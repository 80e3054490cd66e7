"""The validation of the kinds that belong neither to the core group nor to workloads, in one table: leases, roles, priority
classes, networking, storage and more.
"""

from typing import Final

from wharfinger.control_plane.api.admissionregistration.admission_policies import ADMISSION_POLICY_RULES
from wharfinger.control_plane.api.admissionregistration.mutating_policies import MUTATING_POLICY_RULES
from wharfinger.control_plane.api.admissionregistration.webhooks import WEBHOOK_RULES
from wharfinger.control_plane.api.apiregistration.api_services import API_SERVICE_RULES
from wharfinger.control_plane.api.certificates.certificate_requests import CERTIFICATE_REQUEST_RULES
from wharfinger.control_plane.api.coordination.leases import LEASE_RULES
from wharfinger.control_plane.api.discovery.endpoint_slices import ENDPOINT_SLICE_RULES
from wharfinger.control_plane.api.flowcontrol.flow_schemas import FLOW_SCHEMA_RULES
from wharfinger.control_plane.api.flowcontrol.priority_levels import PRIORITY_LEVEL_RULES
from wharfinger.control_plane.api.networking.ingresses import INGRESS_RULES
from wharfinger.control_plane.api.networking.network_policies import NETWORK_POLICY_RULES
from wharfinger.control_plane.api.networking.service_ranges import SERVICE_RANGE_RULES
from wharfinger.control_plane.api.node.runtime_classes import RUNTIME_CLASS_RULES
from wharfinger.control_plane.api.rbac.roles import ROLE_RULES
from wharfinger.control_plane.api.resource.resource_claims import RESOURCE_CLAIM_RULES
from wharfinger.control_plane.api.resource.resource_slices import RESOURCE_SLICE_RULES
from wharfinger.control_plane.api.scheduling.priority_classes import PRIORITY_RULES
from wharfinger.control_plane.api.storage.attributes_classes import ATTRIBUTES_CLASS_RULES
from wharfinger.control_plane.api.storage.csi_drivers import CSI_DRIVER_RULES
from wharfinger.control_plane.api.storage.storage_capacities import STORAGE_CAPACITY_RULES
from wharfinger.control_plane.api.storage.storage_classes import STORAGE_CLASS_RULES
from wharfinger.control_plane.api.storage.volume_attachments import VOLUME_ATTACHMENT_RULES
from wharfinger.control_plane.objects.kind_rules import Rules

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
