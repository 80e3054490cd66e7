"""Strategies of resource.k8s.io: admin access to devices, and the status of devices that are released."""

from typing import Final

from wharfinger.control_plane.api.resource.resource_claims import device_identity
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import part, parts
from wharfinger.control_plane.objects.strategy import ClusterView, Strategy
from wharfinger.control_plane.wire.field_errors import forbidden
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_object

ADMIN_LABEL: Final = "resource.kubernetes.io/admin-access"


def admin_errors(obj: JsonObject, view: ClusterView) -> list[FieldError]:
    """Return an error if a claim or template requests admin access in a namespace that is not labeled for it."""
    claim = find(obj, "spec", "spec") if obj.get("kind") == "ResourceClaimTemplate" else obj.get("spec")
    asked = [
        index
        for index, request in enumerate(parts(claim, "devices", "requests"))
        if find(request, "exactly", "adminAccess") is True
    ]
    return _refused(obj, view, f"spec.devices.requests[{asked[0]}].adminAccess") if asked else []


def admin_status_errors(new: JsonObject, old: JsonObject, view: ClusterView) -> list[FieldError]:
    """Return an error if a claim gets its first allocation with admin access in a namespace that is not labeled for it."""
    given, before = (_administered(obj) for obj in (new, old))
    path = "status.allocation.devices.results"
    return _refused(new, view, f"{path}[{given[0]}].adminAccess") if given and not before else []


def _administered(obj: JsonObject) -> list[int]:
    results = parts(obj, "status", "allocation", "devices", "results")
    return [index for index, result in enumerate(results) if result.get("adminAccess") is True]


def _refused(obj: JsonObject, view: ClusterView, field: str) -> list[FieldError]:
    namespace = view.object("", "namespaces", "", text(obj, "metadata", "namespace"))
    if find(namespace, "metadata", "labels", ADMIN_LABEL) == "true":
        return []
    why = f"admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace"
    return [forbidden(field, why)]


def _status(new: JsonObject, old: JsonObject, _view: ClusterView) -> JsonObject:
    """Drop the status of devices that this write releases."""
    kept, before = (
        {device_identity(item) for item in parts(obj, "status", "allocation", "devices", "results")}
        for obj in (new, old)
    )
    devices: list[JsonValue] = [
        item for item in parts(new, "status", "devices") if device_identity(item) not in before - kept
    ]
    state = {name: value for name, value in find_object(new, "status").items() if name != "devices"}
    return (
        new
        if part(new, "status") is None
        else {**new, "status": {**state, **({"devices": devices} if devices else {})}}
    )


DEVICE_STRATEGIES: Final[dict[str, Strategy]] = {
    "ResourceClaim.resource.k8s.io": Strategy(
        status=_status, create_errors=admin_errors, status_errors=admin_status_errors
    ),
    "ResourceClaimTemplate.resource.k8s.io": Strategy(create_errors=admin_errors),
}
