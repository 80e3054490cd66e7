"""The functions that answer requests to all virtual resources and subresources: the merged tables of this folder."""

from typing import Final

from wharfinger.control_plane.special_endpoints.access_reviews import ACCESS_ANSWERS
from wharfinger.control_plane.special_endpoints.component_statuses import COMPONENT_ANSWERS
from wharfinger.control_plane.special_endpoints.endpoint import Answerers
from wharfinger.control_plane.special_endpoints.identity_reviews import IDENTITY_ANSWERS
from wharfinger.control_plane.special_endpoints.pod_evictions import POD_ANSWERS
from wharfinger.control_plane.special_endpoints.proxies import PROXY_ANSWERS

ANSWERERS: Final[Answerers] = {
    **ACCESS_ANSWERS,
    **IDENTITY_ANSWERS,
    **COMPONENT_ANSWERS,
    **POD_ANSWERS,
    **PROXY_ANSWERS,
}
"""The functions by ``Kind.group`` or ``Kind.group/subresource``."""
