"""The ``scale`` of an object: a view of its replicas and selector, with the same form for every kind."""

from wharfinger.control_plane.api.common.cells import format_selector
from wharfinger.control_plane.kinds.kind import ScalePaths
from wharfinger.control_plane.objects.object_metadata import metadata_of
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.json_path.path import evaluate, parse_json_path

_SHOWN = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(paths: ScalePaths, obj: JsonObject) -> JsonObject:
    """Return the Scale (autoscaling/v1) of an object; zero replicas are left out of ``spec``, as in Go."""
    metadata: JsonObject = {name: value for name, value in metadata_of(obj).items() if name in _SHOWN}
    replicas = _number(paths.replicas, obj)
    scale_status: JsonObject = {"replicas": _number(paths.status_replicas, obj)}
    if selector := _selector(paths, obj):
        scale_status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": replicas} if replicas else {},
        "status": scale_status,
    }


def _number(path: str, obj: JsonObject) -> int:
    found = evaluate(parse_json_path(path), obj)
    value = found[0] if found else 0
    return value if isinstance(value, int) else 0


def _selector(paths: ScalePaths, obj: JsonObject) -> str:
    found = evaluate(parse_json_path(paths.selector), obj) if paths.selector else []
    value = found[0] if found else None
    if obj.get("kind") == "ReplicationController":
        value = {"matchLabels": value}  # plain labels
    return value if isinstance(value, str) else format_selector(value)
