"""The resolver of YAML scalars, tested with the table that is compared with kubectl."""

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.support.yaml_table import KEYS, SCALARS
from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.yaml.scalars import (
    CORE,
    Kind,
    Resolved,
    ScalarError,
    as_key,
    as_value,
    float_key,
    resolve,
    shown_tag,
    tagged,
)

PLAIN = [(text, value) for text, value in SCALARS if not text.startswith(("!", "'", '"'))]
PLAIN_KEYS = [(text, key) for text, key in KEYS if not text.startswith(("!", "'", '"'))]


@pytest.mark.parametrize(("text", "expected"), PLAIN, ids=[text for text, _ in PLAIN])
def test_plain_scalars_are_resolved_to_values(text: str, expected: JsonValue) -> None:
    value = as_value(resolve(text))

    assert value == expected
    assert isinstance(value, bool) is isinstance(expected, bool)


@pytest.mark.parametrize(("text", "expected"), PLAIN_KEYS, ids=[text for text, _ in PLAIN_KEYS])
def test_plain_scalars_are_resolved_to_keys(text: str, expected: str) -> None:
    assert as_key(resolve(text)) == expected


@pytest.mark.parametrize(
    ("text", "kind"),
    [("y", Kind.BOOL), ("", Kind.NULL), ("12", Kind.INT), ("1e3", Kind.FLOAT), (".inf", Kind.FLOAT), ("1:2", Kind.STR)],
)
def test_plain_scalars_are_resolved_to_kinds(text: str, kind: Kind) -> None:
    assert resolve(text).kind is kind


def test_whole_floats_become_integers_only_within_64_bits() -> None:
    for text, kind in [("1e3", int), ("1e18", int), ("9223372036854774784.0", int), ("1e19", float), ("1e300", float)]:
        assert type(as_value(resolve(text))) is kind, text


def test_a_negative_zero_loses_its_sign_only_as_a_value() -> None:
    value = as_value(resolve("-0.0"))

    assert (value, type(value)) == (0, int)
    assert as_key(resolve("-0.0")) == "-0"


@pytest.mark.parametrize("text", [".inf", "-.inf", ".nan"])
def test_values_without_a_json_form_may_be_keys_only(text: str) -> None:
    with pytest.raises(ScalarError, match="has no JSON form"):
        as_value(resolve(text))
    assert as_key(resolve(text)) == text


def test_null_is_not_a_key() -> None:
    with pytest.raises(ScalarError, match="a key is null"):
        as_key(Resolved(Kind.NULL, None))


@pytest.mark.parametrize(
    ("tag", "text", "reason"),
    [
        ("int", "x", "'x' is !!str, but its tag says !!int"),
        ("bool", "1", "'1' is !!int, but its tag says !!bool"),
        ("binary", "a", "!!binary is not base64"),
        ("timestamp", "2026-02-30", "'2026-02-30' is not a timestamp"),
        ("set", "x", "unknown tag '!!set'"),
        ("int", "x" * 100, "'" + "x" * 57 + "...' is !!str"),
    ],
)
def test_a_scalar_that_does_not_match_its_tag_is_refused(tag: str, text: str, reason: str) -> None:
    with pytest.raises(ScalarError) as caught:
        tagged(CORE + tag, text)
    assert reason in str(caught.value)


def test_an_unknown_tag_is_refused() -> None:
    with pytest.raises(ScalarError, match="unknown tag '!Ref'"):
        tagged("!Ref", "x")
    assert shown_tag("!Ref") == "!Ref"
    assert shown_tag(CORE + "int") == "!!int"


@pytest.mark.parametrize("digits", [65, 5_000, 100_000])
def test_very_long_numbers_are_read_in_bounded_time(digits: int) -> None:
    assert resolve("9" * digits) in {Resolved(Kind.FLOAT, float("9" * 65)), Resolved(Kind.STR, "9" * digits)}
    assert resolve("0" * digits + "7") == Resolved(Kind.INT, 7)
    assert resolve("0x" + "f" * digits) == Resolved(Kind.STR, "0x" + "f" * digits)
    assert resolve("0b-" + "1" * digits).kind is Kind.STR


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_float_keys_read_back_as_the_same_32_bit_float(value: float) -> None:
    text = float_key(value)

    assert struct.pack("f", float(text)) == struct.pack("f", value)
    digits = text.lstrip("-").partition("e")[0].replace(".", "").strip("0")
    assert len(digits) <= 9
    assert ("e" in text) is (value != 0 and not 1e-4 <= abs(float(text)) < 1e6)


@given(st.floats())
def test_any_float_can_be_a_key(value: float) -> None:
    assert float_key(value) not in {"", "inf", "nan"}
    assert math.isnan(value) is (float_key(value) == ".nan")


@given(st.integers(-(2**63), 2**64 - 1))
def test_every_64_bit_integer_is_read_exactly(value: int) -> None:
    assert resolve(str(value)) == Resolved(Kind.INT, value)
    assert as_key(resolve(str(value))) == str(value)


@given(st.text("0123456789+-._eExXbBoOaf", max_size=12))
def test_number_like_text_is_resolved_without_loss(text: str) -> None:
    found = resolve(text)

    if found.kind is Kind.STR:
        assert found.value == text
    else:
        assert text == "" or not isinstance(found.value, str)


@pytest.mark.parametrize("text", ["y", "Y", "yes", "No", "n", "on", "OFF", "Yes"])
def test_yaml_1_1_booleans_are_text_if_switched_off(text: str) -> None:
    assert isinstance(resolve(text).value, bool)
    assert resolve(text, old_booleans=False) == Resolved(Kind.STR, text)


@pytest.mark.parametrize("text", ["true", "False", "TRUE", "null", "~", "0777", "1e3", ".inf", "text"])
def test_other_scalars_do_not_depend_on_yaml_1_1_booleans(text: str) -> None:
    assert resolve(text, old_booleans=False) == resolve(text)
