"""The options of a DELETE request: its body (``DeleteOptions``), or the parameters of its query if it has no body."""

from typing import Final

from wharfinger.control_plane.catalog.unserved_kinds import is_options
from wharfinger.control_plane.kinds.type_shapes import delete_options_types
from wharfinger.control_plane.verbs.intake import read_typed
from wharfinger.control_plane.verbs.options import DeleteOptions, parse_delete_options
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.bodies import Body, BodyError, read_body
from wharfinger.control_plane.wire.decoding import DecodingError
from wharfinger.control_plane.wire.negotiation import Encoding, body_encoding
from wharfinger.control_plane.wire.refusals import kind_complaint
from wharfinger.formats.json.value import find_str
from wharfinger.httpd.messages import Request


def delete_options(request: Request) -> DeleteOptions:
    """Return the options of a delete. Raises StatusError."""
    if not request.body:
        return parse_delete_options(request.query, None)
    encoding = body_encoding(request.headers.get("content-type", ""))
    try:
        body = read_body(request.body, encoding)
    except BodyError as error:
        prefix = "couldn't get version/kind; json parse error: " if encoding is Encoding.JSON else ""
        raise status.bad_request(f"{prefix}{error}") from error
    if complaint := kind_complaint(body.value):
        raise status.bad_request(complaint)
    _check_kind(body)
    try:
        return parse_delete_options({}, read_typed(_named(body), delete_options_types()).obj)
    except DecodingError as error:
        raise status.bad_request(str(error)) from error


_SCHEME: Final = "pkg/apis/meta/internalversion/scheme/register.go:27"


def _check_kind(body: Body) -> None:
    """Refuse a body of another kind than ``DeleteOptions``. Raises StatusError (400)."""
    kind, api_version = (find_str(body.value, name) for name in ("kind", "apiVersion"))
    if not kind or kind == "DeleteOptions":
        return
    if is_options(kind):
        version = api_version.rpartition("/")[2] or "v1"
        raise status.bad_request(f"converting ({version}.{kind}) to (v1.DeleteOptions): unknown conversion")
    where = api_version or "meta.k8s.io/v1"
    raise status.bad_request(f'no kind "{kind}" is registered for version "{where}" in scheme "{_SCHEME}"')


def _named(body: Body) -> Body:
    return body if isinstance(body.value, dict) else Body({})
