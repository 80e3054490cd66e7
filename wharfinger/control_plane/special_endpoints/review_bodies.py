"""The first step of all reviews: the conversion of the body to an object of its kind, with managed fields."""

from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.kinds.kind import Kind, KindVersion
from wharfinger.control_plane.kinds.type_shapes import builtin_list_types
from wharfinger.control_plane.merging.managed_fields import record_update
from wharfinger.control_plane.objects.name_rules import segment_name
from wharfinger.control_plane.objects.object_metadata import without_status
from wharfinger.control_plane.special_endpoints.endpoint import EndpointRequest
from wharfinger.control_plane.special_endpoints.request_admission import changed
from wharfinger.control_plane.verbs.creation import with_defaults
from wharfinger.control_plane.verbs.intake import accepted, check_namespace
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.field_errors import quoted
from wharfinger.formats.json.value import JsonObject


def read_body(asked: EndpointRequest, served: Served) -> JsonObject:
    """Return the body of a request as an object of the served kind, and add its warnings to those of the request. Raises
    StatusError (400).
    """
    read = accepted(served, asked.body, asked.options.validation)
    asked.options.warnings.extend(read.warnings)
    return check_namespace(served, read.obj, asked.namespace)


def check_name_parameter(name: str) -> None:
    """Refuse a name that no stored object can have. Raises StatusError (400)."""
    if not name:
        raise status.bad_request("Name parameter required.")
    if problems := segment_name(name, False):  # noqa: FBT003 - no prefix
        raise status.bad_request(f"Name parameter invalid: {quoted(name)}: {'; '.join(problems)}")


def kind_served(group: str, version: str, kind: str) -> Served:
    """Return the description of a built-in kind whose objects are never stored, such as ``TokenRequest``."""
    one = KindVersion(version, (), builtin_list_types(group, version, kind))
    plural = f"{kind.lower()}s"
    return Served(Kind(group, kind, plural, kind.lower(), f"{kind}List", True, (one,), version, virtual=True), one)  # noqa: FBT003


def reviewed(asked: EndpointRequest, *, subresource: str = "") -> JsonObject:
    """Return the review that was sent, without a status, and with the changes of webhooks. Raises StatusError."""
    obj = read_body(asked, asked.served)
    now = asked.backend.now()
    obj = changed(asked, with_defaults(asked.served, without_status(obj), now))
    return record_update(
        None,
        obj,
        manager=asked.options.manager,
        subresource=subresource,
        now=now,
        lists=asked.served.version.lists,
    )
