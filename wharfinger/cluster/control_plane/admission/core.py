"""Plugins about what is counted in namespaces, storage, and nodes."""

from typing import Final

from wharfinger.cluster.control_plane.admission.limits import LIMIT_PLUGIN
from wharfinger.cluster.control_plane.admission.plugin import Admission, Operation, Plugin
from wharfinger.cluster.control_plane.admission.quota import QUOTA_PLUGIN
from wharfinger.cluster.control_plane.admission.storage import STORAGE_PLUGINS
from wharfinger.cluster.control_plane.validation.amounts import text
from wharfinger.cluster.control_plane.validation.parts import part, parts
from wharfinger.formats.json_value import JsonObject, JsonValue

_NOT_READY: Final = "node.kubernetes.io/not-ready"


def taint_node(_admission: Admission, node: JsonObject) -> JsonObject:
    """A new node is not ready, and says so until a controller finds otherwise."""
    taints = parts(node, "spec", "taints")
    if any(text(taint, "key") == _NOT_READY and text(taint, "effect") == "NoSchedule" for taint in taints):
        return node
    added: list[JsonValue] = [*taints, {"key": _NOT_READY, "effect": "NoSchedule"}]
    return {**node, "spec": {**(part(node, "spec") or {}), "taints": added}}


TAINT_PLUGIN: Final = Plugin(
    "TaintNodesByCondition", frozenset({Operation.CREATE}), frozenset({"Node"}), mutate=taint_node
)
CORE_PLUGINS: Final[tuple[Plugin, ...]] = (LIMIT_PLUGIN, TAINT_PLUGIN, *STORAGE_PLUGINS, QUOTA_PLUGIN)
