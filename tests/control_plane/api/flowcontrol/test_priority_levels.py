import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.flowcontrol.priority_levels import PRIORITY_LEVEL_RULES, priority_level_errors
from wharfinger.formats.json.value import JsonObject

QUEUING = "spec.limited.limitResponse.queuing"


def queues(**figures: int) -> JsonObject:
    return {"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {**figures}}}}}


RULES = PRIORITY_LEVEL_RULES["PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io"]


@pytest.mark.parametrize(
    ("one", "fields"),
    [
        ({"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}}, []),
        ({"spec": {"type": "Odd"}}, ["spec.type"]),
        (
            {"metadata": {"name": "exempt"}, "spec": {"type": "Exempt", "exempt": {"lendablePercent": 101}}},
            ["spec.exempt.lendablePercent"],
        ),
        (queues(queues=64, handSize=8, queueLengthLimit=50), []),
        (queues(queues=10**7 + 1, handSize=1, queueLengthLimit=50), [f"{QUEUING}.queues"]),
        (queues(queues=1024, handSize=7, queueLengthLimit=0), [f"{QUEUING}.queueLengthLimit", f"{QUEUING}.handSize"]),
    ],
)
def test_invalid_priority_level_fields_are_reported(one: JsonObject, fields: list[str]) -> None:
    assert [error.field for error in priority_level_errors(one)] == fields


def test_only_the_numbers_of_the_exempt_level_may_change() -> None:
    old: JsonObject = {"metadata": {"name": "exempt"}, "spec": {"type": "Exempt", "exempt": {}}}

    assert RULES.update({**old, "spec": {"type": "Exempt", "exempt": {"lendablePercent": 5}}}, old) == []
    assert [error.field for error in RULES.update({**old, "spec": {"type": "Limited"}}, old)] == [
        "spec.type",
        "spec.limited",
        "spec",
    ]


NAMES = ("metadata", "annotations", "spec", "type", "limited", "exempt", "limitResponse", "queuing", "queues")


@given(shapes(*NAMES), shapes(*NAMES))
def test_arbitrary_objects_do_not_crash(new: JsonObject, old: JsonObject) -> None:
    RULES.create(new)
    RULES.update(new, old)
    RULES.status(new, old)
    RULES.warnings(new, old)
