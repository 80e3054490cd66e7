"""The verb patch, in four formats. Each patch yields the desired object, which is then handled like the object of an update.

The formats are JSON patches (RFC 6902), merge patches (RFC 7396), strategic merge patches (built-in kinds only), and server-side
apply (KEP-555). Only an apply can create objects. Any other patch is decoded only after its object was found, so that a missing
object is reported before an invalid patch.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.catalog.conversions import with_known_entries
from wharfinger.control_plane.catalog.custom_versions import undeclared
from wharfinger.control_plane.kinds.type_shapes import RAW
from wharfinger.control_plane.merging.merge_keys import PatchContentError, PatchError, PatchFormatError
from wharfinger.control_plane.merging.server_side_apply import (
    ApplyConflict,
    ApplyRefusedError,
    UndeclaredFieldError,
    apply,
    place_of,
)
from wharfinger.control_plane.merging.strategic_merge import merge_and_rest
from wharfinger.control_plane.merging.typed_check import type_problems
from wharfinger.control_plane.merging.typed_fields import KeylessItemError
from wharfinger.control_plane.merging.typed_result import restored
from wharfinger.control_plane.objects.object_metadata import with_metadata, without_status
from wharfinger.control_plane.verbs.creation import UNOWNED, create_object
from wharfinger.control_plane.verbs.custom_intake import custom_object
from wharfinger.control_plane.verbs.intake import (
    Written,
    check_name,
    check_namespace,
    intended,
    object_of,
    warnings_of_strict,
    with_header,
)
from wharfinger.control_plane.verbs.metadata_patches import with_patched_metadata
from wharfinger.control_plane.verbs.options import FieldValidation, WriteOptions, resource_version_of
from wharfinger.control_plane.verbs.preparation import keeps_status
from wharfinger.control_plane.verbs.reading import presented
from wharfinger.control_plane.verbs.updating import check_revision, status_keeps, update
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.bodies import Body, BodyError, LargeNumberError, read_body
from wharfinger.control_plane.wire.decoding import Decoded, DecodingError, go_type_of
from wharfinger.control_plane.wire.field_errors import invalid, quoted, sorted_members
from wharfinger.control_plane.wire.go_json import repeated_members
from wharfinger.control_plane.wire.go_printing import json_text, map_text, struct_order
from wharfinger.control_plane.wire.negotiation import Encoding
from wharfinger.control_plane.wire.refusals import RefusedError
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    ShapeError,
    as_object,
    find,
    find_list,
    find_object,
    find_str,
)
from wharfinger.kube.server_patch import MAX_OPERATIONS, OperationError, json_patched, merge_patched


class PatchType(StrEnum):
    """The media types of patches."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


BUILTIN_PATCHES = (PatchType.JSON, PatchType.MERGE, PatchType.STRATEGIC, PatchType.APPLY)
CUSTOM_PATCHES = (PatchType.JSON, PatchType.MERGE, PatchType.APPLY)
_IDENTITY: Final = ("name", "namespace", "uid", "resourceVersion", "managedFields")
_OPERATION_FIELDS: Final = ("op", "path", "from", "value")
_INVALID: Final = frozenset({400, 422})
_MAP: Final = "map[string]interface {}"


def patch(
    backend: Backend,
    served: Served,
    namespace: str,
    name: str,
    subresource: str,
    kind: PatchType,
    data: bytes,
    options: WriteOptions,
) -> Written:
    """Handle a PATCH: return the object as stored. Raises StatusError."""
    old = backend.get(served, namespace, name)
    if kind is PatchType.APPLY:
        return _apply(backend, served, namespace, name, subresource, data, old, options)
    if old is None:
        raise status.not_found(served.kind, name)
    live = presented(served, old)
    if kind is PatchType.MERGE and not subresource and not served.kind.custom:
        written = _with_metadata(backend, served, old, live, data, options)
        if written is not None:
            return written
    asked = patched_object(served, kind, live, data, options.validation)
    options.warnings.extend(asked.warnings)
    new = check_name(check_namespace(served, asked.obj, namespace), name)
    check_revision(served, new, name)
    stored = update(backend, served, old, new, subresource, options, applied=False)
    return Written(stored, warnings=asked.warnings)


def _with_metadata(
    backend: Backend, served: Served, old: JsonObject, live: JsonObject, data: bytes, options: WriteOptions
) -> Written | None:
    """Return the object as stored after a patch that changes only metadata; None for any other patch, or an invalid one."""
    new = with_patched_metadata(served, live, data)
    name, namespace = find_str(old, "metadata", "name"), find_str(old, "metadata", "namespace")
    if new is None or (find_str(new, "metadata", "name"), find_str(new, "metadata", "namespace")) != (name, namespace):
        return None
    warned = len(options.warnings)
    try:
        check_revision(served, new, name)
        return Written(update(backend, served, old, new, "", options, applied=False))
    except status.StatusError as error:
        if error.code not in _INVALID:
            raise
        del options.warnings[warned:]
        return None  # the common path validates the whole object, and produces the error message


def patched_object(
    served: Served, kind: PatchType, live: JsonObject, data: bytes, validation: FieldValidation
) -> Written:
    """Apply a patch of any format except server-side apply, and return the object, decoded like a request body. Raises
    StatusError."""
    if kind is PatchType.STRATEGIC:
        return _strategic(served, live, data, validation)
    return _patched_object(served, kind, live, data, validation)


def _patched_object(
    served: Served, kind: PatchType, live: JsonObject, data: bytes, validation: FieldValidation
) -> Written:
    """Apply a JSON patch or a merge patch. The patched object is decoded in the same way as the body of a request.

    Raises StatusError; errors of the decoder are reported as errors of the patch (422).
    """
    value, strict = patched(served, kind, live, data)
    if not served.kind.custom and isinstance(value, dict) and not value.get("apiVersion"):
        # Without an apiVersion, the type is unknown, so all fields are unknown.
        unknown = [
            f"unknown field {quoted(member)}" for member in sorted(value) if member not in {"apiVersion", "kind"}
        ]
        return _checked(Decoded({}, tuple(unknown)), strict, validation, lambda: json_text(value))
    try:
        read = object_of(served, Body(value, b"", Encoding.PROTOBUF), patched=True)
    except RefusedError as error:
        raise _invalid_patch(json_text(value), error.why) from error
    return _checked(read, strict, validation, lambda: json_text(value))


def _checked(read: Decoded, strict: Sequence[str], validation: FieldValidation, shown: Callable[[], str]) -> Written:
    complaints = (*strict, *read.strict)
    if complaints and validation is FieldValidation.STRICT:
        raise _invalid_patch(shown(), f"strict decoding error: {', '.join(complaints)}")
    return Written(read.obj, warnings=warnings_of_strict(complaints, validation))


def _invalid_patch(shown: str, why: str) -> status.StatusError:
    return status.invalid("", "", "", [invalid("patch", shown, why)])


def _unprocessable() -> status.StatusError:
    return status.StatusError(422, "Invalid", "the server rejected our request due to an error in our request", {})


def patched(served: Served, kind: PatchType, live: JsonObject, data: bytes) -> tuple[JsonValue, list[str]]:
    """Return an object after a JSON patch or merge patch, and the errors of a strict decoder. Raises StatusError."""
    try:
        body = read_body(data, Encoding.JSON)
    except BodyError as error:
        message = str(error)
        if kind is PatchType.JSON and isinstance(error, LargeNumberError):
            message = message.replace("Go value", "Go struct field jsonPatchOp.value")
        raise status.bad_request(f"error decoding patch: {message}") from error
    live = as_object(sorted_members(live), "live") if served.kind.custom else struct_order(live, served.version.lists)
    if kind is PatchType.JSON:
        operations, strict = _operations(body)
        try:
            return json_patched(live, operations), strict
        except (OperationError, ShapeError) as error:
            raise _unprocessable() from error
    if body.value is None:
        raise status.bad_request("Invalid JSON Patch")
    if not isinstance(body.value, dict):
        why = f"json: cannot unmarshal {go_type_of(body.value)} into Go value of type {_MAP}"
        raise status.bad_request(f"error decoding patch: {why}")
    return merge_patched(live, body.value), repeated_members(body.closely())


def _operations(body: Body) -> tuple[list[JsonObject], list[str]]:
    """Return the operations of a JSON patch, and the errors of a strict decoder about them. Raises StatusError."""

    def refused(value: JsonValue, where: str) -> status.StatusError:
        return status.bad_request(f"error decoding patch: json: cannot unmarshal {go_type_of(value)} into Go {where}")

    items = [] if body.value is None else body.closely()
    if not isinstance(items, list):
        raise refused(items, "value of type []handlers.jsonPatchOp")
    operations: list[JsonObject] = []
    strict: list[str] = []
    for index, item in enumerate(items):
        if not isinstance(item, dict | None):
            raise refused(item, "value of type handlers.jsonPatchOp")
        operation = item or {}
        for name in ("op", "path", "from"):
            if operation.get(name) is not None and not isinstance(operation[name], str):
                raise refused(operation[name], f"struct field jsonPatchOp.{name} of type string")
        strict += _operation_complaints(operation, index)
        operations.append(operation)
    if len(operations) > MAX_OPERATIONS:
        why = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise status.StatusError(413, "RequestEntityTooLarge", f"Request entity too large: {why}")
    return operations, strict


def _operation_complaints(operation: JsonObject, index: int) -> list[str]:
    unknown = [f"unknown field {quoted(f'[{index}].{name}')}" for name in operation if name not in _OPERATION_FIELDS]
    return [f"json patch {complaint}" for complaint in (*unknown, *repeated_members(operation, f"[{index}]"))]


def _strategic(served: Served, live: JsonObject, data: bytes, validation: FieldValidation) -> Written:
    """Return an object after a strategic merge patch. Raises StatusError."""
    try:
        body = read_body(data, Encoding.JSON)
    except BodyError as error:
        raise status.bad_request(str(error)) from error
    asked = {} if body.value is None else body.value
    if not isinstance(asked, dict):
        raise status.bad_request(f"json: cannot unmarshal {go_type_of(asked)} into Go value of type {_MAP}")
    lists = served.version.lists
    try:
        merged, rest = merge_and_rest(live, asked, lists)
    except PatchFormatError as error:
        raise status.bad_request(str(error)) from error
    except PatchContentError as error:
        raise _unprocessable() from error
    except (PatchError, ShapeError) as error:
        raise status.internal(str(error)) from error
    try:
        read = restored(merged, lists)
    except DecodingError as error:
        raise _invalid_patch(map_text(rest), str(error)) from error
    read = Decoded(with_header(served, read.obj), read.strict)
    return _checked(read, repeated_members(body.closely()), validation, lambda: map_text(rest))


def _apply(
    backend: Backend,
    served: Served,
    namespace: str,
    name: str,
    subresource: str,
    data: bytes,
    old: JsonObject | None,
    options: WriteOptions,
) -> Written:
    if old is None and subresource and not served.kind.create_on_update:
        raise status.not_found(served.kind, name)
    try:
        body = read_body(data, Encoding.YAML)
    except BodyError as error:
        raise status.bad_request(f"error decoding YAML: error converting YAML to JSON: {error}") from error
    sent = intended(served, body.value)
    intent = _changeable(served, sent, subresource)
    live = None if old is None else presented(served, old)
    read = applied(served, live, intent, body, subresource, options, backend.now(), sent=sent)
    if old is None and find_str(intent, "metadata", "uid"):
        given = find_str(intent, "metadata", "uid")
        why = f"uid mismatch: the provided object specified uid {given}, and no existing object was found"
        raise status.conflict(served.kind, name, why)
    new = check_name(check_namespace(served, read, namespace), name)
    if uid := find_str(intent, "metadata", "uid"):
        new = with_metadata(new, {"uid": uid})
    if old is None and keeps_status(served.kind) and "status" in sent:
        new = {**new, "status": _read_applied(served, sent)["status"]}
    asked = resource_version_of(intent)
    if old is not None and asked is not None and asked != resource_version_of(old):
        raise status.conflict(served.kind, name)
    if old is None:
        return Written(create_object(backend, served, new, options, applied=True), created=True)
    return Written(update(backend, served, old, new, subresource, options, applied=True))


def applied(
    served: Served,
    live: JsonObject | None,
    intent: JsonObject,
    body: Body,
    subresource: str,
    options: WriteOptions,
    now: datetime,
    *,
    sent: JsonObject | None = None,
) -> JsonObject:
    """Return an object after the apply of an intent, with updated managed fields (``server_side_apply``). Raises StatusError."""
    try:
        merged = apply(
            live,
            intent,
            manager=options.manager,
            force=options.force,
            subresource=subresource,
            now=now,
            lists=served.version.lists,
            reached=None if live is None else _owned(served, live, subresource),
            sent=sent,
        )
        options.warnings.extend(_strict_complaint(body, options.validation))
        if sent is not None and sent is not intent:
            _read_applied(served, sent)
        if live is not None and (wrong := served.kind.custom and undeclared(served, live, live, merged)):
            raise UndeclaredFieldError(wrong)
        merged = with_known_entries(served, merged)
        read = _read_applied(served, merged if subresource else _without_unowned(served, merged))
        return read if live is None else _with_raw_values(served, read, live)
    except ApplyConflict as error:
        raise status.apply_conflict(str(error), error.conflicts) from error
    except UndeclaredFieldError as error:
        raise status.internal(str(error)) from error
    except KeylessItemError as error:
        wrong = next(type_problems(live, served.version.lists), "")
        why = f"failed to convert new object ({place_of(live or intent)}) to smd typed: {wrong}"
        raise status.internal(f"failed to create manager for existing fields: {why}") from error
    except DecodingError as error:
        place = place_of(intent)
        why = f"unable to convert unstructured object to {place.partition('; ')[2]}: {error}"
        raise status.internal(f"failed to convert new object ({place}) to proper version: {why}") from error
    except (ApplyRefusedError, ShapeError) as error:
        raise status.bad_request(str(error)) from error


def _without_unowned(served: Served, merged: JsonObject) -> JsonObject:
    """Return the object; the fields that no manager can own in its kind (:data:`UNOWNED`) are removed from its managed fields."""
    names = [f"f:{name}" for name in UNOWNED.get(served.kind.group_kind, ())]
    if not names:
        return merged
    entries: list[JsonValue] = []
    for entry in find_list(merged, "metadata", "managedFields"):
        fields = {name: value for name, value in find_object(entry, "fieldsV1").items() if name not in names}
        entries += [{**entry, "fieldsV1": fields}] if isinstance(entry, dict) and fields else []
    return with_metadata(merged, {"managedFields": entries or None})


def _owned(served: Served, live: JsonObject, subresource: str) -> JsonObject:
    """Return the fields of an object that a write to this subresource can change and that managers can own."""
    reached = _changeable(served, live, subresource)
    unowned = () if subresource else UNOWNED.get(served.kind.group_kind, ())
    return {name: value for name, value in reached.items() if name not in unowned} if unowned else reached


def _changeable(served: Served, intent: JsonObject, subresource: str) -> JsonObject:
    """Return the intent without the fields that a write to this subresource cannot change, so that no manager owns them."""
    if not subresource:
        return without_status(intent) if served.version.status else intent
    if subresource == "status" and served.kind.custom:
        metadata = find(intent, "metadata")
        kept = {name: value for name, value in intent.items() if name in {"apiVersion", "kind", "status"}}
        if "metadata" in intent:
            kept["metadata"] = metadata
        if isinstance(metadata, dict):
            kept["metadata"] = {name: value for name, value in metadata.items() if name in _IDENTITY}
        return kept
    if subresource != "status":
        return intent
    metadata = find(intent, "metadata")
    if isinstance(metadata, dict) and not metadata.keys().isdisjoint(unreached := status_keeps(served.kind)):
        intent = {**intent, "metadata": {name: value for name, value in metadata.items() if name not in unreached}}
    return {name: value for name, value in intent.items() if name != "spec"}


def _strict_complaint(body: Body, validation: FieldValidation) -> tuple[str, ...]:
    """Return the errors of a strict YAML decoder in the body of an apply, as warnings. With ``Strict`` validation, raise
    StatusError instead.
    """
    if not body.repeats or validation is FieldValidation.IGNORE:
        return ()
    lines = "\n".join(f"  {line}" for line in body.repeats)
    complaint = f"error converting YAML to JSON: yaml: unmarshal errors:\n{lines}"
    if validation is FieldValidation.STRICT:
        raise status.bad_request(f"error strict decoding YAML: {complaint}")
    return tuple(line.strip() for line in body.repeats)


def _with_raw_values(served: Served, read: JsonObject, live: JsonObject) -> JsonObject:
    """Return the applied object; if only metadata changed, members with arbitrary JSON keep their stored form."""
    raw = [name for name, types in served.version.lists.fields.items() if types is RAW and name in live]
    if not raw or any(read.get(name) != live.get(name) for name in read.keys() | live.keys() if name != "metadata"):
        return read
    return {**read, **{name: live[name] for name in raw}}


def _read_applied(served: Served, merged: JsonObject) -> JsonObject:
    """Return the merged object in the form of its kind's type. Raises DecodingError, StatusError."""
    if served.kind.custom:
        return custom_object(served, Body(merged), patched=True).obj
    return with_header(served, restored(merged, served.version.lists).obj)
