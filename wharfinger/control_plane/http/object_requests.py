"""The answers to requests for objects, by method and path.

This module is the border between HTTP and the verbs: it parses options, and chooses media types and status codes. Nothing here
waits, so each request is atomic. For a watch, the caller gets what it needs to stream events.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import msgspec

from wharfinger.control_plane.access.users import User
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.http.allowed_methods import check_method, unserved_resource_error
from wharfinger.control_plane.http.tables import at_version, check_include_object, has_tables, list_view, object_view
from wharfinger.control_plane.objects.name_rules import segment_name
from wharfinger.control_plane.special_endpoints.connections import CONNECTED, connected
from wharfinger.control_plane.special_endpoints.endpoint import (
    EndpointFunction,
    EndpointRequest,
    PodCommand,
    endpoint_name,
)
from wharfinger.control_plane.special_endpoints.table import ENDPOINTS
from wharfinger.control_plane.verbs.creation import check_namespace_open, create
from wharfinger.control_plane.verbs.deletion import delete
from wharfinger.control_plane.verbs.deletion_requests import delete_options
from wharfinger.control_plane.verbs.intake import Written
from wharfinger.control_plane.verbs.options import (
    ListOptions,
    Query,
    WriteOptions,
    asked_revision,
    asks_to_watch,
    parse_list_options,
    parse_write_options,
)
from wharfinger.control_plane.verbs.patching import BUILTIN_PATCHES, CUSTOM_PATCHES, PatchType, patch
from wharfinger.control_plane.verbs.reading import check_fields, get, list_page, presented, raw_list, selection
from wharfinger.control_plane.verbs.scaling import get_scale, patch_scale, replace_scale, shown_as
from wharfinger.control_plane.verbs.updating import replace as replace_object
from wharfinger.control_plane.verbs.watching import UnshowableError, Watch
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.bodies import (
    BODY_LIMIT,
    Body,
    BodyError,
    LargeNumberError,
    decode,
    encode,
    read_body,
    too_large,
)
from wharfinger.control_plane.wire.field_errors import quoted
from wharfinger.control_plane.wire.negotiation import (
    OFFERED,
    Encoding,
    Representation,
    View,
    body_encoding,
    negotiate,
    patch_media,
)
from wharfinger.control_plane.wire.refusals import refused, unreadable
from wharfinger.control_plane.wire.routes import ResourceRoute
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_object, find_str
from wharfinger.httpd.messages import Request

_OTHERS: Final = frozenset({"Status", "TokenRequest"})
"""The kinds of responses that are always sent as they are, and not in a view such as a Table."""
_PLAIN: Final = Representation(Encoding.JSON)
_REVIEWS: Final = "localsubjectaccessreviews"
"""The resource that may be requested even in a namespace that does not exist."""
_VIEWS: Final = (View.TABLE, View.METADATA, View.METADATA_LIST)
"""All views of objects and lists. The negotiation accepts any of them, even a view of one object for a list. A view that does
not fit the answer is refused later: if the request writes, only after the write."""


class Answer(msgspec.Struct, frozen=True):
    """A complete answer: its code, its document, and the representation of the document."""

    code: int
    document: JsonObject
    representation: Representation
    warnings: tuple[str, ...] = ()
    text: str | None = None
    """Plain text that is sent instead of the document, for example the logs of a container; None to send the document."""


@dataclass(frozen=True, slots=True)
class WatchAnswer:
    """The answer to a watch request: the watch whose events are streamed. ``render`` encodes an event, given its type and
    object.
    """

    watch: Watch
    render: Callable[[str, JsonObject], bytes]
    representation: Representation
    warnings: tuple[str, ...] = ()


class _Call(msgspec.Struct, frozen=True):
    """One request for an object or a collection, with everything that its verb needs."""

    backend: Backend
    served: Served
    route: ResourceRoute
    request: Request
    user: User
    collected: list[str] = msgspec.field(default_factory=list)
    """The warnings for the client."""

    @property
    def place(self) -> tuple[Backend, Served, str, str]:
        """Return the first arguments of the verbs: backend, kind, namespace and name.

        Raises StatusError (400) for an invalid name, except in a PUT.
        """
        name = self.route.name
        if self.request.method != "PUT" and (problems := segment_name(name, False)):  # noqa: FBT003
            raise status.bad_request(f"Name parameter invalid: {quoted(name)}: {';'.join(problems)}")
        return self.backend, self.served, self.route.namespace, self.route.name

    def body(self, encoding: Encoding) -> JsonValue:
        return decode(self.request.body, encoding)

    def represented(self, views: tuple[View, ...], *, watch: bool = False, listing: bool = False) -> Representation:
        """Return the representation that the client prefers. Raises StatusError (406)."""
        accept = self.request.headers.get("accept", "")
        if accept == "application/json":
            return _PLAIN
        custom = self.served.kind.custom
        offered = ("text/plain", *OFFERED) if self.route.subresource == "log" else OFFERED
        if not has_tables(self.served, self.route.subresource):
            views = tuple(view for view in views if view is not View.TABLE)
        return negotiate(accept, views, watch=watch, listing=listing, custom=custom, offered=offered)

    def included(self, representation: Representation) -> str:
        """Return the value of ``includeObject``, which determines the ``object`` member of each row of a Table; "" if the
        answer is not a Table.

        Raises StatusError (400).
        """
        return check_include_object(self.request.arg("includeObject")) if representation.view is View.TABLE else ""

    def listed(self) -> Representation:
        """Return the representation of a list. Raises StatusError (406) if the client accepts no representation that the server
        has, or prefers PartialObjectMetadata, which is for one object.
        """
        found = self.represented(_VIEWS, listing=self.request.method == "GET")
        if found.view is View.METADATA:
            raise status.not_one_object(self.served.kind)
        return found

    def list_options(self, query: Query) -> ListOptions:
        """Return the options of a list or a watch. Raises StatusError."""
        return parse_list_options(query, watch=self.route.watch, judge=partial(check_fields, self.served))

    def written(self, result: Written) -> Answer:
        """Return the result of a write in the client's representation."""
        code = 201 if result.created else 200
        return self.answered(result.obj, code, result.warnings)

    def answered(self, document: JsonObject, code: int = 200, warnings: tuple[str, ...] = ()) -> Answer:
        """Return an object (or Status) in the client's representation."""
        representation = self.represented(_VIEWS)
        if document.get("kind") in _OTHERS:
            pass
        elif representation is _PLAIN and not (self.route.subresource or self.request.query):
            document = presented(self.served, document)
        else:
            include = self.included(representation)
            scale = self.route.subresource == "scale"
            served = shown_as(self.served.kind) if scale else self.served
            if representation.view is View.METADATA_LIST:
                raise status.not_a_list(served.kind)
            shown = document if scale else presented(served, document)
            document = object_view(served, shown, representation.view, include, self.backend.now())
            document = at_version(document, representation.version)
        return Answer(code, document, representation, (*self.warnings, *warnings))

    @property
    def warnings(self) -> tuple[str, ...]:
        version = self.served.version.warning
        return (version, *self.collected) if version else tuple(self.collected)

    def write_options(self, kind: str, *, apply: bool | None = None) -> WriteOptions:
        """Return the options of a write. The write adds its warnings to ``collected``, the list of warnings of this request."""
        agent = self.request.headers.get("user-agent", "")
        return parse_write_options(
            self.request.query, agent, kind, apply=apply, user=self.user, warnings=self.collected
        )


def handle_resource(
    backend: Backend, user: User, route: ResourceRoute, request: Request
) -> Answer | WatchAnswer | PodCommand:
    """Answer a request for a resource. Raises StatusError, and NotServedError for an unknown resource."""
    served = backend.catalog.find(route.group, route.version, route.plural)
    if served is None:
        raise unserved_resource_error(route.group)
    call = _Call(backend, served, route, request, user)
    try:
        check_method(served, route, request.method)
    except status.StatusError as error:
        error.warnings = call.warnings if served.kind.custom else ()
        raise
    endpoint = ENDPOINTS.get(endpoint_name(served, route.subresource.partition("/")[0]))
    if endpoint is None and served.kind.virtual:
        raise status.method_not_allowed()
    try:
        if endpoint is not None:
            return _virtual(call, endpoint)
        if route.subresource:
            return _subresource(call)
        return _object(call) if route.name else _collection(call)
    except status.StatusError as error:
        error.warnings = call.warnings
        raise


def verb_of(route: ResourceRoute, request: Request) -> str:
    """Return the RBAC verb of a request; on the deprecated watch paths, this is always ``watch``."""
    if route.watch:
        return "watch"
    if request.method in {"GET", "HEAD"}:
        if not route.name and asks_to_watch(request.query):
            return "watch"
        return "get" if route.name else "list"
    if request.method == "DELETE" and not route.name:
        return "deletecollection"
    return {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(request.method, "")


def _collection(call: _Call) -> Answer | WatchAnswer:
    namespaced_elsewhere = call.served.kind.namespaced and not call.route.namespace
    match call.request.method:
        case "GET" | "HEAD":
            options = call.list_options(call.request.query)
            return _watch(call, options) if options.watch else _list(call, options)
        case "POST" if not namespaced_elsewhere:
            call.represented(_VIEWS)
            encoding = body_encoding(call.request.headers.get("content-type", ""))
            options_ = call.write_options("CreateOptions")
            body = _typed_body(call, encoding)
            return call.written(create(call.backend, call.served, call.route.namespace, body, options_))
        case "DELETE" if not namespaced_elsewhere and "deletecollection" in call.served.kind.verbs:
            return _delete_collection(call)
        case _:
            raise status.method_not_allowed()


def _object(call: _Call) -> Answer | WatchAnswer:
    match call.request.method:
        case "GET" | "HEAD":
            if call.route.watch:  # the old path; on a get of one object, the parameter ``watch`` is ignored
                return _watch(call, call.list_options(call.request.query))
            call.represented(_VIEWS)
            return call.answered(get(*call.place, asked_revision(call.request.query)))
        case "PUT":
            return _put(call)
        case "PATCH":
            return _patch(call)
        case "DELETE":
            return _delete(call)
        case "POST":  # custom kinds only; it creates the object in its body
            return _collection(call)
        case _:
            raise status.method_not_allowed()


def _subresource(call: _Call) -> Answer:
    scale = call.route.subresource == "scale"
    match call.request.method:
        case "GET" | "HEAD":
            call.represented(_VIEWS)
            return call.answered(get_scale(*call.place) if scale else get(*call.place))
        case "PUT":
            return _put(call)
        case "PATCH":
            return _patch(call)
        case _:
            raise status.method_not_allowed()


def _virtual(call: _Call, endpoint: EndpointFunction) -> Answer | PodCommand:
    """Return the answer of a virtual resource or subresource, which is computed instead of read from storage."""
    request, written = call.request, call.request.method == "POST"
    connects = call.route.subresource.partition("/")[0] in CONNECTED
    if not connects:  # the Accept header of a connection is not for this server
        call.represented(_VIEWS, listing=request.method == "GET" and not call.route.name)
    body = None if connects else _optional_body(call)
    if written and not connects and call.served.kind.namespaced and call.served.kind.plural != _REVIEWS:
        said = find(body, "metadata", "name")
        named = call.route.name or (said if said and isinstance(said, str) else "Unknown")
        check_namespace_open(call.backend, call.served, call.route.namespace, named)
    asked = EndpointRequest(
        call.backend, call.served, call.route.namespace, call.route.name, call.route.subresource, request.method,
        body, call.write_options("CreateOptions"), request.query,
    )  # fmt: skip
    found = endpoint(connected(asked) if connects else asked)
    if isinstance(found, PodCommand):
        return found
    if isinstance(found, str):
        return Answer(200, {}, Representation(Encoding.JSON), call.warnings, found)
    if found.get("kind") == call.served.kind.list_kind:
        representation = call.listed()
        items = [item for item in find_list(found, "items") if isinstance(item, dict)]
        shown = list_view(call.served, items, {}, representation.view, "Metadata", call.backend.now())
        return Answer(200, at_version(shown, representation.version), representation, call.warnings)
    answer = call.answered(found)
    if found.get("kind") == "Status":
        code = found.get("code")
        return msgspec.structs.replace(answer, code=code) if isinstance(code, int) else answer
    return msgspec.structs.replace(answer, code=201) if written else answer


def _typed_body(call: _Call, encoding: Encoding) -> Body:
    try:
        return read_body(call.request.body, encoding)
    except BodyError as error:
        kind = "Scale" if call.route.subresource == "scale" else call.served.kind.kind
        if isinstance(error, LargeNumberError):
            raise refused(kind, call.served.version.name, str(error)) from error
        raise unreadable(kind, str(error), Body(None, call.request.body, encoding)) from error


def _delete(call: _Call) -> Answer:
    call.represented(_VIEWS)
    options = replace(delete_options(call.request), warnings=call.collected, user=call.user)
    answer = call.answered(delete(*call.place, options))
    left = options.not_orphaned and not options.dry_run and call.backend.get(*call.place[1:]) is not None
    return msgspec.structs.replace(answer, code=202) if left else answer


def _optional_body(call: _Call) -> JsonValue:
    """Return the decoded body of a request, or None if the body is empty."""
    if not call.request.body.strip():
        return None
    return call.body(body_encoding(call.request.headers.get("content-type", "")))


def _put(call: _Call) -> Answer:
    call.represented(_VIEWS)
    options = call.write_options("UpdateOptions")
    body = _typed_body(call, body_encoding(call.request.headers.get("content-type", "")))
    if call.route.subresource == "scale":
        return call.answered(replace_scale(*call.place, body, options))
    return call.written(replace_object(*call.place, call.route.subresource, body, options))


def _patch(call: _Call) -> Answer:
    offered = CUSTOM_PATCHES if call.served.kind.custom else BUILTIN_PATCHES
    content_type = call.request.headers.get("content-type", "")
    kind = PatchType(patch_media(content_type, offered, custom=call.served.kind.custom))
    call.represented(_VIEWS)
    if len(call.request.body) > BODY_LIMIT:
        raise too_large()
    options = call.write_options("PatchOptions", apply=kind is PatchType.APPLY)
    if call.route.subresource == "scale":
        return call.answered(patch_scale(*call.place, kind, call.request.body, options))
    return call.written(patch(*call.place, call.route.subresource, kind, call.request.body, options))


def _list(call: _Call, options: ListOptions) -> Answer:
    representation = call.listed()
    include = call.included(representation)
    page = list_page(call.backend, call.served, call.route.namespace, options)
    metadata = page.metadata
    if representation == _PLAIN:
        return Answer(200, raw_list(page, metadata), representation, call.warnings)
    document = list_view(call.served, page.items, metadata, representation.view, include, call.backend.now())
    return Answer(200, at_version(document, representation.version), representation, call.warnings)


def _delete_collection(call: _Call) -> Answer:
    """Delete the objects that the selectors match, at most ``limit`` of them; the answer is the list before the deletion."""
    call.represented(_VIEWS)
    chosen = call.list_options({name: values for name, values in call.request.query.items() if name != "watch"})
    chosen = replace(chosen, limit=chosen.limit or sys.maxsize)
    options = replace(delete_options(call.request), warnings=call.collected, user=call.user, each=True)
    page = list_page(call.backend, call.served, call.route.namespace, chosen)
    for item in page.items:
        metadata = find_object(item, "metadata")
        place = find_str(metadata, "namespace"), find_str(metadata, "name")
        if call.backend.get(call.served, *place) is not None:  # an old page may list deleted objects
            delete(call.backend, call.served, *place, options)
    representation = call.listed()
    include = call.included(representation)
    document = list_view(call.served, page.items, page.metadata, representation.view, include, call.backend.now())
    return Answer(200, at_version(document, representation.version), representation, call.warnings)


def _watch(call: _Call, options: ListOptions) -> WatchAnswer:
    representation = call.represented(_VIEWS, watch=True)
    include = call.included(representation)
    chosen = selection(call.served, options, name=call.route.name)
    plain = representation.view is View.OBJECT
    watch = Watch(call.served, call.route.namespace, chosen, options, plain)
    view = representation.view
    headers = True

    def render(type_: str, obj: JsonObject) -> bytes:
        nonlocal headers
        if type_ != "ERROR":
            if view is View.METADATA_LIST:
                raise UnshowableError
            obj = object_view(call.served, obj, view, include, call.backend.now(), headers=headers)
            obj = at_version(obj, representation.version)
            headers = False
        return encode({"type": type_, "object": obj}, Encoding.JSON)

    return WatchAnswer(watch, render, Representation(Encoding.JSON, view), call.warnings)
