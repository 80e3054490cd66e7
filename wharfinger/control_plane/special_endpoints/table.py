"""The merged tables of this package's modules: the function that answers requests, for each virtual kind and subresource."""

from typing import Final

from wharfinger.control_plane.special_endpoints.access_reviews import ACCESS_ENDPOINTS
from wharfinger.control_plane.special_endpoints.component_statuses import COMPONENT_ENDPOINTS
from wharfinger.control_plane.special_endpoints.endpoint import EndpointTable
from wharfinger.control_plane.special_endpoints.identity_reviews import IDENTITY_ENDPOINTS
from wharfinger.control_plane.special_endpoints.pod_evictions import POD_ENDPOINTS
from wharfinger.control_plane.special_endpoints.proxies import PROXY_ENDPOINTS

ENDPOINTS: Final[EndpointTable] = {
    **ACCESS_ENDPOINTS,
    **IDENTITY_ENDPOINTS,
    **COMPONENT_ENDPOINTS,
    **POD_ENDPOINTS,
    **PROXY_ENDPOINTS,
}
"""The functions that answer requests to special endpoints, by names such as ``Kind.group`` or ``Kind.group/subresource``."""
