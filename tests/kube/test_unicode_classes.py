"""The names of Unicode character classes in Go's regular expressions."""

import pytest

from wharfinger.kube import re2_library as matching
from wharfinger.kube.unicode_classes import unicode_class


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [
        ("L", "aé", "1 "),
        ("greek", "\u03b1", "a"),
        ("Uppercase_Letter", "A", "a1"),
        ("any", "a\n", ""),
        ("ASCII", "a\n", "é"),
        ("Assigned", "aé", "\u0378"),
        ("cn", "\u0378\uffff", "aé\n"),
        ("C", "\u0378\n\ue000", "aé "),
        ("LC", "aAǅ", "ª1"),
    ],
)
def test_classes_match_their_characters(name: str, inside: str, outside: str) -> None:
    for char in inside + outside:
        for negated in (False, True):
            assert matching.matches(f"[{unicode_class(name, negated=negated)}]", char) is (
                (char in inside) is not negated
            )


@pytest.mark.parametrize("name", ["", "x", "Old_Italic", "é", "L}", "1"])
def test_unknown_class_names_have_no_class(name: str) -> None:
    assert unicode_class(name, negated=False) is None
