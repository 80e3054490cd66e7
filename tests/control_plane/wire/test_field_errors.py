import pytest

from wharfinger.control_plane.wire import field_errors as errors
from wharfinger.formats.json.value import JsonValue


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a", '"a"'),
        ('a"\\\n\x01\x7f\u200b\U000e0001ü', '"a\\"\\\\\\n\\x01\\x7f\\u200b\\U000e0001ü"'),
        (5, "5"),
        (True, "true"),
        (None, "null"),
        ({"a": ["<&>"]}, '{"a":["\\u003c\\u0026\\u003e"]}'),
    ],
)
def test_values_are_formatted_as_in_go(value: JsonValue, shown: str) -> None:
    assert errors.shown(value) == shown


def test_messages_have_the_format_of_kubernetes() -> None:
    assert str(errors.invalid("f", "a", "why")) == 'f: Invalid value: "a": why'
    assert str(errors.required("f")) == "f: Required value"
    assert str(errors.required("f", "why")) == "f: Required value: why"
    assert str(errors.forbidden("f", "why")) == "f: Forbidden: why"
    assert str(errors.not_supported("f", "x", ["a", "b"])) == 'f: Unsupported value: "x": supported values: "a", "b"'
    assert str(errors.not_supported("f", "x", [])) == 'f: Unsupported value: "x"'
    assert str(errors.duplicate("f", "x")) == 'f: Duplicate value: "x"'
    assert str(errors.absent("f", "x")) == 'f: Not found: "x"'
    assert str(errors.too_long("f", 1)) == "f: Too long: may not be more than 1 byte"
    assert str(errors.too_long("f", 2, "character")) == "f: Too long: may not be more than 2 characters"
    assert str(errors.too_many("f", 3, 2)) == "f: Too many: 3: must have at most 2 items"
    assert str(errors.internal_error("f", "why")) == "f: Internal error: why"
    assert str(errors.type_invalid("f", 5, "why")) == "f: Invalid value: 5: why"
    assert [str(error) for error in errors.immutable("f", 1, 2)] == ["f: Invalid value: 1: field is immutable"]
    assert errors.immutable("f", 1, 1) == []
    assert [str(error) for error in errors.each("f", "a", ["x", "y"])] == [
        'f: Invalid value: "a": x',
        'f: Invalid value: "a": y',
    ]
    assert list(errors.sorted_map({"b": 1, "a": 2})) == ["a", "b"]
