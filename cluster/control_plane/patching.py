"""PATCH in its four dialects; each computes the object as it should be, and hands over to the one way of updating.

``application/json-patch+json`` (RFC 6902), ``application/merge-patch+json`` (RFC 7396), strategic merge patches (built-in
kinds only), and server-side apply (KEP-555), the only one that can create.
"""

import json
from dataclasses import replace
from enum import StrEnum

from wharfinger.cluster.control_plane import status
from wharfinger.cluster.control_plane.backend import Backend
from wharfinger.cluster.control_plane.catalog import Served
from wharfinger.cluster.control_plane.creation import create_object
from wharfinger.cluster.control_plane.intake import Written, accepted, check_name, check_namespace, go_type, typed
from wharfinger.cluster.control_plane.options import WriteOptions, resource_version_of
from wharfinger.cluster.control_plane.preparation import without_status
from wharfinger.cluster.control_plane.reading import presented
from wharfinger.cluster.control_plane.server_side_apply import (
    ApplyConflict,
    ApplyRefusedError,
    UndeclaredFieldError,
    apply,
)
from wharfinger.cluster.control_plane.status import FieldError
from wharfinger.cluster.control_plane.strategic_merge import PatchError, strategic_merge
from wharfinger.cluster.control_plane.updating import update
from wharfinger.formats.json_patch import JsonPatchError, JsonPatchFailedError, apply_json_patch
from wharfinger.formats.json_value import JsonObject, JsonValue, ShapeError, as_object, encode_json, find, find_str
from wharfinger.formats.merge_patch import merge_patch


class PatchType(StrEnum):
    """The media types of patches."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


BUILTIN_PATCHES = (PatchType.JSON, PatchType.MERGE, PatchType.STRATEGIC, PatchType.APPLY)
CUSTOM_PATCHES = (PatchType.JSON, PatchType.MERGE, PatchType.APPLY)


def patch(
    backend: Backend,
    served: Served,
    namespace: str,
    name: str,
    subresource: str,
    kind: PatchType,
    body: JsonValue,
    options: WriteOptions,
) -> Written:
    """PATCH: the object as stored. Raises StatusError."""
    old = backend.get(served, namespace, name)
    if kind is PatchType.APPLY:
        return _apply(backend, served, namespace, name, subresource, body, old, options)
    if old is None:
        raise status.not_found(served.kind, name)
    live = presented(served, old)
    asked = _accepted_patch(served, patched(served, kind, live, body), options)
    new = check_name(check_namespace(served, asked.obj, namespace), name)
    return replace(asked, obj=update(backend, served, old, new, subresource, options, applied=False))


def _accepted_patch(served: Served, obj: JsonObject, options: WriteOptions) -> Written:
    """A patched object, taken in as a body is; what is wrong with it is said of the patch (422)."""
    try:
        return accepted(served, obj, options.validation)
    except status.StatusError as error:
        why = error.message.partition(" cannot be handled as a ")[2].partition(": ")[2] or error.message
        message = f"Invalid value: {json.dumps(encode_json(obj).decode())}: {why}"
        raise status.invalid("", "", "", [FieldError("patch", "FieldValueInvalid", message)]) from error


def patched(served: Served, kind: PatchType, live: JsonObject, body: JsonValue) -> JsonObject:
    """An object with a patch on it. Raises StatusError."""
    try:
        if kind is PatchType.JSON:
            if not isinstance(body, list):
                raise status.bad_request("error decoding patch: a JSON patch is a list of operations")
            return as_object(apply_json_patch(live, body), "the patched object")
        if not isinstance(body, dict):
            what = f"json: cannot unmarshal {go_type(body)} into Go value of type map[string]interface {{}}"
            raise status.bad_request(f"error decoding patch: {what}")
        if kind is PatchType.MERGE:
            return as_object(merge_patch(live, body), "the patched object")
        return strategic_merge(live, body, served.version.lists)
    except JsonPatchFailedError as error:
        message = "the server rejected our request due to an error in our request"
        raise status.StatusError(422, "Invalid", message, {}) from error
    except JsonPatchError as error:
        raise status.bad_request(f"error decoding patch: {error}") from error
    except (PatchError, ShapeError) as error:
        raise status.bad_request(str(error)) from error


def _apply(
    backend: Backend,
    served: Served,
    namespace: str,
    name: str,
    subresource: str,
    body: JsonValue,
    old: JsonObject | None,
    options: WriteOptions,
) -> Written:
    intent = _intent(served, namespace, name, body)
    if old is None and subresource:
        raise status.not_found(served.kind, name)
    if served.version.status and not subresource:
        intent = without_status(intent)
    asked = resource_version_of(intent)
    if asked is not None and (old is None or asked != resource_version_of(old)):
        raise status.conflict(served.kind, name)
    live = None if old is None else presented(served, old)
    try:
        merged = apply(
            live,
            intent,
            manager=options.manager,
            force=options.force,
            subresource=subresource,
            now=backend.now(),
            lists=served.version.lists,
        )
    except ApplyConflict as error:
        raise _apply_conflict(error) from error
    except UndeclaredFieldError as error:
        raise status.internal(str(error)) from error
    except (ApplyRefusedError, ShapeError) as error:
        raise status.bad_request(str(error)) from error
    merged = check_namespace(served, merged, namespace)
    if old is None:
        return Written(create_object(backend, served, merged, options, applied=True), created=True)
    return Written(update(backend, served, old, merged, subresource, options, applied=True))


def _apply_conflict(error: ApplyConflict) -> status.StatusError:
    return status.apply_conflict(str(error), error.conflicts)


def _intent(served: Served, namespace: str, name: str, body: JsonValue) -> JsonObject:
    """What an apply asks for. Raises StatusError."""
    if not isinstance(body, dict):
        raise status.bad_request("error decoding YAML: the applied configuration is not an object")
    if find(body, "metadata", "managedFields") is not None:
        raise status.bad_request("metadata.managedFields must be nil")
    api_version, kind = find_str(body, "apiVersion"), find_str(body, "kind")
    if (api_version, kind) != (served.api_version, served.kind.kind):
        group, _, version = api_version.rpartition("/")
        raise status.bad_request(f"invalid object type: {group}/{version}, Kind={kind}")
    intent = check_name(typed(served, body), name)
    check_namespace(served, intent, namespace)
    return intent
