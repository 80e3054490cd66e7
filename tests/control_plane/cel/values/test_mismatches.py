import pytest

from wharfinger.control_plane.cel.values.mismatches import mismatch
from wharfinger.control_plane.cel.values.values import CelMap, Duration


@pytest.mark.parametrize(
    ("function", "given", "said"),
    [
        ("_+_", (CelMap(), 1), "no such overload: _+_"),
        ("_+_", ("a", 1), "no such overload"),
        ("_*_", (Duration(1), 1), "no such overload"),
        ("size", (None,), "no such overload: size"),
        ("startsWith", (1, "a"), "no such overload"),
        ("lowerAscii", (1,), "no such overload: lowerAscii(int)"),
        ("split", (CelMap(), "a"), "no such overload: split(map, string)"),
    ],
)
def test_operations_on_wrong_types_have_no_overload(function: str, given: tuple[object, ...], said: str) -> None:
    assert mismatch(function, given) == said
