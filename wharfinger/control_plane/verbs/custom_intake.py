"""Request bodies of custom kinds: metadata is decoded as its Go type, and other fields are kept if the schema declares them."""

from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.custom.embedded_objects import coerced, coerced_metadata
from wharfinger.control_plane.custom.pruning import pruned
from wharfinger.control_plane.kinds.type_shapes import ListTypes, metadata_list_types
from wharfinger.control_plane.kinds.typed_form import typed_form
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.bodies import Body, LargeNumberError, with_plain_numbers
from wharfinger.control_plane.wire.decoding import Decoded, DecodingError, decoded, go_type_of
from wharfinger.control_plane.wire.field_errors import invalid
from wharfinger.control_plane.wire.go_json import may_repeat, repeated_members
from wharfinger.control_plane.wire.go_printing import json_text
from wharfinger.control_plane.wire.negotiation import Encoding
from wharfinger.control_plane.wire.refusals import (
    KIND_MISSING,
    WrongKindError,
    kind_complaint,
    refused,
    repeats_complaint,
    unrecognized,
)
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find_str
from wharfinger.kube.resource import split_api_version


def custom_object(served: Served, body: Body, *, patched: bool = False) -> Decoded:
    """Return the body as an object of a custom kind, and the errors of a strict decoder.

    A wrong or missing apiVersion is refused with 400, or with 422 in the result of a patch (``patched``). Raises StatusError.
    """
    value = _checked(served, body)
    api_version, kind = find_str(value, "apiVersion"), find_str(value, "kind")
    try:
        metadata, strict = _metadata(value.get("metadata"))
    except DecodingError as error:
        raise refused(kind, split_api_version(api_version)[1], str(error), served.kind.kind) from error
    if api_version != served.api_version and not patched:
        raise status.bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version ({served.api_version})"
        )
    if wrong := _type_errors(served, api_version, kind):
        refusal = status.invalid(split_api_version(api_version)[0], kind, find_str(metadata, "name"), wrong)
        raise WrongKindError({"metadata": metadata}, refusal)
    rest = {name: item for name, item in value.items() if name not in {"apiVersion", "kind", "metadata"}}
    obj: JsonObject = {"kind": kind, "apiVersion": api_version, "metadata": metadata, **rest}
    schema = served.version.schema
    kept, unknown = pruned(schema, obj, root=True)
    inner: list[str] = []
    if served.version.embeds:
        if wrong_type := coerced(schema, kept):
            raise refused(served.kind.kind, served.version.name, str(wrong_type))
        kept, inner = coerced_metadata(schema, kept)
    complaints = (*_repeats(body, value), *strict, *(f'unknown field "{path}"' for path in (*unknown, *inner)))
    return Decoded(as_object(kept, "the body"), complaints)


def _checked(served: Served, body: Body) -> JsonObject:
    """Return the body as an object with a kind. Raises StatusError (400)."""
    value, kind = body.value, served.kind.kind
    if complaint := kind_complaint(value):
        raise unrecognized(kind, complaint, body)
    if not isinstance(value, dict) or not value.get("kind"):
        # The result of a patch is computed, so there is no text that a client sent.
        text = body.data.decode(errors="replace") if body.data or value is None else json_text(value)
        raise unrecognized(kind, f"{KIND_MISSING}'{text}'", body)
    if find_str(value, "apiVersion").count("/") > 1:
        raise unrecognized(kind, f"unexpected GroupVersion string: {value['apiVersion']}", body)
    try:
        return as_object(with_plain_numbers(value), "the body")
    except LargeNumberError as error:
        raise refused(kind, served.version.name, str(error)) from error


def _metadata(value: JsonValue) -> tuple[JsonObject, tuple[str, ...]]:
    """Return metadata in the form of its Go type, and the errors of a strict decoder about it. Raises DecodingError."""
    if value is None:
        return {}, ()
    types: ListTypes = metadata_list_types()
    if not isinstance(value, dict):
        raise DecodingError(f"json: cannot unmarshal {go_type_of(value)} into Go value of type {types.go_type}")
    read = decoded(value, types)
    strict = tuple(complaint.replace(' field "', ' field "metadata.', 1) for complaint in read.strict)
    formed = typed_form(read.obj, types)  # without empty members, as in built-in kinds
    if read.obj.get("managedFields") == []:
        return {**formed, "managedFields": [{}]}, strict
    return formed, strict


def _type_errors(served: Served, api_version: str, kind: str) -> list[FieldError]:
    errors = [] if kind == served.kind.kind else [invalid("kind", kind, f"must be {served.kind.kind}")]
    if api_version != served.api_version:
        errors.append(invalid("apiVersion", api_version, f"must be {served.api_version}"))
    return errors


def _repeats(body: Body, value: JsonObject) -> list[str]:
    if body.encoding is Encoding.YAML:
        return repeats_complaint(body)
    return repeated_members(body.closely()) if body.data and may_repeat(body.data, value) else []
