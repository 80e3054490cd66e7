"""JSON, parsed as Go parses it: the error messages, and objects with repeated members."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.control_plane.wire.go_json import (
    closely_read,
    large_number,
    may_repeat,
    repeated_members,
    syntax_error,
    whole_text,
)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b'{"a":1}', ""),
        (b"[]", ""),
        (b"{", "unexpected end of JSON input"),
        (b'{"a"', "unexpected end of JSON input"),
        (b'"abc', "unexpected end of JSON input"),
        (b"{a:1}", "invalid character 'a' looking for beginning of object key string"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        (b"[1 2]", "invalid character '2' after array element"),
        (b"[1,]", "invalid character ']' looking for beginning of value"),
        (b"1 x", "invalid character 'x' after top-level value"),
        (b"tru ", "invalid character ' ' in literal true (expecting 'e')"),
        (b"01", "invalid character '1' after top-level value"),
        (b"-x", "invalid character 'x' in numeric literal"),
        (b"1.x", "invalid character 'x' after decimal point in numeric literal"),
        (b"1e+", "unexpected end of JSON input"),
        (b"1ex", "invalid character 'x' in exponent of numeric literal"),
        (b'"\n"', "invalid character '\\n' in string literal"),
        (b'"\\x"', "invalid character 'x' in string escape code"),
        (b'"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape"),
        (b"'", "invalid character '\\'' looking for beginning of value"),
        (b"[" * 10_001, "exceeded max depth"),
    ],
)
def test_syntax_errors_are_those_of_go(data: bytes, complaint: str) -> None:
    assert syntax_error(data) == complaint


def test_repeated_members_are_listed_by_path() -> None:
    data = b'{"a":{"b":1,"b":2.50,"c:":[{"d":1,"d":1}]},"a\\"":":"}'
    value = closely_read(data)

    assert may_repeat(data, json.loads(data))
    assert repeated_members(value) == ['duplicate field "a.b"', 'duplicate field "a.c:[0].d"']
    assert not may_repeat(b'{"a:":{"b":"x:\\":y"}}', {"a:": {"b": 'x:":y'}})


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b'{"a":"b"}', '{"a":"b"}'),
        (b'"\xff\xfe|\xc3|\xe2\x82|\xe2\x82\xac"', '"\ufffd\ufffd|\ufffd|\ufffd\ufffd|\u20ac"'),
        (b'"\xed\xa0\x80\xc0\xaf"', '"\ufffd\ufffd\ufffd\ufffd\ufffd"'),
        (rb'{"\ud800":"\udc00"}', '{"\ufffd":"\ufffd"}'),
        (rb'"\uD83D\uDE00"', r'"\uD83D\uDE00"'),
        (rb'"\ud800\ud83d\ude00\ud83d"', '"\ufffd\\ud83d\\ude00\ufffd"'),
        (rb'"\ud800\u0041\ud800\n"', '"\ufffd\\u0041\ufffd\\n"'),
        (rb'"\\ud800\\\ud800"', '"\\\\ud800\\\\\ufffd"'),
    ],
)
def test_invalid_text_is_replaced_as_in_go(data: bytes, text: str) -> None:
    assert whole_text(data).decode() == text
    assert closely_read(data) == json.loads(text)


@pytest.mark.parametrize(
    ("data", "number"),
    [
        (b'{"a": [1e308, 1E400]}', "1E400"),
        (b"[1e-400, -1e400, 1e999]", "-1e400"),
        (b"9" * 309, "9" * 309),
        (b"1" + b"0" * 308, ""),
        (b'"1e400"', ""),
    ],
)
def test_numbers_out_of_range_are_found(data: bytes, number: str) -> None:
    assert large_number(data) == number


def test_constants_that_are_not_json_are_refused() -> None:
    with pytest.raises(ValueError, match="NaN is not valid JSON"):
        closely_read(b"NaN")


@given(st.binary(max_size=30))
def test_the_scanner_accepts_exactly_json(data: bytes) -> None:
    try:
        json.loads(data.decode("latin-1"), parse_constant=pytest.skip)
    except ValueError:
        assert syntax_error(data)
    else:
        assert syntax_error(data) == ""
