"""Formats of strings that no recording of a real API server covers."""

import pytest

from wharfinger.control_plane.objects.string_formats import FORMATS, is_duration, known_format


@pytest.mark.parametrize(
    ("name", "text", "right"),
    [
        ("ipv6", "::ffff:1.2.3.4", True),
        ("mac", "00:11:22:33:44", False),
        ("email", "a b", False),
        ("hostname", "a" * 64, False),
        ("isbn10", "1", False),
        ("isbn13", "x", False),
        ("cidr", "1.2.3.4/33", False),
    ],
)
def test_texts_match_their_formats(name: str, text: str, right: bool) -> None:
    assert FORMATS[name](text) is right


def test_formats_are_known_for_their_type_only() -> None:
    assert known_format(("integer",), "int32") == "int32"
    assert (
        known_format(("integer",), "date") == known_format(("array",), "date") == known_format(("string",), "odd") == ""
    )


def test_durations_of_many_digits_are_checked_in_linear_time() -> None:
    assert not is_duration("1" * 1_000_000)
    assert is_duration("12 days")
