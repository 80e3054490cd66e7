"""Documents kept as bytes: the same text comes out, in less room, and equal texts are equal."""

import pytest
from hypothesis import given

from tests.formats.support.values import json_values
from wharfinger.formats.json.packed_json import SMALL, PackedJson
from wharfinger.formats.json.value import JsonError, JsonValue, encode_json


@given(json_values())
def test_what_goes_in_comes_out(value: JsonValue) -> None:
    text = encode_json(value)
    packed = PackedJson(text)
    assert packed.text() == text
    assert encode_json(packed.value()) == text


@pytest.mark.parametrize("size", [2, SMALL, SMALL + 1, 100_000])
def test_on_either_side_of_what_is_small(size: int) -> None:
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


def test_who_vouched_wrongly_hears_of_it() -> None:
    with pytest.raises(JsonError, match="a stored document"):
        PackedJson(b"[1").value()
