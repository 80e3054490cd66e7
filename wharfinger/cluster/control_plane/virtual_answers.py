"""Who answers for each virtual resource: the tables of all areas, merged."""

from typing import Final

from wharfinger.cluster.control_plane.authorization.access_reviews import ACCESS_ANSWERS
from wharfinger.cluster.control_plane.authorization.identity_reviews import IDENTITY_ANSWERS
from wharfinger.cluster.control_plane.component_statuses import COMPONENT_ANSWERS
from wharfinger.cluster.control_plane.pod_evictions import POD_ANSWERS
from wharfinger.cluster.control_plane.proxies import PROXY_ANSWERS
from wharfinger.cluster.control_plane.virtual import Answerers

ANSWERERS: Final[Answerers] = {
    **ACCESS_ANSWERS,
    **IDENTITY_ANSWERS,
    **COMPONENT_ANSWERS,
    **POD_ANSWERS,
    **PROXY_ANSWERS,
}
"""By ``Kind.group`` or ``Kind.group/subresource``."""
