import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.storage.storage_capacities import STORAGE_CAPACITY_RULES, capacity_errors
from wharfinger.formats.json.value import JsonObject

RULES = STORAGE_CAPACITY_RULES["CSIStorageCapacity.storage.k8s.io"]


@pytest.mark.parametrize(
    ("one", "fields"),
    [
        ({"storageClassName": "a"}, []),
        ({"storageClassName": "a", "capacity": "0"}, []),
        ({"storageClassName": "", "capacity": "-1"}, ["storageClassName", "capacity"]),
        ({"storageClassName": "a", "nodeTopology": {"matchLabels": {"a": "-"}}}, ["nodeTopology.matchLabels"]),
    ],
)
def test_invalid_capacity_fields_are_reported(one: JsonObject, fields: list[str]) -> None:
    assert [error.field for error in capacity_errors(one)] == fields


def test_deprecated_labels_cause_warnings() -> None:
    old: JsonObject = {"nodeTopology": {"matchLabels": {"beta.kubernetes.io/os": "x", "a": "b"}}}

    assert RULES.warnings(old, None) == [
        'nodeTopology.matchLabels.beta.kubernetes.io/os: deprecated since v1.14; use "kubernetes.io/os" instead'
    ]


NAMES = ("storageClassName", "capacity", "nodeTopology", "matchLabels", "matchExpressions", "key")


@given(shapes(*NAMES), shapes(*NAMES))
def test_arbitrary_objects_do_not_crash(new: JsonObject, old: JsonObject) -> None:
    RULES.create(new)
    RULES.update(new, old)
    RULES.status(new, old)
    RULES.warnings(new, old)
