"""JSON values: reading within limits, canonical bytes for equal values, and accessors that accept only the right type."""

import itertools
import json
import math
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.support.values import json_values
from wharfinger.formats.json.value import (
    MAX_DEPTH,
    JsonError,
    JsonValue,
    ShapeError,
    as_object,
    canonical_json,
    checksum,
    decode_json,
    encode_json,
    find,
    find_int,
    find_list,
    find_object,
    find_str,
    need_str,
    strings_of,
    to_json,
    type_name,
)


def decode(data: bytes | str) -> JsonValue:
    return decode_json(data, max_bytes=10_000_000, what="answer")


@given(json_values())
def test_json_values_round_trip(value: JsonValue) -> None:
    again = decode(encode_json(value))

    assert again == value
    assert canonical_json(again) == canonical_json(value)


@given(json_values())
def test_decoding_agrees_with_the_standard_library(value: JsonValue) -> None:
    assert json.loads(encode_json(value)) == value
    assert json.loads(canonical_json(value)) == value
    assert decode(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "truncated"),
        (b"{", "truncated"),
        (b"[1,]", "trailing comma"),
        (b"nan", "truncated"),
        (b"1e400", "out of range"),
        (b"9" * 5000, "out of range"),
        (b'"\\ud800"', "truncated"),
        (b'"\xff"', "utf-8"),
        (b"\xef\xbb\xbf1", "invalid character"),
        (b"1 2", "trailing characters"),
        ('"\ud800"', "surrogates not allowed at character 1"),
    ],
)
def test_invalid_json_is_refused_by_name(data: bytes | str, reason: str) -> None:
    with pytest.raises(JsonError, match="answer: ") as caught:
        decode(data)
    assert reason in str(caught.value)


def test_the_size_limit_counts_bytes() -> None:
    assert decode_json(b'"123"', max_bytes=5, what="x") == "123"
    for data in (b'"1234"', '"1234"', '"\u00e9\u00e9"'):
        with pytest.raises(JsonError, match="over the limit of 5"):
            decode_json(data, max_bytes=5, what="x")


@pytest.mark.parametrize(("opener", "closer"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_nesting_over_the_limit_is_refused(opener: str, closer: str) -> None:
    times = MAX_DEPTH // (len(closer))
    deep = opener * times + "1" + closer * times

    assert decode(deep) is not None
    with pytest.raises(JsonError, match=f"nested deeper than {MAX_DEPTH}"):
        decode(f"[{deep}]")
    with pytest.raises(JsonError, match=f"nested deeper than {MAX_DEPTH}"):
        decode(opener * 100_000)
    with pytest.raises(JsonError, match=f"nested deeper than {MAX_DEPTH}"):
        decode('["a]\\\\\\"]", ' + opener * 250)
    with pytest.raises(JsonError):
        decode("]" * 1000 + opener * 100_000)


@pytest.mark.parametrize("text", ["[{" * 300, '"' + "[" * 300, "\\" * 5 + '"[', '\\"]' * 100 + "[" * 101, "{]" * 300])
def test_brackets_in_strings_are_not_counted(text: str) -> None:
    wide: JsonValue = [text, {text: text}, *([[]] * 300)]

    assert decode(json.dumps(wide)) == wide


def test_a_wide_document_is_not_refused_as_deep() -> None:
    assert decode("[" + ",".join(['{"a":[1,{"b":[]}]}'] * 5000) + "]")
    for data in ("[}" * 300, "[" * 150 + "}" * 150 + "[" * 60, "[]]" * 300):
        with pytest.raises(JsonError):
            decode(data)


EQUAL = [
    [1, 1.0],
    [0, 0.0, -0.0],
    [10**22, 1e22],
    [int(1e23), 1e23],
    [-(2**63), -(2.0**63)],
    [2**64, 2.0**64],
    [int(1e308), 1e308],
    ["\U0001f600", json.loads('"\\ud83d\\ude00"')],
]


@pytest.mark.parametrize("group", EQUAL)
def test_equal_values_have_equal_canonical_bytes(group: list[JsonValue]) -> None:
    wrapped: list[list[JsonValue]] = [[value, [value], {"a": value, "b": [1, {"c": value}]}] for value in group]
    for one, other in itertools.combinations(wrapped, 2):
        for left, right in zip(one, other, strict=True):
            assert left == right
            assert canonical_json(left) == canonical_json(right)
            assert checksum(left) == checksum(right)


@given(json_values(), json_values())
def test_canonical_bytes_are_equal_exactly_if_the_json_is_equal(one: JsonValue, other: JsonValue) -> None:
    same = _typed(one) == _typed(other)

    assert (canonical_json(one) == canonical_json(other)) is same


def _typed(value: JsonValue) -> object:
    """Return a form of the value that compares as JSON does: True is not 1, 1.0 is 1, and mappings have no order."""
    if isinstance(value, dict):
        return ("object", {key: _typed(item) for key, item in value.items()})
    if isinstance(value, list):
        return ("list", [_typed(item) for item in value])
    return (isinstance(value, bool), value)


def test_booleans_numbers_and_strings_have_different_canonical_bytes() -> None:
    values: list[JsonValue] = [True, 1, "1", [1], {"1": 1}, None, False, 0, "", [], {}]

    assert len({canonical_json(value) for value in values}) == len(values)


def test_canonical_json_sorts_keys_and_shortens_whole_numbers() -> None:
    assert canonical_json({"b": 1.5, "a": {"z": 1.0, "y": "\u00e9\n"}, "\uffff": [], "\U0001f600": 1e-7}) == (
        '{"a":{"y":"\u00e9\\n","z":1},"b":1.5,"\uffff":[],"\U0001f600":1e-7}'.encode()
    )
    assert encode_json({"b": 1.0, "a": 2}) == b'{"b":1.0,"a":2}'
    assert checksum({}) == "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


def test_canonical_json_does_not_change_its_argument() -> None:
    value: JsonValue = {"a": [1.0, {"b": 2.0}], "c": 1}

    canonical_json(value)
    assert encode_json(value) == b'{"a":[1.0,{"b":2.0}],"c":1}'


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_and_infinities_have_no_json_form(value: float) -> None:
    nested: list[JsonValue] = [value, [value], {"a": [value]}]
    for document in nested:
        with pytest.raises(ShapeError, match="no JSON form"):
            canonical_json(document)
    with pytest.raises(ShapeError, match=r"spec\.a\[0\]: .* has no JSON form"):
        to_json({"a": [value]}, "spec")


@pytest.mark.parametrize("value", ["\ud800", 10**5000], ids=["surrogate", "digits"])
def test_half_surrogates_and_endless_digits_have_no_json_form(value: JsonValue) -> None:
    for write in (encode_json, canonical_json):
        with pytest.raises(ShapeError, match="no JSON form"):
            write([value])
    with pytest.raises(ShapeError, match="no JSON form"):
        canonical_json({"\ud800": 1})


def test_a_value_that_contains_itself_has_no_json_form() -> None:
    endless: list[JsonValue] = []
    endless.append({"a": endless})

    for write in (encode_json, canonical_json, to_json):
        with pytest.raises(ShapeError):
            write(endless)


def test_find_returns_a_nested_value_or_none() -> None:
    document: JsonValue = {"a": [{"b": 1}, None], "n": None, "s": "x", "": {"e": 2}}

    assert find(document) == document
    assert find(document, "a", 0, "b") == 1
    assert find(document, "a", -1) is None
    assert find(document, "", "e") == 2
    for path in (("a", 2), ("a", -3), ("a", "b"), ("s", 0), ("s", "x"), ("n", "x"), ("zz",), (0,)):
        assert find(document, *path) is None


def test_typed_finds_return_a_value_or_a_default() -> None:
    document: JsonValue = {"s": "x", "i": 3, "o": {"k": 1}, "l": [1], "n": None, "t": True, "f": 1.5}

    assert (find_str(document, "s"), find_str(document, "zz", default="d"), find_str(document, "n")) == ("x", "d", "")
    assert (find_int(document, "i"), find_int(document, "zz", default=7)) == (3, 7)
    assert (find_object(document, "o"), find_object(document, "n")) == ({"k": 1}, {})
    assert (find_list(document, "l"), find_list(document, "zz")) == ([1], [])
    assert need_str(document, "s") == "x"
    assert as_object({"a": 1}, "x") == {"a": 1}


@pytest.mark.parametrize(
    ("ask", "path", "message"),
    [
        (find_str, ("i",), "i: expected a string, found an integer"),
        (find_str, ("o", "deep"), "o.deep: expected a string, found a list"),
        (find_int, ("t",), "t: expected an integer, found a boolean"),
        (find_int, ("f",), "f: expected an integer, found a number"),
        (find_object, ("s",), "s: expected an object, found a string"),
        (find_list, ("o",), "o: expected a list, found an object"),
        (need_str, ("zz",), "zz: required"),
        (find_str, (), "document: expected a string, found an object"),
    ],
)
def test_errors_name_the_expected_and_the_actual_type(ask: object, path: tuple[str, ...], message: str) -> None:
    document: JsonValue = {"s": "x", "i": 3, "o": {"deep": [1]}, "t": True, "f": 1.5}

    assert callable(ask)
    with pytest.raises(ShapeError, match="^" + message.replace(".", r"\.") + "$"):
        ask(document, *path)


def test_as_object_names_null() -> None:
    with pytest.raises(ShapeError, match="metadata: expected an object, found null"):
        as_object(None, "metadata")


def test_to_json_copies_plain_data() -> None:
    inner = [1, "a"]
    value = MappingProxyType({"a": inner, "b": (True, None), "c": 1.5})

    copied = to_json(value)
    inner.append(2)
    assert copied == {"a": [1, "a"], "b": [True, None], "c": 1.5}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({1: 2}, "value: key 1 is not a string"),
        ({"a": {3}}, r"value\.a: a set has no JSON form"),
        ([b"x"], r"value\[0\]: a bytes has no JSON form"),
        (object(), "value: a object has no JSON form"),
    ],
)
def test_to_json_names_a_value_without_a_json_form(value: object, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        to_json(value)


def test_type_names_have_an_article() -> None:
    values: list[JsonValue] = [None, True, 1, 1.5, "a", [], {}]

    assert [type_name(value) for value in values] == [
        "null",
        "a boolean",
        "an integer",
        "a number",
        "a string",
        "a list",
        "an object",
    ]


@given(st.binary(max_size=60) | st.text('{}[]",:\\u0d8 1e-.truefalsn', max_size=40).map(lambda text: text.encode()))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        value = decode(data)
    except JsonError:
        return
    assert canonical_json(decode(canonical_json(value))) == canonical_json(value)


@pytest.mark.parametrize(("value", "found"), [(["a", 1, "b", None], ["a", "b"]), ("a", []), (None, []), ({"a": 1}, [])])
def test_strings_of_skips_other_values(value: JsonValue, found: list[str]) -> None:
    assert strings_of(value) == found
