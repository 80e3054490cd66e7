"""Selectors in access reviews.

The recording ``recorded_answers/recordings/hunt3-kinds-reviews.jsonl`` contains the error messages of a real API server.
"""

import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.special_endpoints.review_selectors import evaluation_error, selector_errors
from wharfinger.formats.json.value import JsonObject

FIELDS = "spec.resourceAttributes.fieldSelector"
LABELS = "spec.resourceAttributes.labelSelector"


@pytest.mark.parametrize(
    ("attributes", "fields"),
    [
        ({}, []),
        ({"fieldSelector": {"rawSelector": "a=b"}}, []),
        ({"fieldSelector": {"requirements": [{"operator": "In"}]}}, ["requirements[0].key", "requirements[0].values"]),
        ({"fieldSelector": {"requirements": [{"key": "a", "operator": "Odd"}]}}, []),
        ({"fieldSelector": {}}, ["requirements"]),
    ],
)
def test_invalid_selectors_are_reported(attributes: JsonObject, fields: list[str]) -> None:
    found = selector_errors(attributes, "spec.resourceAttributes")

    assert [error.field.removeprefix(f"{FIELDS}.") for error in found] == fields


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({}, ""),
        ({"labelSelector": {"rawSelector": "a=b"}}, ""),
        ({"labelSelector": {"requirements": [{"key": "a", "operator": "Exists"}]}}, ""),
        (
            {"labelSelector": {"rawSelector": "a in"}, "fieldSelector": {"rawSelector": "a"}},
            f"{FIELDS} ignored due to parse error; {LABELS} ignored due to parse error",
        ),
        (
            {"fieldSelector": {"requirements": [{"operator": "In", "values": ["b"]}, {"operator": "Exists"}]}},
            f"{FIELDS} partially ignored due to parse error",
        ),
    ],
)
def test_unusable_selectors_give_an_evaluation_error(attributes: JsonObject, said: str) -> None:
    assert evaluation_error(attributes) == said


@given(shapes("fieldSelector", "labelSelector", "rawSelector", "requirements", "key", "operator", "values"))
def test_arbitrary_selectors_do_not_crash(attributes: JsonObject) -> None:
    selector_errors(attributes, "")
    evaluation_error(attributes)
