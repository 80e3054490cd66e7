"""Lenient access to parts of objects: a value of an unexpected type counts as absent."""

from wharfinger.control_plane.objects.lenient_fields import flag, part, parts, repeated, text_map, texts
from wharfinger.formats.json.value import JsonObject

OBJECT: JsonObject = {
    "a": {"b": {"c": 1}, "list": [{"x": 1}, None, 5], "texts": ["a", 1]},
    "yes": True,
    "map": {"k": None},
}


def test_existing_fields_are_returned_by_type() -> None:
    assert part(OBJECT, "a", "b") == {"c": 1}
    assert parts(OBJECT, "a", "list") == [{"x": 1}, {}, {}]
    assert texts(OBJECT, "a", "texts") == ["a", ""]
    assert text_map(OBJECT, "map") == {"k": ""}
    assert flag(OBJECT, "yes")


def test_missing_and_mistyped_fields_read_as_empty() -> None:
    assert part(OBJECT, "a", "b", "c") is None
    assert part(None, "a") is None
    assert parts(OBJECT, "yes") == []
    assert texts(OBJECT, "none") == []
    assert text_map(OBJECT, "yes") == {}
    assert not flag(OBJECT, "a")


def test_indexes_of_repeated_texts_are_found() -> None:
    assert repeated(["a", "b", "a", "a", "c", "b"]) == {2, 3, 5}
    assert repeated([]) == set()
