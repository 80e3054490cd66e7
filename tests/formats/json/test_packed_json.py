"""Packed documents. Unpacking returns the same text, large texts are compressed, and equal texts are equal when packed."""

import pytest
from hypothesis import given

from tests.formats.support.values import json_values
from wharfinger.formats.json.packed_json import SMALL, PackedJson
from wharfinger.formats.json.value import JsonError, JsonValue, encode_json


@given(json_values())
def test_the_text_is_returned_unchanged(value: JsonValue) -> None:
    text = encode_json(value)
    packed = PackedJson(text)
    assert packed.text() == text
    assert encode_json(packed.value()) == text


@pytest.mark.parametrize("size", [2, SMALL, SMALL + 1, 4096, 4097, 100_000])
def test_only_texts_over_the_size_limit_are_compressed(size: int) -> None:
    text = b'"' + b"x" * (size - 2) + b'"'
    packed = PackedJson(text)
    assert packed.text() == text
    assert (len(packed) < size) == (size > SMALL)
    assert repr(packed) == f"PackedJson({len(packed)} bytes)"


def test_equal_texts_are_equal() -> None:
    text = encode_json(["x" * SMALL])
    assert {PackedJson(text), PackedJson(text), PackedJson(b"1")} == {PackedJson(b"1"), PackedJson(text)}
    assert PackedJson(b"1") != PackedJson(b"1.0")
    assert PackedJson(b"1") != b"1"


def test_invalid_json_is_reported_when_its_value_is_read() -> None:
    with pytest.raises(JsonError, match="a stored document"):
        PackedJson(b"[1").value()
