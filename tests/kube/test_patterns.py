"""Go's errors for invalid regular expressions. Recordings of a real API server cover more of them."""

import pytest

from wharfinger.kube.patterns import found, matches, pattern_problem


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
        "(?P<n>a)(?<n>b)",
        "\\p{letter}",
        "x" * 5000,
    ],
)
def test_valid_patterns_have_no_problem(pattern: str) -> None:
    assert pattern_problem(pattern) == ""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?z)", "invalid or unsupported Perl syntax: `(?z`"),
        ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
        ("\\C", "invalid escape sequence: `\\C`"),
        ("\\p", "invalid character class range: `\\p`"),
        ("\\p{L", "invalid character class range: `\\p{L`"),
        ("\\xg", "invalid escape sequence: `\\xg`"),
        ("\\p{Old_Italic}", "invalid character class range: `\\p{Old_Italic}`"),
        ("[\\p{}]", "invalid character class range: `\\p{}`"),
        ("\\pL{1000}" * 20, "expression too large"),
        ("(" * 1001, "expression nests too deeply"),
    ],
)
def test_invalid_patterns_name_their_problem(pattern: str, why: str) -> None:
    assert pattern_problem(pattern).startswith(f"error parsing regexp: {why}")


@pytest.mark.parametrize(
    ("pattern", "text", "all_found"),
    [
        ("a*", "baac", ["", "aa", ""]),
        ("(?U)a+", "aa", ["a", "a"]),
        ("(?P<n>a)(?P<n>b)", "abab", ["ab", "ab"]),
        ("\\B", "aé", [""]),
        ("[\\P{Letter}a]+", "ab1é", ["a", "1"]),
        ("(?i)k", "K\u212a", ["K", "\u212a"]),
        ("$", "a\n", [""]),
        ("\\Q(\\E", "((", ["(", "("]),
    ],
)
def test_all_matches_are_found(pattern: str, text: str, all_found: list[str]) -> None:
    assert list(found(pattern, text)) == all_found
    assert matches(pattern, text)


def test_patterns_match_anywhere_and_invalid_ones_always() -> None:
    assert matches("^a+$", "aaa")
    assert not matches("^a+$", "b")
    assert not matches("\\B", "aéa")
    assert matches("(", "an invalid pattern matches everything")


def test_patterns_exponential_elsewhere_are_fast() -> None:
    text = "a" * 5000 + "b"
    assert not matches("(a+)+$", text)
    assert list(found("(a+)+$", text)) == []
    assert not matches("(a|a?)*c", text)
    assert list(found("(x+x+)+y|.", text)) == list(text)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("piece", ["(?:", "[:", "a*", "\\x41", "(?i)", "[a]"])
def test_long_patterns_are_parsed_without_recursion(piece: str) -> None:
    assert isinstance(pattern_problem(piece * 100_000), str)
