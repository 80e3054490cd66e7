import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.coordination.leases import LEASE_RULES, lease_errors
from wharfinger.formats.json.value import JsonObject


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({}, []),
        ({"leaseDurationSeconds": 1, "leaseTransitions": 0}, []),
        ({"leaseDurationSeconds": 0, "leaseTransitions": -1}, ["spec.leaseDurationSeconds", "spec.leaseTransitions"]),
        ({"strategy": "OldestEmulationVersion", "preferredHolder": "a"}, []),
        ({"strategy": "example.com/own"}, []),
        ({"strategy": "Own"}, ["spec.strategy.strategy"]),
        ({"strategy": "a/b/c"}, ["spec.strategy.strategy"]),
        ({"preferredHolder": "a"}, ["spec.preferredHolder"]),
    ],
)
def test_invalid_lease_fields_are_reported(spec: JsonObject, fields: list[str]) -> None:
    assert [error.field for error in lease_errors({"spec": spec})] == fields


@given(shapes("spec", "strategy", "leaseDurationSeconds"))
def test_arbitrary_objects_do_not_crash(lease: JsonObject) -> None:
    rules = LEASE_RULES["Lease.coordination.k8s.io"]

    assert rules.create(lease) == rules.update(lease, {})
