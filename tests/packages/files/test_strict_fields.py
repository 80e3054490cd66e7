"""Accessors of fields. Their errors name the path of the field."""

import pytest

from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError
from wharfinger.packages.files.strict_fields import at, closed_object, flag, items, number, open_object, text

ENTRY: JsonObject = {"s": " a ", "t": True, "n": 3, "l": [1], "o": {"k": "v"}, "z": None, "f": 1.5}


def test_paths_of_fields_are_printed() -> None:
    assert at("", "a") == "a"
    assert at(at(at("a", "b"), 2), "c") == "a.b[2].c"
    assert at("a", "b\nc") == "a.'b\\nc'"
    assert len(at("a", "b" * 500)) < 70


def test_fields_have_their_value_or_a_default() -> None:
    assert [text(ENTRY, "s", ""), text(ENTRY, "z", ""), text(ENTRY, "no", "")] == ["a", "", ""]
    assert [flag(ENTRY, "t", ""), flag(ENTRY, "z", "")] == [True, False]
    assert [number(ENTRY, "n", "", most=3), number(ENTRY, "z", "", most=3)] == [3, None]
    assert [items(ENTRY, "l", ""), items(ENTRY, "z", "")] == [[1], []]
    assert open_object(None, "") == {}
    assert closed_object({"k": 1}, "", ("k",)) == {"k": 1}


@pytest.mark.parametrize(
    ("value", "known", "why"),
    [
        ({"nmae": 1}, ("name", "version"), r"^x\.nmae: unknown key; did you mean 'name'\?$"),
        ({"zebra": 1}, ("name", "version"), r"^x\.zebra: unknown key; known keys: name, version$"),
        ({"n" * 300: 1}, ("name",), "known keys: name"),
        ({"": 1}, ("name",), r"^x\.: unknown key"),
        ([], ("name",), "^x: expected an object, found a list$"),
    ],
)
def test_unknown_keys_are_refused_by_name(value: JsonValue, known: tuple[str, ...], why: str) -> None:
    with pytest.raises(ShapeError, match=why):
        closed_object(value, "x", known)


def test_a_malformed_document_is_reported_as_document() -> None:
    with pytest.raises(ShapeError, match=r"^document: expected an object, found a string$"):
        open_object("a", "")


@pytest.mark.parametrize("key", ["t", "n", "l", "o", "f"])
def test_a_field_that_is_not_a_string_is_refused(key: str) -> None:
    with pytest.raises(ShapeError, match=rf"^x\.{key}: expected a string, found") as caught:
        text(ENTRY, key, "x")
    assert ("put it in quotes" in str(caught.value)) is (key not in "lo")


@pytest.mark.parametrize("key", ["s", "n", "l", "o"])
def test_a_field_that_is_not_a_boolean_is_refused(key: str) -> None:
    with pytest.raises(ShapeError, match=rf"^x\.{key}: expected true or false"):
        flag(ENTRY, key, "x")


@pytest.mark.parametrize(("key", "most"), [("s", 9), ("t", 9), ("f", 9), ("l", 9), ("n", 2)])
def test_a_field_that_is_not_an_integer_in_range_is_refused(key: str, most: int) -> None:
    with pytest.raises(ShapeError, match=rf"^x\.{key}: expected an integer from 0 to {most}$"):
        number(ENTRY, key, "x", most=most)
    with pytest.raises(ShapeError):
        number({"n": -1}, "n", "x", most=most)


@pytest.mark.parametrize("key", ["s", "o", "n"])
def test_a_field_that_is_not_a_list_is_refused(key: str) -> None:
    with pytest.raises(ShapeError, match=rf"^x\.{key}: expected a list"):
        items(ENTRY, key, "x")
