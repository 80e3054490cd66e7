"""The sharing of texts: values stay equal, and equal short texts in different values become one object."""

from hypothesis import given

from tests.formats.support.values import json_values
from wharfinger.formats.json.shared_texts import DEEPEST, LONGEST, with_shared_texts
from wharfinger.formats.json.value import JsonObject, JsonValue, find


def text(length: int) -> str:
    """Return a text of this length, which is a new object at each call."""
    return ("a-" * length)[:length]


@given(json_values())
def test_sharing_texts_leaves_the_value_equal(value: JsonValue) -> None:
    assert with_shared_texts({"a": value}) == {"a": value}


def test_short_texts_are_shared() -> None:
    def read(length: int) -> JsonObject:
        return with_shared_texts({"status": {"conditions": [{"type": text(length)}]}})

    where = ("status", "conditions", 0, "type")
    assert find(read(LONGEST), *where) is find(read(LONGEST), *where)
    assert find(read(LONGEST + 1), *where) is not find(read(LONGEST + 1), *where)


def test_deep_values_are_not_changed() -> None:
    deep: JsonValue = text(9)
    for _ in range(100_000):
        deep = [deep]
    found = with_shared_texts({"a": deep})["a"]
    for _ in range(DEEPEST + 1):
        assert isinstance(found, list)
        assert isinstance(deep, list)
        found, deep = found[0], deep[0]
    assert found is deep
    while isinstance(deep, list):  # free the value level by level
        deep = deep.pop()
