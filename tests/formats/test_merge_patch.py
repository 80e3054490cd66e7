"""Merge patches, with the examples of RFC 7396."""

import copy
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.json.value import MAX_DEPTH, JsonObject, JsonValue, ShapeError
from wharfinger.formats.merge_patch import merge_patch, overlaid

RFC_EXAMPLES: Final[list[tuple[JsonValue, JsonValue, JsonValue]]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]
"""RFC 7396 appendix A: target, patch, result."""

VALUES: Final = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.parametrize(("target", "patch", "result"), RFC_EXAMPLES)
def test_merge_patches_agree_with_the_examples_of_the_rfc(
    target: JsonValue, patch: JsonValue, result: JsonValue
) -> None:
    assert merge_patch(target, patch) == result


@given(target=VALUES, patch=VALUES)
def test_arguments_are_neither_changed_nor_shared(target: JsonValue, patch: JsonValue) -> None:
    before = copy.deepcopy((target, patch))
    result = merge_patch(target, patch)
    _scribble(result)
    assert (target, patch) == before


@given(target=VALUES, patch=VALUES)
def test_applying_a_patch_twice_changes_nothing(target: JsonValue, patch: JsonValue) -> None:
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once


def _scribble(value: JsonValue) -> None:
    if isinstance(value, list):
        for item in value:
            _scribble(item)
        value.append("scribble")
    elif isinstance(value, dict):
        for item in value.values():
            _scribble(item)
        value["scribble"] = "scribble"


def test_settings_are_overlaid_by_key() -> None:
    below: JsonObject = {"a": {"b": 1, "c": [1]}, "d": 1, "e": {"f": 1}}
    above: JsonObject = {"a": {"c": [2], "g": 2}, "d": {"h": 2}, "e": None}
    before = copy.deepcopy((below, above))

    assert overlaid(below, above) == {"a": {"b": 1, "c": [2], "g": 2}, "d": {"h": 2}, "e": None}
    assert overlaid(below, {}) == overlaid({}, below) == overlaid(below, below) == below
    assert (below, above) == before


def test_settings_nested_too_deep_are_refused() -> None:
    deep: JsonObject = {}
    for _ in range(5_000):
        deep = {"a": deep}

    assert overlaid(deep, {"b": 1}) is not deep
    with pytest.raises(ShapeError, match=f"nested deeper than {MAX_DEPTH} levels"):
        overlaid(deep, deep)
