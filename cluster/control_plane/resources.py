"""Requests for objects: one step from a parsed request to its answer, by method and place.

This is the seam between HTTP and the verbs: options are parsed here, media types chosen, and codes set. Nothing here
waits, so each request is atomic; a watch is handed back as what to stream.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from wharfinger.cluster.control_plane import status
from wharfinger.cluster.control_plane.authentication import User, authorize_resource
from wharfinger.cluster.control_plane.backend import Backend
from wharfinger.cluster.control_plane.bodies import decode, encode
from wharfinger.cluster.control_plane.catalog import Served
from wharfinger.cluster.control_plane.creation import create
from wharfinger.cluster.control_plane.deletion import delete
from wharfinger.cluster.control_plane.intake import Written
from wharfinger.cluster.control_plane.negotiation import (
    Encoding,
    Representation,
    View,
    body_encoding,
    negotiate,
    parse_media_type,
)
from wharfinger.cluster.control_plane.options import (
    ListOptions,
    check_patch_options,
    parse_delete_options,
    parse_list_options,
    parse_write_options,
)
from wharfinger.cluster.control_plane.patching import BUILTIN_PATCHES, CUSTOM_PATCHES, PatchType, patch
from wharfinger.cluster.control_plane.reading import get, list_page, presented, selection
from wharfinger.cluster.control_plane.routes import ResourceRoute
from wharfinger.cluster.control_plane.scaling import get_scale, patch_scale, replace_scale
from wharfinger.cluster.control_plane.tables import check_include_object, list_view, object_view
from wharfinger.cluster.control_plane.updating import replace as replace_object
from wharfinger.cluster.control_plane.watching import Watch
from wharfinger.formats.json_value import JsonObject, JsonValue, find_object, find_str
from wharfinger.httpd.messages import Request

_OBJECT_VIEWS: Final = (View.TABLE, View.METADATA)
_LIST_VIEWS: Final = (View.TABLE, View.METADATA, View.METADATA_LIST)


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer: a code, a document, and how to write it."""

    code: int
    document: JsonObject
    representation: Representation
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WatchAnswer:
    """A watch to stream; ``render`` writes one event."""

    watch: Watch
    render: Callable[[str, JsonObject], bytes]
    representation: Representation
    warnings: tuple[str, ...] = ()


class NotServedError(Exception):
    """The path names nothing that is served."""


@dataclass(frozen=True, slots=True)
class _Call:
    """One request for an object or a collection, with all that its verb needs."""

    backend: Backend
    served: Served
    route: ResourceRoute
    request: Request

    @property
    def place(self) -> tuple[Backend, Served, str, str]:
        return self.backend, self.served, self.route.namespace, self.route.name

    def body(self, encoding: Encoding) -> JsonValue:
        return decode(self.request.body, encoding)

    def written(self, result: Written) -> Answer:
        """What a write came to, as the client wants to see it."""
        answer = self.answered(result.obj)
        code = 201 if result.created else 200
        return Answer(code, answer.document, answer.representation, (*answer.warnings, *result.warnings))

    def answered(self, document: JsonObject) -> Answer:
        """An object (or Status) as the client wants to see it."""
        representation = negotiate(self.request.headers.get("accept", ""), _OBJECT_VIEWS)
        if document.get("kind") not in {"Status", "Scale"}:
            include = check_include_object(self.request.arg("includeObject"))
            shown = presented(self.served, document)
            document = object_view(self.served, shown, representation.view, include, self.backend.now())
        return Answer(200, document, representation, self.warnings)

    @property
    def warnings(self) -> tuple[str, ...]:
        return (self.served.version.warning,) if self.served.version.warning else ()


def handle_resource(backend: Backend, user: User, route: ResourceRoute, request: Request) -> Answer | WatchAnswer:
    """Answer a request for a resource. Raises StatusError, and NotServedError for what is no resource."""
    served = backend.catalog.find(route.group, route.version, route.plural)
    if served is None or (route.namespace and not served.kind.namespaced):
        raise NotServedError
    if route.name and served.kind.namespaced and not route.namespace:
        raise NotServedError
    if route.plural == "namespaces" and not route.group:
        authorize_resource(user, _verb(route, request), served.kind, route.name, route.name, route.subresource)
    else:
        authorize_resource(user, _verb(route, request), served.kind, route.namespace, route.name, route.subresource)
    call = _Call(backend, served, route, request)
    if route.subresource:
        return _subresource(call)
    return _object(call) if route.name else _collection(call)


def _verb(route: ResourceRoute, request: Request) -> str:
    """The verb of RBAC."""
    if request.method == "GET":
        if route.watch or request.arg("watch") in {"1", "true"}:
            return "watch"
        return "get" if route.name else "list"
    if request.method == "DELETE" and not route.name:
        return "deletecollection"
    return {"POST": "create", "PUT": "update", "PATCH": "patch"}.get(request.method, request.method.lower())


def _collection(call: _Call) -> Answer | WatchAnswer:
    namespaced_elsewhere = call.served.kind.namespaced and not call.route.namespace
    match call.request.method:
        case "GET":
            options = parse_list_options(call.request.query, watch=call.route.watch)
            return _watch(call, options) if options.watch else _list(call, options)
        case "POST" if not namespaced_elsewhere:
            negotiate(call.request.headers.get("accept", ""), _OBJECT_VIEWS)
            encoding = body_encoding(call.request.headers.get("content-type", ""))
            user_agent = call.request.headers.get("user-agent", "")
            options_ = parse_write_options(call.request.query, user_agent, "CreateOptions")
            body = _typed_body(call, encoding)
            return call.written(create(call.backend, call.served, call.route.namespace, body, options_))
        case "DELETE" if not namespaced_elsewhere and "deletecollection" in call.served.kind.verbs:
            return _delete_collection(call)
        case _:
            raise status.method_not_allowed()


def _object(call: _Call) -> Answer | WatchAnswer:
    match call.request.method:
        case "GET":
            if call.route.watch or call.request.arg("watch") in {"1", "true"}:
                return _watch(call, parse_list_options(call.request.query, watch=True))
            parse_list_options({name: value for name, value in call.request.query.items() if name == "resourceVersion"})
            return call.answered(get(*call.place))
        case "PUT":
            return _put(call)
        case "PATCH":
            return _patch(call)
        case "DELETE":
            return call.answered(delete(*call.place, parse_delete_options(call.request.query, _optional_body(call))))
        case _:
            raise status.method_not_allowed()


def _subresource(call: _Call) -> Answer:
    name, version = call.route.subresource, call.served.version
    known = {"status": version.status, "scale": version.scale is not None, "finalize": call.served.kind.finalize}
    if not known.get(name, False):
        raise NotServedError
    match call.request.method:
        case "GET" if name != "finalize":
            return call.answered(get_scale(*call.place) if name == "scale" else get(*call.place))
        case "PUT":
            return _put(call)
        case "PATCH":
            return _patch(call)
        case _:
            raise status.method_not_allowed()


def _typed_body(call: _Call, encoding: Encoding) -> JsonValue:
    try:
        return call.body(encoding)
    except status.StatusError as error:
        if error.code != 400:
            raise
        kind = call.served.kind.kind
        message = (
            f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; {error.message}"
        )
        raise status.bad_request(message) from error


def _optional_body(call: _Call) -> JsonValue:
    """The options of a delete, where there are any."""
    if not call.request.body.strip():
        return None
    return call.body(body_encoding(call.request.headers.get("content-type", "")))


def _put(call: _Call) -> Answer:
    negotiate(call.request.headers.get("accept", ""), _OBJECT_VIEWS)
    encoding = body_encoding(call.request.headers.get("content-type", ""))
    options = parse_write_options(call.request.query, call.request.headers.get("user-agent", ""), "UpdateOptions")
    body = _typed_body(call, encoding)
    if call.route.subresource == "scale":
        return call.answered(replace_scale(*call.place, body, options))
    return call.written(replace_object(*call.place, call.route.subresource, body, options))


def _patch(call: _Call) -> Answer:
    negotiate(call.request.headers.get("accept", ""), _OBJECT_VIEWS)
    offered = CUSTOM_PATCHES if call.served.kind.custom else BUILTIN_PATCHES
    media, _ = parse_media_type(call.request.headers.get("content-type", ""))
    kind = next((item for item in offered if item.value == media), None)
    if kind is None:
        raise status.unsupported_media_type(offered)
    options = parse_write_options(call.request.query, call.request.headers.get("user-agent", ""), "PatchOptions")
    check_patch_options(call.request.query, apply=kind is PatchType.APPLY)
    body = call.body(Encoding.YAML if kind is PatchType.APPLY else Encoding.JSON)
    if call.route.subresource == "scale":
        return call.answered(patch_scale(*call.place, kind, body, options))
    return call.written(patch(*call.place, call.route.subresource, kind, body, options))


def _list(call: _Call, options: ListOptions) -> Answer:
    representation = negotiate(call.request.headers.get("accept", ""), _LIST_VIEWS)
    include = check_include_object(call.request.arg("includeObject")) if representation.view is View.TABLE else ""
    page = list_page(call.backend, call.served, call.route.namespace, options)
    metadata: JsonObject = {"resourceVersion": str(page.revision)}
    if page.continue_token:
        metadata["continue"] = page.continue_token
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    document = list_view(call.served, page.items, metadata, representation.view, include, call.backend.now())
    return Answer(200, document, representation, call.warnings)


def _delete_collection(call: _Call) -> Answer:
    """Delete what a selection meets; the answer is the list as it was before."""
    options = parse_delete_options(call.request.query, _optional_body(call))
    chosen = parse_list_options({name: values for name, values in call.request.query.items() if name != "watch"})
    page = list_page(call.backend, call.served, call.route.namespace, replace(chosen, limit=0))
    for item in page.items:
        metadata = find_object(item, "metadata")
        delete(call.backend, call.served, find_str(metadata, "namespace"), find_str(metadata, "name"), options)
    representation = negotiate(call.request.headers.get("accept", ""), _LIST_VIEWS)
    metadata_: JsonObject = {"resourceVersion": str(page.revision)}
    document = list_view(call.served, page.items, metadata_, View.OBJECT, "", call.backend.now())
    return Answer(200, document, representation, call.warnings)


def _watch(call: _Call, options: ListOptions) -> WatchAnswer:
    representation = negotiate(call.request.headers.get("accept", ""), _LIST_VIEWS)
    include = check_include_object(call.request.arg("includeObject")) if representation.view is View.TABLE else ""
    chosen = selection(call.served, options, name=call.route.name)
    watch = Watch(call.served, call.route.namespace, chosen, options)
    view = View.METADATA if representation.view is View.METADATA_LIST else representation.view
    headers = True

    def render(type_: str, obj: JsonObject) -> bytes:
        nonlocal headers
        if type_ != "ERROR":
            obj = object_view(call.served, obj, view, include, call.backend.now(), headers=headers)
            headers = False
        return encode({"type": type_, "object": obj}, Encoding.JSON)

    return WatchAnswer(watch, render, Representation(Encoding.JSON, view), call.warnings)
