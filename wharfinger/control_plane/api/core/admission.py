"""The admission plugins of the core group for limit ranges, quotas, storage and nodes."""

from typing import Final

from wharfinger.control_plane.api.common.admission import Admission, Operation, Plugin
from wharfinger.control_plane.api.core.quotas.admission import QUOTA_PLUGIN
from wharfinger.control_plane.api.core.quotas.limit_admission import LIMIT_PLUGIN
from wharfinger.control_plane.api.core.volumes.admission import STORAGE_PLUGINS
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import part, parts
from wharfinger.formats.json.value import JsonObject, JsonValue

_NOT_READY: Final = "node.kubernetes.io/not-ready"


def taint_node(_admission: Admission, node: JsonObject) -> JsonObject:
    """Add the not-ready taint to a new node; a controller removes it once the node is ready."""
    taints = parts(node, "spec", "taints")
    if any(text(taint, "key") == _NOT_READY and text(taint, "effect") == "NoSchedule" for taint in taints):
        return node
    added: list[JsonValue] = [*taints, {"key": _NOT_READY, "effect": "NoSchedule"}]
    return {**node, "spec": {**(part(node, "spec") or {}), "taints": added}}


TAINT_PLUGIN: Final = Plugin(
    "TaintNodesByCondition", frozenset({Operation.CREATE}), frozenset({"Node"}), mutate=taint_node
)
CORE_PLUGINS: Final[tuple[Plugin, ...]] = (LIMIT_PLUGIN, TAINT_PLUGIN, *STORAGE_PLUGINS, QUOTA_PLUGIN)
