import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.networking.service_ranges import SERVICE_RANGE_RULES, range_errors
from wharfinger.formats.json.value import JsonObject

RULES = SERVICE_RANGE_RULES["ServiceCIDR.networking.k8s.io"]


@pytest.mark.parametrize(
    ("one", "fields"),
    [
        ({"spec": {"cidrs": ["10.0.0.0/24"]}}, []),
        ({"spec": {"cidrs": ["10.0.0.0/24", "fd00::/64"]}}, []),
        ({"spec": {"cidrs": ["10.0.0.1/24", "fd00:0::/64"]}}, ["spec.cidrs[0]", "spec.cidrs[1]"]),
        ({"spec": {"cidrs": ["x", "y"]}}, ["spec.cidrs[0]", "spec.cidrs[1]"]),
    ],
)
def test_invalid_ranges_are_reported(one: JsonObject, fields: list[str]) -> None:
    assert [error.field for error in range_errors(one)] == fields


@pytest.mark.parametrize(
    ("new", "old", "fields"),
    [
        (["10.0.0.0/24", "fd00::/64"], ["10.0.0.0/24"], []),
        (["10.1.0.0/24", "fd00::/64"], ["10.0.0.0/24"], ["spec.cidrs[0]"]),
        (["10.1.0.0/24"], ["10.0.0.0/24"], ["spec.cidrs[0]"]),
        (["10.0.0.0/24"], ["10.0.0.0/24", "fd00::/64"], ["spec.cidrs"]),
        ([], ["10.0.0.0/24"], ["spec.cidrs"]),
    ],
)
def test_ranges_may_only_be_extended(new: list[str], old: list[str], fields: list[str]) -> None:
    found = RULES.update({"spec": {"cidrs": [*new]}}, {"spec": {"cidrs": [*old]}})

    assert [error.field for error in found] == fields


def test_ip_addresses_need_a_parent_that_cannot_change() -> None:
    rules = SERVICE_RANGE_RULES["IPAddress.networking.k8s.io"]
    named: JsonObject = {"name": "10.0.0.7"}
    good: JsonObject = {"metadata": named, "spec": {"parentRef": {"resource": "services", "name": "a"}}}

    assert rules.create(good) == rules.update(good, good) == []
    assert [error.field for error in rules.create({})] == ["spec.parentRef"]
    assert [error.field for error in rules.update({"metadata": named, "spec": {}}, good)] == ["spec.parentRef"] * 2


NAMES = ("spec", "cidrs", "parentRef", "name", "group")


@given(shapes(*NAMES), shapes(*NAMES))
def test_arbitrary_objects_do_not_crash(new: JsonObject, old: JsonObject) -> None:
    RULES.create(new)
    RULES.update(new, old)
    RULES.status(new, old)
    RULES.warnings(new, old)
