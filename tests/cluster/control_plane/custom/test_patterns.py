"""What Go says of patterns; the recordings hold more."""

import pytest

from wharfinger.cluster.control_plane.custom.patterns import matches, pattern_problem


@pytest.mark.parametrize(
    "pattern",
    [
        "a|b",
        "(?i)a",
        "(?P<n>a)",
        "[]a]",
        "[^]a]",
        "[a-]",
        "\\Qa(\\E",
        "a{1,2}?",
        "{x",
        "\\pL[[:alpha:]]",
        "\\x41\\x{42}\\101",
        "(a{10}){10}",
        "[\\d-z]",
    ],
)
def test_patterns_that_compile(pattern: str) -> None:
    assert pattern_problem(pattern) == ""


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?z)", "invalid or unsupported Perl syntax: `(?z`"),
        ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
        ("\\C", "invalid escape sequence: `\\C`"),
        ("\\p", "invalid character class range: `\\p`"),
        ("\\p{L", "invalid character class range: `\\p{L`"),
        ("\\xg", "invalid escape sequence: `\\xg`"),
        ("(" * 1001, "expression nests too deeply"),
    ],
)
def test_patterns_that_do_not(pattern: str, why: str) -> None:
    assert pattern_problem(pattern).startswith(f"error parsing regexp: {why}")


def test_matching() -> None:
    assert matches("^a+$", "aaa")
    assert not matches("^a+$", "b")
    assert matches("x" * 5000, "anything")
