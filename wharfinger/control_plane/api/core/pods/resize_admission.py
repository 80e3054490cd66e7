"""The admission of resizes of Pods on a node: the node has to support the resize, and to be large enough.

The plugins are NodeDeclaredFeatureValidator and PodResizeValidator. They do not check Pods on the simulated
node (:data:`~wharfinger.control_plane.api.core.nodes.SIMULATED_NODE`), which has no Node object.

Sources: KEP-1287 (resizing in place), KEP-5328 (features that nodes declare).
"""

import math
from typing import Final

from wharfinger.control_plane.api.common.admission import Admission
from wharfinger.control_plane.api.core.nodes import SIMULATED_NODE
from wharfinger.control_plane.api.core.quotas.usage import pod_amounts
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import part, parts, text_map, texts
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.field_errors import quoted
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.kube.quantities import amount

_OF_PODS: Final = "InPlacePodLevelResourcesVerticalScaling"
_OF_INITIAL: Final = "InPlacePodVerticalScalingInitContainers"
_SYSTEM: Final = "kubernetes.io/os"


def check_node_features(admission: Admission) -> None:
    """Refuse a resize if the Pod's node does not declare all features that the resize needs. Raises StatusError (403)."""
    node_name = _bound_to(admission)
    needed = _needed_features(admission.obj, admission.old) if node_name else []
    if not needed:
        return
    declared = texts(_node(admission, node_name), "status", "declaredFeatures")
    missing = [name for name in needed if name not in declared]
    if missing:
        what = f"pod update requires features {', '.join(missing)} which are not available on node {quoted(node_name)}"
        raise status.forbidden(admission.kind, admission.name, what)


def check_node_size(admission: Admission) -> None:
    """Refuse a resize on a node that is too small or does not run Linux. Raises StatusError (403)."""
    node_name = _bound_to(admission)
    if not node_name or admission.obj is None:
        return
    node = _node(admission, node_name)
    system = text_map(node, "metadata", "labels").get(_SYSTEM, "linux")
    if system != "linux":
        why = f"pod resize is only supported on linux nodes, node {quoted(node_name)} is {quoted(system)}"
        raise status.forbidden(admission.kind, admission.name, why, [FieldError("", "UnsupportedPlatform", "")])
    asked = pod_amounts(admission.obj, "requests")
    lacks: list[str] = []
    for resource, unit in (("cpu", 1000), ("memory", 1)):
        wanted, there = amount(asked.get(resource)), amount(find(node, "status", "allocatable", resource))
        if wanted > there:
            figures = f"requested: {math.ceil(wanted * unit)}, allocatable: {math.ceil(there * unit)}"
            lacks.append(f"{resource}, {figures}")
    if lacks:
        why = f"node didn't have enough allocatable resources: {'; '.join(lacks)}"
        raise status.forbidden(admission.kind, admission.name, why, [FieldError("", "NodeCapacity", "")])


def _bound_to(admission: Admission) -> str:
    """Return the name of the node of a resized Pod.

    Return "" for writes that are no resize or do not change the spec, and for a Pod on the simulated node or on no node.
    """
    spec = part(admission.obj, "spec")
    name = text(spec, "nodeName")
    if admission.subresource != "resize" or name == SIMULATED_NODE or spec == part(admission.old, "spec"):
        return ""
    return name


def _node(admission: Admission, name: str) -> JsonObject:
    found = admission.view.object("", "nodes", "", name)
    if found is None:
        raise status.forbidden(admission.kind, admission.name, f"node {quoted(name)} not found")
    return found


def _needed_features(new: JsonObject | None, old: JsonObject | None) -> list[str]:
    needed: list[str] = []
    if part(new, "spec", "resources") != part(old, "spec", "resources"):
        needed.append(_OF_PODS)
    pairs = zip(parts(new, "spec", "initContainers"), parts(old, "spec", "initContainers"), strict=False)
    if any(was.get("restartPolicy") != "Always" and now.get("resources") != was.get("resources") for now, was in pairs):
        needed.append(_OF_INITIAL)
    return needed
