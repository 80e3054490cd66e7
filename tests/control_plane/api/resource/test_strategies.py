"""Requests for devices with admin access, and the status of released devices.

The recorded answers of a real API server (scenario ``hunt3-kinds-devices``) cover other rules.
"""

from tests.control_plane.support.backend_views import FakeView
from wharfinger.control_plane.api.resource.strategies import (
    ADMIN_LABEL,
    DEVICE_STRATEGIES,
    admin_errors,
    admin_status_errors,
)
from wharfinger.formats.json.value import JsonObject

CLAIM: JsonObject = {"requests": [{"name": "a"}, {"name": "b", "exactly": {"adminAccess": True}}]}
GIVEN: JsonObject = {"status": {"allocation": {"devices": {"results": [{"adminAccess": True}]}}}}


def labelled(value: str) -> FakeView:
    namespace: JsonObject = {"metadata": {"name": "n", "labels": {ADMIN_LABEL: value}}}
    return FakeView({("", "namespaces"): [namespace]})


def test_admin_access_needs_a_label_of_the_namespace() -> None:
    metadata: JsonObject = {"namespace": "n"}
    claim: JsonObject = {"kind": "ResourceClaim", "metadata": metadata, "spec": {"devices": CLAIM}}
    template: JsonObject = {"kind": "ResourceClaimTemplate", "metadata": metadata, "spec": {"spec": {"devices": CLAIM}}}
    given: JsonObject = {"metadata": metadata, **GIVEN}

    for view, count in ((labelled("true"), 0), (labelled("false"), 1), (FakeView(), 1)):
        assert len(admin_errors(claim, view)) == len(admin_errors(template, view)) == count
        assert len(admin_status_errors(given, {}, view)) == count
        assert admin_status_errors(given, given, view) == []
    assert admin_errors({"spec": {"devices": {}}}, FakeView()) == []


def test_the_status_of_released_devices_is_dropped() -> None:
    device: JsonObject = {"driver": "a", "pool": "p", "device": "d"}
    held: JsonObject = {"status": {"allocation": {"devices": {"results": [device]}}, "devices": [device]}}
    strategy = DEVICE_STRATEGIES["ResourceClaim.resource.k8s.io"]

    assert strategy.status(held, held, FakeView()) == held
    assert strategy.status({"status": {"devices": [device]}}, held, FakeView()) == {"status": {}}
    assert strategy.status({}, held, FakeView()) == {}
