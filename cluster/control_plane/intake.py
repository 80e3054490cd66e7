"""What a body must be before a verb looks at it: of the right kind and version, for the name and namespace of the path.

The messages are those of the kube-apiserver's decoders, which differ between built-in and custom kinds.
"""

from dataclasses import dataclass
from typing import Final

from wharfinger.cluster.control_plane import status
from wharfinger.cluster.control_plane.catalog import Served
from wharfinger.cluster.control_plane.options import FieldValidation
from wharfinger.cluster.control_plane.pruning import prune
from wharfinger.formats.json_value import (
    JsonObject,
    JsonValue,
    ShapeError,
    as_object,
    find,
    find_list,
    find_object,
    find_str,
)


@dataclass(frozen=True, slots=True)
class Written:
    """What a write came to: the object, whether it is new, and what the client is warned of."""

    obj: JsonObject
    created: bool = False
    warnings: tuple[str, ...] = ()


def accepted(served: Served, body: JsonValue, validation: FieldValidation) -> Written:
    """The body as an object of the kind, without undeclared fields. Raises StatusError (400)."""
    obj, unknown = prune(typed(served, body), served.version.lists)
    said = tuple(f'unknown field "{path}"' for path in unknown)
    if said and validation is FieldValidation.STRICT:
        raise status.bad_request(f"{_as(served)}: strict decoding error: {', '.join(said)}")
    return Written(obj, warnings=said if validation is FieldValidation.WARN else ())


def typed(served: Served, body: JsonValue) -> JsonObject:
    """The body as an object of the kind, with apiVersion, kind and metadata there. Raises StatusError (400)."""
    if not isinstance(body, dict):
        raise status.bad_request(
            f"{_as(served)}: json: cannot unmarshal {go_type(body)} into Go value of type {served.kind.kind}"
        )
    try:
        api_version, kind = find_str(body, "apiVersion"), find_str(body, "kind")
        metadata = find_object(body, "metadata")
        for name in ("labels", "annotations"):
            _check_strings(served, f"ObjectMeta.metadata.{name}", find_object(metadata, name))
        for name in ("name", "namespace", "generateName", "resourceVersion", "uid"):
            find_str(metadata, name)
        for name in ("finalizers", "ownerReferences"):
            find_list(metadata, name)
        for name in () if served.kind.custom else ("spec", "status"):
            find_object(body, name)
    except ShapeError as error:
        raise status.bad_request(f"{_as(served)}: {error}") from error
    _check_type(served, api_version, kind)
    body = _string_maps(served, body)
    rest = {name: value for name, value in body.items() if name not in {"apiVersion", "kind", "metadata"}}
    return {"kind": served.kind.kind, "apiVersion": served.api_version, "metadata": metadata, **rest}


_STRING_MAPS: Final = {"ConfigMap": ("data",), "Secret": ("stringData",)}
"""Maps of strings where a person easily writes a number; null in them reads as ""."""


def _string_maps(served: Served, body: JsonObject) -> JsonObject:
    for field in _STRING_MAPS.get(served.kind.group_kind, ()):
        values = body.get(field)
        if isinstance(values, dict):
            _check_strings(served, f"{served.kind.kind}.{field}", values)
            body = {**body, field: {key: "" if value is None else value for key, value in values.items()}}
    return body


def _check_strings(served: Served, field: str, values: JsonObject) -> None:
    for value in values.values():
        if value is not None and not isinstance(value, str):
            raise status.bad_request(
                f"{_as(served)}: json: cannot unmarshal {go_type(value)} into Go struct field {field} of type string"
            )


def go_type(value: JsonValue) -> str:
    """What encoding/json calls the type of a value."""
    if isinstance(value, bool):
        return "bool"
    return {dict: "object", list: "array", int: "number", float: "number"}.get(type(value), "string")


def _as(served: Served) -> str:
    kind = served.kind.kind
    return f'{kind} in version "{served.version.name}" cannot be handled as a {kind}'


def _check_type(served: Served, api_version: str, kind: str) -> None:
    expected = served.api_version
    if served.kind.custom:
        if not kind or not api_version:
            raise status.bad_request(f"{_as(served)}: Object '{'Kind' if not kind else 'apiVersion'}' is missing")
        if api_version != expected:
            raise status.bad_request(
                f"the API version in the data ({api_version}) does not match the expected API version ({expected})"
            )
        if kind != served.kind.kind:
            raise status.bad_request(
                f"the kind in the data ({kind}) does not match the expected kind ({served.kind.kind})"
            )
    elif api_version not in ("", expected) or kind not in ("", served.kind.kind):
        registered = f'no kind "{kind or served.kind.kind}" is registered for version "{api_version or expected}"'
        raise status.bad_request(f'{_as(served)}: {registered} in scheme "pkg/api/legacyscheme/scheme.go:30"')


def check_namespace(served: Served, obj: JsonObject, namespace: str) -> JsonObject:
    """The object in the namespace of the request; another one in it is refused, none is filled in."""
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
    """The object with the name of the path; another one in it is refused, none is filled in."""
    given = find_str(obj, "metadata", "name")
    if given and given != name:
        raise status.bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")
    return obj if given else {**obj, "metadata": {**as_object(find(obj, "metadata"), "metadata"), "name": name}}
