"""The decoding of a request body: its kind and version must match the path, and so must its name and namespace.

The messages come from kube-apiserver's decoders, which differ between built-in and custom kinds.
"""

from collections.abc import Sequence

import msgspec

from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.catalog.unserved_kinds import is_former, is_unserved
from wharfinger.control_plane.kinds.type_shapes import ListTypes, builtin_list_types, is_builtin
from wharfinger.control_plane.verbs.custom_intake import custom_object
from wharfinger.control_plane.verbs.options import FieldValidation
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.bodies import Body, as_body
from wharfinger.control_plane.wire.decoding import Decoded, DecodingError, decoded, go_type_of
from wharfinger.control_plane.wire.go_json import may_repeat
from wharfinger.control_plane.wire.negotiation import Encoding
from wharfinger.control_plane.wire.refusals import (
    KIND_FIELDS,
    KIND_MISSING,
    REPEATS,
    RefusedError,
    kind_complaint,
    refused,
    repeats_complaint,
    unrecognized,
)
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find_object, find_str
from wharfinger.kube.resource import split_api_version


class Written(msgspec.Struct, frozen=True):
    """The result of a write: the object, whether it is new, and the warnings for the client."""

    obj: JsonObject
    created: bool = False
    warnings: tuple[str, ...] = ()


def accepted(served: Served, body: "JsonValue | Body", validation: FieldValidation) -> Written:
    """Return the body as an object of the kind, without undeclared fields. Raises StatusError (400)."""
    try:
        read = object_of(served, as_body(body))
    except RefusedError as error:
        if validation is FieldValidation.IGNORE and error.why.startswith(KIND_MISSING):
            raise _refused(served, error.why) from error
        raise
    if read.strict and validation is FieldValidation.STRICT:
        raise _refused(served, f"strict decoding error: {', '.join(read.strict)}")
    return Written(read.obj, warnings=warnings_of_strict(read.strict, validation))


def object_of(served: Served, body: Body, *, patched: bool = False) -> Decoded:
    """Return the body as an object of the kind, and the errors of a strict decoder. Raises StatusError (400)."""
    return custom_object(served, body, patched=patched) if served.kind.custom else _builtin_object(served, body)


def warnings_of_strict(strict: Sequence[str], validation: FieldValidation) -> tuple[str, ...]:
    """Return the warnings for the errors of a strict decoder; an error about YAML gives one warning per line."""
    if validation is not FieldValidation.WARN:
        return ()
    return tuple(
        line.strip()
        for text in strict
        for line in (text.removeprefix(REPEATS).split("\n") if text.startswith(REPEATS) else [text])
    )


def _builtin_object(served: Served, body: Body) -> Decoded:
    """Return the body in the form of a built-in kind's type. Raises StatusError (400)."""
    value: JsonValue = {} if body.value is None else body.value
    wanted = served.kind.kind
    api_version, kind = _named(wanted, value, body)
    if api_version.count("/") > 1:
        raise unrecognized(wanted, f"unexpected GroupVersion string: {api_version}", body)
    group, version = split_api_version(api_version)
    kind = kind or wanted
    if not version and group in {"", served.kind.group}:
        group, version = served.kind.group, served.version.name
    if (group, kind) != (served.kind.group, wanted) or not is_builtin(group, version, kind):
        raise _of_another_kind(served, group, version, kind, body)
    try:
        read = read_typed(body, served.version.lists)
    except DecodingError as error:
        raise _refused(served, str(error)) from error
    if version != served.version.name:
        raise _other_version(served, api_version)
    return Decoded(with_header(served, read.obj), read.strict)


def with_header(served: Served, obj: JsonObject) -> JsonObject:
    """Return the object with its kind, apiVersion and metadata first.

    An empty list of managed fields becomes ``[{}]``, which removes all of them.
    """
    rest = {name: item for name, item in obj.items() if name not in {"apiVersion", "kind", "metadata"}}
    metadata = find_object(obj, "metadata")
    if metadata.get("managedFields") == []:
        metadata = {**metadata, "managedFields": [{}]}
    return {"kind": served.kind.kind, "apiVersion": served.api_version, "metadata": metadata, **rest}


def intended(served: Served, value: JsonValue) -> JsonObject:
    """Return the intent of an apply: an object of the exact kind and version. Raises StatusError (400)."""
    if value is None:
        value = {}
    if not isinstance(value, dict):
        why = f"json: cannot unmarshal {go_type_of(value)} into Go value of type map[string]interface {{}}"
        raise status.bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {why}")
    api_version, kind = value.get("apiVersion"), value.get("kind")
    if (api_version, kind) != (served.api_version, served.kind.kind):
        group, version = split_api_version(api_version if isinstance(api_version, str) else "")
        raise status.bad_request(
            f"invalid object type: {group}/{version}, Kind={kind if isinstance(kind, str) else ''}"
        )
    return value


def read_typed(body: Body, lists: ListTypes) -> Decoded:
    """Return a body decoded by a type; a body with errors is decoded again with more detailed errors. Raises DecodingError."""
    value = as_object(body.value or {}, "the body")
    repeats = repeats_complaint(body)
    if body.encoding is Encoding.JSON and body.data and may_repeat(body.data, value):
        read = decoded(as_object(body.closely(), "the body"), lists)
    else:
        try:
            read = decoded(value, lists)
        except DecodingError:
            return decoded(as_object(body.closely(), "the body"), lists)
        if read.strict if body.encoding is Encoding.YAML else read.respelled:
            read = decoded(as_object(body.closely(), "the body"), lists)
    return Decoded(read.obj, (*repeats, *read.strict)) if repeats else read


def _named(wanted: str, value: JsonValue, body: Body) -> tuple[str, str]:
    """Return the apiVersion and kind of a body. In the names of these two fields, upper and lower case are the same. Raises
    StatusError (400).
    """
    if complaint := kind_complaint(value):
        raise unrecognized(wanted, complaint, body)
    found = {"apiVersion": "", "kind": ""}
    for name, item in value.items() if isinstance(value, dict) else ():
        field = KIND_FIELDS.get(name.lower()) if len(name) in {4, 10} else None
        if field is not None and isinstance(item, str):
            found[field] = item
    return found["apiVersion"], found["kind"]


def _of_another_kind(served: Served, group: str, version: str, kind: str, body: Body) -> status.StatusError:
    """Return the error (400) for an object of another kind. An object of a built-in kind is first decoded as that kind, and the
    error of the decoder, if any, is returned.
    """
    wanted = served.kind.kind
    api_version = f"{group}/{version}" if group else version
    package = served.kind.group.partition(".")[0] or "core"
    unknown = f"converting ({version}.{kind}) to ({package}.{wanted}): unknown conversion"
    if kind == wanted and is_former(group, version, kind, served.kind.group):
        return _other_version(served, api_version)
    if is_builtin(group, version, kind):
        why = unknown
        try:
            read_typed(body, builtin_list_types(group, version, kind))
        except DecodingError as error:
            why = str(error)
    elif is_unserved(group, version, kind):
        why = unknown
    else:
        why = (
            f'no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/api/legacyscheme/scheme.go:30"'
        )
    return refused(kind, version, why, wanted)


def _other_version(served: Served, api_version: str) -> status.StatusError:
    return status.bad_request(
        f"the API version in the data ({api_version}) does not match the expected API version ({served.api_version})"
    )


def _refused(served: Served, why: str) -> status.StatusError:
    return refused(served.kind.kind, served.version.name, why)


def check_namespace(served: Served, obj: JsonObject, namespace: str) -> JsonObject:
    """Return the object in the namespace of the request. Raises StatusError (400) if the object names another namespace."""
    given = find_str(obj, "metadata", "namespace")
    if served.kind.namespaced and given and given != namespace:
        raise status.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    metadata = {name: value for name, value in find_object(obj, "metadata").items() if name != "namespace"}
    if served.kind.namespaced:
        metadata["namespace"] = namespace
    return {**obj, "metadata": metadata}


def check_name(obj: JsonObject, name: str) -> JsonObject:
    """Return the object. Raises StatusError (400) if its name is missing, or differs from the name in the path."""
    given = find_str(obj, "metadata", "name")
    if given and given != name:
        raise status.bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")
    if not given:
        why = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        raise status.bad_request(why)
    return obj
