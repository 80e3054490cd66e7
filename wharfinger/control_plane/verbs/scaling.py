"""The ``scale`` subresource: the replicas and the selector of an object, in the same form for every kind.

A write to a scale changes one field of the object, so the write is handled like any other update.
"""

from dataclasses import replace
from typing import Final

from wharfinger.control_plane.api.common.cells import number
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.catalog.columns import AGE, NAME
from wharfinger.control_plane.catalog.scales import scale_of
from wharfinger.control_plane.kinds.kind import Column, Kind, KindVersion, ScalePaths
from wharfinger.control_plane.kinds.type_shapes import builtin_list_types
from wharfinger.control_plane.merging.managed_fields import (
    Manager,
    Managers,
    Owned,
    managers_of,
    record_update,
    with_managers,
)
from wharfinger.control_plane.merging.server_side_apply import place_of
from wharfinger.control_plane.objects.object_metadata import with_metadata
from wharfinger.control_plane.verbs.intake import accepted, check_name, check_namespace, intended
from wharfinger.control_plane.verbs.options import WriteOptions
from wharfinger.control_plane.verbs.patching import PatchType, applied, patched_object
from wharfinger.control_plane.verbs.reading import get
from wharfinger.control_plane.verbs.replicas import check_replicas, field_of, with_number
from wharfinger.control_plane.verbs.updating import check_uid, update
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.bodies import Body, BodyError, read_body
from wharfinger.control_plane.wire.negotiation import Encoding
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    ShapeError,
    find,
    find_int,
    find_object,
    find_str,
)
from wharfinger.formats.json_path.path import evaluate, parse_json_path
from wharfinger.kube.field_sets import FieldSet

_SCALE: Final = Served(
    Kind("autoscaling", "Scale", "scales", "scale", "ScaleList", True, (), "v1"),  # noqa: FBT003
    KindVersion("v1", (), builtin_list_types("autoscaling", "v1", "Scale")),
)
_DESIRED: Final = "replicas is the desired number of instances for the scaled object."
_ACTUAL: Final = "replicas is the actual number of observed instances of the scaled object."
_OF_BUILT_IN: Final = (
    replace(NAME, format=""),
    Column("Desired", number("spec", "replicas"), "integer", "", _DESIRED),
    Column("Available", number("status", "replicas"), "integer", "", _ACTUAL),
    replace(AGE, type="string"),
)
_OF_CUSTOM: Final = (
    NAME,
    Column("Desired", lambda scale, _: find(scale, "spec", "replicas"), "integer", "", "Number of desired replicas"),
    Column("Available", number("status", "replicas"), "integer", "", "Number of actual replicas"),
    AGE,
)
_REPLICAS_PATH: Final = ("f:spec", "f:replicas")
_REPLICAS: Final = FieldSet.of_paths([_REPLICAS_PATH])


def shown_as(kind: Kind) -> Served:
    """Return the kind Scale with the columns that a Table of a scale has; they differ between built-in and custom kinds."""
    columns = _OF_CUSTOM if kind.custom else _OF_BUILT_IN
    return replace(_SCALE, version=replace(_SCALE.version, columns=columns))


def _paths(served: Served) -> ScalePaths:
    if served.version.scale is None:
        raise status.no_such_resource()
    return served.version.scale


def get_scale(backend: Backend, served: Served, namespace: str, name: str) -> JsonObject:
    """Handle a GET of a scale: return the Scale. Raises StatusError."""
    paths, obj = _paths(served), get(backend, served, namespace, name)
    if served.kind.custom and not evaluate(parse_json_path(paths.replicas), obj):
        why = f'the spec replicas field "{paths.replicas}" does not exist'
        raise status.StatusError(
            500, "InternalError", f"Internal error occurred: {why}", {"causes": [{"message": why}]}
        )
    return scale_of(paths, obj)


def replace_scale(
    backend: Backend, served: Served, namespace: str, name: str, body: "JsonValue | Body", options: WriteOptions
) -> JsonObject:
    """Handle a PUT of a scale: return the new Scale. Raises StatusError."""
    asked = accepted(_SCALE, body, options.validation)
    options.warnings.extend(asked.warnings)
    scale = check_name(check_namespace(_SCALE, asked.obj, namespace), name)
    return _write(backend, served, get(backend, served, namespace, name), scale, options, applied=False)


def patch_scale(
    backend: Backend, served: Served, namespace: str, name: str, kind: PatchType, data: bytes, options: WriteOptions
) -> JsonObject:
    """Handle a PATCH of a scale: return the new Scale. Raises StatusError."""
    old = get(backend, served, namespace, name)
    live = _tracked_scale(served, old)
    if kind is PatchType.APPLY:
        scale = _applied(backend, served, live, data, options)
    else:
        asked = patched_object(_SCALE, kind, live, data, options.validation)
        options.warnings.extend(asked.warnings)
        scale = asked.obj
    scale = check_name(check_namespace(_SCALE, scale, namespace), name)
    return _write(backend, served, old, scale, options, applied=kind is PatchType.APPLY)


def _applied(backend: Backend, served: Served, live: JsonObject, data: bytes, options: WriteOptions) -> JsonObject:
    try:
        body = read_body(data, Encoding.YAML)
    except BodyError as error:
        raise status.bad_request(f"error decoding YAML: error converting YAML to JSON: {error}") from error
    intent = intended(_SCALE, body.value)
    scale = applied(_SCALE, live, intent, body, "scale", options, backend.now())
    if served.kind.custom:  # the kube-apiserver cannot apply scales of custom kinds
        why = f"request to convert CR to an invalid group/version: {_SCALE.api_version}"
        raise status.internal(f"failed to convert new object ({place_of(intent)}) to proper version: {why}")
    return scale


def _write(
    backend: Backend, served: Served, old: JsonObject, scale: JsonObject, options: WriteOptions, *, applied: bool
) -> JsonObject:
    """Set the replicas of an object from a scale, and return its new scale. Raises StatusError.

    The managed fields record that the number was written through the subresource.
    """
    paths, name = _paths(served), find_str(old, "metadata", "name")
    if not applied:
        if find(scale, "spec", "replicas") == 0:  # zero replicas are omitted, so they have no owner
            spec = find_object(scale, "spec")
            scale = {**scale, "spec": {name: value for name, value in spec.items() if name != "replicas"}}
        scale = record_update(
            _tracked_scale(served, old), scale, manager=options.manager, subresource="scale", now=backend.now(),
            lists=_SCALE.version.lists,
        )  # fmt: skip
    replicas = find_int(scale, "spec", "replicas")
    check_replicas(served, name, replicas)
    check_uid(served, old, scale, dry_run=options.dry_run)
    try:
        scaled = with_number(old, field_of(paths.replicas), replicas)
    except ShapeError as error:
        raise status.bad_request(f"{paths.replicas} cannot be set: {error}") from error
    version = find_str(scale, "metadata", "resourceVersion") or find_str(old, "metadata", "resourceVersion")
    changed = with_metadata(with_managers(scaled, _parent_managers(served, old, scale)), {"resourceVersion": version})
    return scale_of(paths, update(backend, served, old, changed, "scale", options, applied=True))


def _tracked_scale(served: Served, obj: JsonObject) -> JsonObject:
    """Return the scale of an object; its managed fields name the managers that own the number of replicas."""
    path = _field_path(served)
    managers = {
        replace(manager, api_version=manager.api_version and _SCALE.api_version): Owned(
            _REPLICAS, owned.time, _SCALE.api_version
        )
        for manager, owned in managers_of(obj).items()
        if path in owned.fields
    }
    return with_managers(scale_of(_paths(served), obj), managers)


def _parent_managers(served: Served, obj: JsonObject, scale: JsonObject) -> Managers:
    """Return the managers of an object after a write of its scale.

    If a manager becomes an owner of the replicas by writing a scale, its new entry has no time.
    """
    path, owners = _field_path(served), dict(managers_of(scale))
    found: dict[Manager, Owned] = {}
    for manager, owned in managers_of(obj).items():
        there = replace(manager, api_version=manager.api_version and _SCALE.api_version)
        fields = owned.fields
        if path in fields and owners.pop(there, None) is None:
            fields = fields.difference(FieldSet.of_paths([path]))
        if fields:
            found[manager] = replace(owned, fields=fields)
    for manager, owned in owners.items():
        if _REPLICAS_PATH in owned.fields:
            own = replace(manager, api_version=manager.api_version and served.api_version)
            found[own] = Owned(FieldSet.of_paths([path]), "", served.api_version)
    return found


def _field_path(served: Served) -> tuple[str, ...]:
    return tuple(f"f:{name}" for name in field_of(_paths(served).replicas))
