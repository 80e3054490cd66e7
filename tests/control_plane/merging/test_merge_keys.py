"""The lists of strategic merge patches: the identity of items, and their order."""

import pytest

from wharfinger.control_plane.merging.merge_keys import (
    PatchContentError,
    PatchError,
    are_objects,
    as_list,
    as_objects,
    identity_of,
    item_identity,
    key_of,
    ordered,
    split,
)
from wharfinger.formats.json.value import JsonValue


def named(names: str) -> list[JsonValue]:
    return [{"name": name} for name in names]


@pytest.mark.parametrize(
    ("merged", "order", "live", "result"),
    [
        ("abc", "ca", "abc", "bca"),
        ("xabc", "xc", "abc", "xabc"),
        ("abc", "", "cba", "cba"),
        ("abz", "zb", "ab", "zab"),
    ],
)
@pytest.mark.parametrize("key", ["", "name"])
def test_merged_lists_follow_the_requested_and_the_live_order(
    merged: str, order: str, live: str, result: str, key: str
) -> None:
    def items(names: str) -> list[JsonValue]:
        return named(names) if key else [*names]

    found = ordered(*split(items(merged), items(order), key), items(order), items(live), key)
    assert found == items(result)


@pytest.mark.parametrize(
    ("lists", "why"),
    [
        (([], []), "no elements in any of the given slices"),
        (([{"a": 1}], ["b"]), "list element types are not identical: [[map[a:1]] [b]]"),
        (([1], [1.0]), "list element types are not identical: [[1] [1]]"),
    ],
)
def test_mixed_and_empty_lists_are_refused(lists: tuple[list[JsonValue], list[JsonValue]], why: str) -> None:
    with pytest.raises(PatchError) as caught:
        are_objects(*lists)
    assert str(caught.value) == why


def test_lists_of_lists_are_refused() -> None:
    with pytest.raises(PatchContentError):
        are_objects([[1]], [[2]])
    assert are_objects([{}], [{}])
    assert not are_objects(["a"], [])


def test_items_are_identified_by_merge_key_or_value() -> None:
    assert identity_of(1) != identity_of(1.0)
    assert item_identity({"name": "a", "x": 1}, "name") == identity_of("a") == key_of({"name": "a"}, "name")
    with pytest.raises(PatchError, match="does not contain declared merge key: name"):
        key_of({"x": 1}, "name")
    with pytest.raises(PatchError, match="value for key 1 is not a map"):
        split(named("ab"), [{"name": "a"}, "b"], "name")


@pytest.mark.parametrize(
    ("value", "said"),
    [("a", "string"), (1, "int64"), (1.5, "float64"), (True, "bool"), (None, "%!s(<nil>)"), ([], "[]interface {}")],
)
def test_values_have_type_names_of_go(value: JsonValue, said: str) -> None:
    with pytest.raises(PatchError) as caught:
        as_objects([value])
    assert str(caught.value) == f"expected a map[string]interface {{}}, but received a {said}"
    with pytest.raises(PatchError, match=r"expected a \[\]interface"):
        as_list({})
