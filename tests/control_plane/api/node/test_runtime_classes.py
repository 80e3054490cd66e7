import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.node.runtime_classes import RUNTIME_CLASS_RULES, runtime_class_errors
from wharfinger.formats.json.value import JsonObject

RULES = RUNTIME_CLASS_RULES["RuntimeClass.node.k8s.io"]


@pytest.mark.parametrize(
    ("one", "fields"),
    [
        ({"handler": "runc"}, []),
        ({}, ["handler"]),
        ({"handler": "a", "overhead": {"podFixed": {"cpu": "-1"}}}, ["overhead.limits[cpu]"]),
        ({"handler": "a", "scheduling": {"nodeSelector": {"a": "-"}}}, ["scheduling.nodeSelector"]),
        (
            {"handler": "a", "scheduling": {"tolerations": [{"key": "a"}, {"key": "a", "tolerationSeconds": None}]}},
            ["scheduling.tolerations[1]"],
        ),
    ],
)
def test_invalid_runtime_class_fields_are_reported(one: JsonObject, fields: list[str]) -> None:
    assert [error.field for error in runtime_class_errors(one)] == fields


NAMES = ("handler", "overhead", "podFixed", "cpu", "scheduling", "nodeSelector", "tolerations", "key")


@given(shapes(*NAMES), shapes(*NAMES))
def test_arbitrary_objects_do_not_crash(new: JsonObject, old: JsonObject) -> None:
    RULES.create(new)
    RULES.update(new, old)
    RULES.status(new, old)
    RULES.warnings(new, old)
