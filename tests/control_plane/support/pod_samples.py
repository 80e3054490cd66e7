"""Pods with their defaults, for tests of validation rules."""

from wharfinger.control_plane.api.by_kind.defaults import apply_defaults
from wharfinger.formats.json.value import JsonObject, JsonValue, find_object


def pod_of(*containers: JsonObject, annotations: JsonObject | None = None, **spec: JsonValue) -> JsonObject:
    """Return a Pod with a container ``a``, or with the given containers."""
    given = list[JsonValue](containers or [{"name": "a", "image": "i"}])
    metadata: JsonObject = {"name": "p", "namespace": "n", **({"annotations": annotations} if annotations else {})}
    whole: JsonObject = {"serviceAccountName": "default", "containers": given, **spec}
    return apply_defaults({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole})


def spec_of(*containers: JsonObject, **spec: JsonValue) -> JsonObject:
    """Return the spec of a Pod as `pod_of` makes it."""
    return find_object(pod_of(*containers, annotations=None, **spec), "spec")
