"""The table of validation rules for kinds of the core group, except Pods and kinds with pod templates."""

from typing import Final

from wharfinger.control_plane.api.core.events import EVENT_RULES, STRICT_EVENT_RULES
from wharfinger.control_plane.api.core.namespaces import NAMESPACE_RULES
from wharfinger.control_plane.api.core.nodes import NODE_RULES
from wharfinger.control_plane.api.core.quotas.validation import LIMIT_RANGE_RULES, QUOTA_RULES
from wharfinger.control_plane.api.core.secrets import CONFIG_MAP_RULES, SECRET_RULES
from wharfinger.control_plane.api.core.services.endpoints import ENDPOINTS_RULES
from wharfinger.control_plane.api.core.services.validation import SERVICE_RULES
from wharfinger.control_plane.api.core.volumes.claim_validation import CLAIM_RULES
from wharfinger.control_plane.api.core.volumes.volume_validation import VOLUME_RULES
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.formats.json.value import JsonObject, find

_MOUNTABLE: Final = "kubernetes.io/enforce-mountable-secrets"


def _account_warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
    if find(new, "metadata", "annotations", _MOUNTABLE) is None:
        return []
    if old is not None and find(old, "metadata", "annotations", _MOUNTABLE) is not None:
        return []
    why = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
    return [f"metadata.annotations[{_MOUNTABLE}]: {why}"]


CORE_RULES: Final[dict[str, Rules]] = {
    "ConfigMap": CONFIG_MAP_RULES,
    "Endpoints": ENDPOINTS_RULES,
    "Event": EVENT_RULES,
    "Event.events.k8s.io": STRICT_EVENT_RULES,
    "LimitRange": LIMIT_RANGE_RULES,
    "Namespace": NAMESPACE_RULES,
    "Node": NODE_RULES,
    "PersistentVolume": VOLUME_RULES,
    "PersistentVolumeClaim": CLAIM_RULES,
    "ResourceQuota": QUOTA_RULES,
    "Secret": SECRET_RULES,
    "Service": SERVICE_RULES,
    "ServiceAccount": Rules(warnings=_account_warnings),
}
