import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.core.nodes import NODE_RULES
from wharfinger.formats.json.value import JsonObject


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ({}, ""),
        ({"spec": {"podCIDRs": ["10.0.0.0/24", "fd00::/64"]}}, ""),
        ({"spec": {"podCIDRs": ["10.0.0.0/24", "10.1.0.0/24"]}}, "no more than one CIDR for each IP family"),
        ({"status": {"nodeInfo": {"swap": {"capacity": 0}}}}, "metadata.nodeSwapStatus.capacity"),
        ({"status": {"declaredFeatures": ["B", "A"]}}, "list must be sorted alphabetically"),
        ({"status": {"declaredFeatures": ["A", "A"]}}, 'Duplicate value: "A"'),
        ({"status": {"declaredFeatures": ["A" * 254]}}, "must be no more than 253 characters"),
        ({"status": {"capacity": {"pods": "1500m"}}}, "status.capacity.pods"),
    ],
)
def test_invalid_new_nodes_are_refused(node: JsonObject, said: str) -> None:
    errors = [str(error) for error in NODE_RULES.create(node)]

    assert not errors if not said else any(said in error for error in errors)


@pytest.mark.parametrize(
    ("new", "old", "said"),
    [
        ({"spec": {"podCIDRs": ["10.0.0.0/24"]}}, {}, ""),
        ({}, {"spec": {"podCIDRs": ["10.0.0.0/24"]}}, "may not change podCIDR"),
        ({"spec": {"podCIDRs": ["10.1.0.0/24"]}}, {"spec": {"podCIDRs": ["10.0.0.0/24"]}}, "may not change podCIDR"),
        ({"spec": {"providerID": "b"}}, {"spec": {"providerID": "a"}}, "may not change providerID"),
        ({"spec": {"externalID": "b"}}, {}, "spec.externalID: Forbidden: may not be updated"),
        ({"status": {"addresses": [{}, {}]}}, {}, 'Duplicate value: {"Type":"","Address":""}'),
    ],
)
def test_forbidden_changes_of_nodes_are_refused(new: JsonObject, old: JsonObject, said: str) -> None:
    errors = [str(error) for error in NODE_RULES.status(new, old)]

    assert not errors if not said else any(said in error for error in errors)


def test_deprecated_node_fields_cause_warnings() -> None:
    said = NODE_RULES.warnings({"spec": {"externalID": "a", "podCIDRs": ["10.0.0.1/24"]}}, None)

    assert len(said) == 2


@given(shapes("spec", "status", "taints", "podCIDRs", "capacity", "addresses", "declaredFeatures"))
def test_arbitrary_objects_do_not_crash(obj: JsonObject) -> None:
    NODE_RULES.update(obj, obj), NODE_RULES.warnings(obj, None)
