"""Validation of values by schemas, in cases that no recording of a real API server covers."""

import pytest

from wharfinger.control_plane.custom import values
from wharfinger.control_plane.custom.values import Checker, TooManyStepsError
from wharfinger.formats.json.value import JsonObject, JsonValue


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ({"uniqueItems": True}, [1, 1], 'a: Invalid value: "": a in body shouldn\'t contain duplicates'),
        (
            {"type": "integer", "multipleOf": -1},
            1,
            "a: Invalid value: -1.0: factor MultipleOf declared for a must be positive: -1",
        ),
    ],
)
def test_values_that_violate_the_schema_are_reported(schema: JsonObject, value: JsonValue, said: str) -> None:
    [error] = Checker().errors({"type": "object", "properties": {"a": schema}}, {"a": value})
    assert str(error).startswith(said[:20])


def test_too_many_steps_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "MAX_STEPS", 3)
    with pytest.raises(TooManyStepsError):
        Checker(steps=3).errors({"type": "array", "items": {"type": "integer"}}, [1, 2, 3, 4])


def test_paths_of_errors_begin_with_the_base_path() -> None:
    [error] = Checker("status").errors({"type": "integer"}, "x")
    assert (error.field, error.message) == (
        "status",
        'Invalid value: "string":  in body must be of type integer: "string"',
    )
