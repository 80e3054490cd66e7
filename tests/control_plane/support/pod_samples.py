"""Pods for tests of rules, with their defaults."""

from wharfinger.control_plane.api.by_kind.defaults import apply_defaults
from wharfinger.formats.json.value import JsonObject, JsonValue, find_object


def pod_of(*containers: JsonObject, annotations: JsonObject | None = None, **spec: JsonValue) -> JsonObject:
    """A Pod with a container ``a``, or those given."""
    given = list[JsonValue](containers or [{"name": "a", "image": "i"}])
    metadata: JsonObject = {"name": "p", "namespace": "n", **({"annotations": annotations} if annotations else {})}
    whole: JsonObject = {"serviceAccountName": "default", "containers": given, **spec}
    return apply_defaults({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole})


def spec_of(*containers: JsonObject, **spec: JsonValue) -> JsonObject:
    """Its spec."""
    return find_object(pod_of(*containers, annotations=None, **spec), "spec")
