"""The ``scale`` subresource: a view of replicas and selector that is the same for every kind that has it.

A write to it is a write of one field of the object, so it goes the way of all updates.
"""

from wharfinger.cluster.control_plane import status
from wharfinger.cluster.control_plane.backend import Backend
from wharfinger.cluster.control_plane.catalog import Served
from wharfinger.cluster.control_plane.columns import format_selector
from wharfinger.cluster.control_plane.json_path import evaluate, parse_json_path
from wharfinger.cluster.control_plane.kinds import ScalePaths
from wharfinger.cluster.control_plane.options import WriteOptions
from wharfinger.cluster.control_plane.patching import PatchType, patched
from wharfinger.cluster.control_plane.preparation import metadata_of, with_metadata
from wharfinger.cluster.control_plane.reading import get
from wharfinger.cluster.control_plane.status import FieldError
from wharfinger.cluster.control_plane.updating import update
from wharfinger.formats.json_value import JsonObject, JsonValue, ShapeError, as_object, find_int, find_str

_SHOWN = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(paths: ScalePaths, obj: JsonObject) -> JsonObject:
    """The Scale (autoscaling/v1) of an object; zero replicas are left out of ``spec``, as Go leaves them."""
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
    return value if isinstance(value, str) else format_selector(value)


def _paths(served: Served) -> ScalePaths:
    if served.version.scale is None:
        raise status.no_such_resource()
    return served.version.scale


def get_scale(backend: Backend, served: Served, namespace: str, name: str) -> JsonObject:
    """GET. Raises StatusError."""
    return scale_of(_paths(served), get(backend, served, namespace, name))


def replace_scale(
    backend: Backend, served: Served, namespace: str, name: str, body: JsonValue, options: WriteOptions
) -> JsonObject:
    """PUT. Raises StatusError."""
    old = get(backend, served, namespace, name)
    try:
        wanted = as_object(body, "the body")
        replicas, version = find_int(wanted, "spec", "replicas"), find_str(wanted, "metadata", "resourceVersion")
    except ShapeError as error:
        raise status.bad_request(f'Scale in version "v1" cannot be handled as a Scale: {error}') from error
    if replicas < 0:
        message = f"Invalid value: {replicas}: must be greater than or equal to 0"
        raise status.invalid("autoscaling", "Scale", name, [FieldError("spec.replicas", "FieldValueInvalid", message)])
    paths = _paths(served)
    version = version or find_str(old, "metadata", "resourceVersion")
    try:
        scaled = _with_number(old, paths.replicas.strip(".").split("."), replicas)
    except ShapeError as error:
        raise status.bad_request(f"{paths.replicas} cannot be set: {error}") from error
    new = with_metadata(scaled, {"resourceVersion": version})
    return scale_of(paths, update(backend, served, old, new, "scale", options, applied=False))


def patch_scale(
    backend: Backend, served: Served, namespace: str, name: str, kind: PatchType, body: JsonValue, options: WriteOptions
) -> JsonObject:
    """PATCH, of any type but apply. Raises StatusError."""
    if kind is PatchType.APPLY:
        raise status.unsupported_media_type([PatchType.JSON, PatchType.MERGE])
    live = get_scale(backend, served, namespace, name)
    dialect = PatchType.MERGE if kind is PatchType.STRATEGIC else kind
    return replace_scale(backend, served, namespace, name, patched(served, dialect, live, body), options)


def _with_number(obj: JsonObject, path: list[str], value: int) -> JsonObject:
    if len(path) == 1:
        return {**obj, path[0]: value}
    inner = as_object(obj.get(path[0]) or {}, path[0])
    return {**obj, path[0]: _with_number(inner, path[1:], value)}
