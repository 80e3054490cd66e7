"""The creation of Pods from a template by workload controllers."""

from wharfinger.control_plane.controllers.framework.objects import name_of, owner_reference
from wharfinger.control_plane.controllers.framework.state import ClusterState
from wharfinger.formats.json.value import JsonObject, find, find_object, find_str

_LONGEST_PREFIX = 57


def pod_of_template(owner: JsonObject, template: JsonObject) -> JsonObject:
    """Return a Pod of ``owner``, with a generated name, and with the template's labels, annotations, finalizers and spec."""
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
    """Create a Pod from an owner's template; return None if the namespace is being deleted. Raises StatusError."""
    return state.create(pod_of_template(owner, find_object(owner, "spec", "template")))
