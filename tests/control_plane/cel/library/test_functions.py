"""The standard functions of CEL."""

import pytest

from tests.control_plane.support.cel_evaluating import value_of
from wharfinger.control_plane.cel.library import functions as library
from wharfinger.control_plane.cel.values.values import CelError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("optional.ofNonZeroValue(0).hasValue()", False),
        ("optional.none().value()", "optional.none() dereference"),
        ("optional.unwrap([optional.of(1), optional.none()])", [1]),
        ("{'a': 1}.transformMap(k, v, v + 1)['a']", 2),
        ("1 != 2", True),
        ("!false", True),
        ("optional.of([1])[0].value()", 1),
    ],
)
def test_functions_return_values_or_errors(text: str, value: object) -> None:
    assert value_of(text) == value


@pytest.mark.parametrize("text", ["!x", "x.value()", "x.hasValue()", "optional.unwrap(x)"])
def test_arguments_of_other_types_have_no_overload(text: str) -> None:
    assert "no such overload" in str(value_of(text, x="text"))


@pytest.mark.parametrize("text", ["[]", "''", "0", "false", "null"])
def test_optional_of_zero_value_is_empty(text: str) -> None:
    assert value_of(f"optional.ofNonZeroValue({text}).hasValue()") is False


def test_maps_are_constructed_from_entries() -> None:
    assert value_of("{'a': 1, 'b': 2}.transformMapEntry(k, v, {v: k})[2]") == "b"
    assert value_of("{'a': 1, 'b': 1}.transformMapEntry(k, v, {v: k})[3]") != "a"


def test_keys_of_patches_are_escaped() -> None:
    assert library._escaped_key("a/b~c") == "a~1b~0c"
    with pytest.raises(CelError, match="no such overload"):
        library._escaped_key(1)
