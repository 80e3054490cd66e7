"""Strategies of the kinds that belong neither to the core group nor to workloads. They drop the fields of disabled features, and
set the initial status and the times of approvals.
"""

from typing import Final

from wharfinger.control_plane.api.certificates.certificate_requests import APPROVALS
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import parts
from wharfinger.control_plane.objects.strategy import ClusterView, Strategy
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_object
from wharfinger.kube.times import format_time

_COORDINATED: Final = ("strategy", "preferredHolder")
"""The fields of Leases for coordinated leader election, which is off by default (KEP-4355)."""


def _lease(lease: JsonObject, _view: ClusterView) -> JsonObject:
    spec = {name: value for name, value in find_object(lease, "spec").items() if name not in _COORDINATED}
    return {**lease, "spec": spec}


def _changed_lease(new: JsonObject, old: JsonObject, view: ClusterView) -> JsonObject:
    kept = any(name in find_object(old, "spec") for name in _COORDINATED)
    return new if kept else _lease(new, view)


def _api_service(service: JsonObject, view: ClusterView) -> JsonObject:
    """Mark an APIService as available if this server serves it itself."""
    if find(service, "spec", "service") is not None:
        return service
    available: JsonObject = {
        "type": "Available",
        "status": "True",
        "lastTransitionTime": format_time(view.now()),
        "reason": "Local",
        "message": "Local APIServices are always available",
    }
    return {**service, "status": {"conditions": [available]}}


def _slice(new: JsonObject, old: JsonObject | None) -> JsonObject:
    """Drop the endpoint fields of discovery.k8s.io/v1beta1, but only if the endpoints changed, as upstream does."""
    endpoints = parts(new, "endpoints")
    if old is not None and new.get("endpoints") == old.get("endpoints"):
        return new
    if not any("deprecatedTopology" in endpoint for endpoint in endpoints):
        return new
    kept: list[JsonValue] = [
        {name: value for name, value in endpoint.items() if name != "deprecatedTopology"} for endpoint in endpoints
    ]
    return {**new, "endpoints": kept}


def _certificate_status(new: JsonObject, old: JsonObject, view: ClusterView) -> JsonObject:
    """Keep the old approvals (and denials) if their number is unchanged, and set missing times of conditions."""
    status, conditions = find_object(new, "status"), parts(new, "status", "conditions")
    for kind in APPROVALS:
        before = [item for item in parts(old, "status", "conditions") if text(item, "type") == kind]
        if len(before) == sum(text(item, "type") == kind for item in conditions):
            kept = iter(before)
            conditions = [next(kept) if text(item, "type") == kind else item for item in conditions]
    return {**new, **_with_conditions(status, _timed(conditions, old, view))}


def _approval(new: JsonObject, old: JsonObject, view: ClusterView) -> JsonObject:
    """Return the new object with its new conditions, and with the spec and the rest of the status of the old object."""
    conditions = _timed(parts(new, "status", "conditions"), old, view)
    kept: JsonObject = {"spec": old["spec"]} if "spec" in old else {}
    return {**new, **kept, **_with_conditions(find_object(old, "status"), conditions)}


def _with_conditions(status: JsonObject, conditions: list[JsonValue]) -> JsonObject:
    rest = {name: value for name, value in status.items() if name != "conditions"}
    return {"status": {"conditions": conditions, **rest} if conditions else rest}


def _timed(conditions: list[JsonObject], old: JsonObject, view: ClusterView) -> list[JsonValue]:
    """Return the conditions with their missing times filled in; a condition with an unchanged status keeps its old time."""
    now = format_time(view.now())
    since = {
        (text(item, "type"), text(item, "status")): text(item, "lastTransitionTime")
        for item in reversed(parts(old, "status", "conditions"))
        if text(item, "lastTransitionTime")
    }
    return [
        {
            **item,
            "lastUpdateTime": text(item, "lastUpdateTime") or now,
            "lastTransitionTime": text(item, "lastTransitionTime")
            or since.get((text(item, "type"), text(item, "status")), now),
        }
        for item in conditions
    ]


GROUP_STRATEGIES: Final[dict[str, Strategy]] = {
    "APIService.apiregistration.k8s.io": Strategy(create=_api_service),
    "CertificateSigningRequest.certificates.k8s.io": Strategy(
        status=_certificate_status, subresources={"approval": _approval}
    ),
    "EndpointSlice.discovery.k8s.io": Strategy(
        create=lambda obj, _view: _slice(obj, None), update=lambda new, old, _view: _slice(new, old)
    ),
    "Lease.coordination.k8s.io": Strategy(create=_lease, update=_changed_lease),
}
