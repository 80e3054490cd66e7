"""Matching with the RE2 library. ``test_patterns`` tests the differences between Go's patterns and RE2's."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.kube import re2_library as matching

_PATTERNS = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "^", "$", "\\b"]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
    ),
    max_leaves=6,
)


@given(_PATTERNS, st.text("abcé ", max_size=8))
def test_matches_equal_those_of_pythons_re(pattern: str, text: str) -> None:
    wanted = re.search(pattern.replace("$", r"\Z"), text, re.ASCII)
    assert next(matching.found(pattern, text), None) == (wanted[0] if wanted else None)
    assert matching.matches(pattern, text) == bool(wanted)


def test_an_invalid_pattern_matches_without_results() -> None:
    assert not matching.compiles("(")
    assert matching.matches("(", "a")
    assert list(matching.found("(", "a")) == []


def test_large_patterns_get_more_memory() -> None:
    assert matching.compiles("[a-z]{1000}" * 150)


def test_the_steps_of_a_search_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "MAX_SEEN", 50)
    assert len(list(matching.found("a", "a" * 9))) == 9
    with pytest.raises(matching.TooLongError, match="more than 50 steps"):
        list(matching.found("a", "a" * 10))
    assert not matching.matches(r"\B", "aéaéaéaéa")


def test_invalid_unicode_is_matched() -> None:
    assert matching.matches("^.$", "\ud800")
