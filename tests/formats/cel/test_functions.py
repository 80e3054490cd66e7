"""The table of functions that are added to those of the CEL library."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.cel.functions import (
    FUNCTIONS,
    INDEXES,
    MATCHES,
    STRING_FUNCTIONS,
    index_of,
    is_sorted,
    largest,
    last_index_of,
    smallest,
    string_index_of,
    string_last_index_of,
    total,
    without_groups,
)


def test_each_overload_has_a_unique_id() -> None:
    ids = [overload.id for overload in (*FUNCTIONS, *INDEXES)]
    assert len(set(ids)) == len(ids)
    assert not {name for name, *_ in (*STRING_FUNCTIONS, *MATCHES)} & {overload.name for overload in FUNCTIONS}


@pytest.mark.parametrize(
    ("pattern", "plain"),
    [
        ("a", "a"),
        ("(a)(b)", "(?:a)(?:b)"),
        ("((a))", "(?:(?:a))"),
        ("(?P<name>a)(?<other>b)", "(?:a)(?:b)"),
        ("(?:a)(?i:b)(?i)c", "(?:a)(?i:b)(?i)c"),
        (r"\(a\)", r"\(a\)"),
        (r"\\(a)", r"\\(?:a)"),
        ("[(]a[^)(]", "[(]a[^)(]"),
        ("[](]([^](])", "[](](?:[^](])"),
        (r"[\](](a)", r"[\](](?:a)"),
        ("[[:alpha:](](a)", "[[:alpha:](](?:a)"),
        (r"\Q(a)\E(b)\Q(", r"\Q(a)\E(?:b)\Q("),
    ],
)
def test_groups_become_non_capturing(pattern: str, plain: str) -> None:
    assert without_groups(pattern) == plain
    assert without_groups(plain) == plain


@given(st.from_regex(r"(?:[ab]|\(a\)|\(b\|a\)|a\*|\\\(|\[(?:a|\()\])*", fullmatch=True), st.text("ab(", max_size=10))
def test_a_pattern_without_groups_has_the_same_matches(pattern: str, text: str) -> None:
    plain = re.compile(without_groups(pattern))
    found = re.match(pattern, text)
    without = plain.match(text)
    assert plain.groups == 0
    assert (found and found[0]) == (without and without[0])


def test_list_functions_return_indexes_order_and_sums() -> None:
    assert index_of([1, True, 1], True) == 1
    assert index_of([1, 1.0, "a"], "b") == -1
    assert last_index_of([1, 2, 1], 1) == 2
    assert last_index_of([], 1) == -1
    assert is_sorted([1, 1, 2])
    assert not is_sorted([2, 1])
    assert total([1, 2.5]) == 3.5
    assert (smallest([2, 1]), largest([2, 1])) == (1, 2)
    for function in (smallest, largest):
        with pytest.raises(ValueError, match="empty"):
            function([])
    with pytest.raises(ValueError, match="numbers"):
        total([True])
    with pytest.raises(ValueError, match="overflow"):
        total([2**63])


def test_string_indexes_are_bounded_by_the_text() -> None:
    assert string_index_of("hello", "l") == 2
    assert string_index_of("hello", "l", 4) == -1
    assert string_last_index_of("hello", "l") == 3
    assert string_last_index_of("hello", "l", 2) == 2
    for start in (-1, 6):
        for function in (string_index_of, string_last_index_of):
            with pytest.raises(ValueError, match="range"):
                function("hello", "l", start)
