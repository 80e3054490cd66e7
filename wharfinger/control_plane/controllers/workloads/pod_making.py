"""Pods as workload controllers make them of a template."""

from wharfinger.control_plane.controllers.framework.objects import name_of, owner_reference
from wharfinger.control_plane.controllers.framework.state import ClusterState
from wharfinger.formats.json.value import JsonObject, find, find_object, find_str

_LONGEST_PREFIX = 57


def pod_of_template(owner: JsonObject, template: JsonObject) -> JsonObject:
    """The Pod of a template, whose name is to be made: labels, annotations and finalizers of the template, and its owner."""
    metadata: JsonObject = {
        "generateName": f"{name_of(owner)[:_LONGEST_PREFIX]}-",
        "namespace": find_str(owner, "metadata", "namespace"),
        "ownerReferences": [owner_reference(owner)],
    }
    for name in ("labels", "annotations", "finalizers"):
        given = find(template, "metadata", name)
        if given:
            metadata[name] = given
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": find_object(template, "spec")}


def created_pod(state: ClusterState, owner: JsonObject) -> JsonObject | None:
    """Make a Pod of an owner's template; None where its namespace takes nothing more. Raises StatusError."""
    return state.create(pod_of_template(owner, find_object(owner, "spec", "template")))
