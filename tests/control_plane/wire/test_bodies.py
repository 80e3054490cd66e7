import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.control_plane.wire.bodies import (
    BODY_LIMIT,
    Body,
    BodyError,
    decode,
    encode,
    read_body,
    with_plain_numbers,
)
from wharfinger.control_plane.wire.go_json import Spelled
from wharfinger.control_plane.wire.negotiation import Encoding
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import JsonValue


@pytest.mark.parametrize(
    ("data", "encoding", "value"),
    [
        (b'{"a": 1}', Encoding.JSON, {"a": 1}),
        (b'{"a": 1}', Encoding.YAML, {"a": 1}),
        (b"a: 1\nb: [x]\n", Encoding.YAML, {"a": 1, "b": ["x"]}),
        (
            b"when: 2026-11-21T04:03:02Z\nday: 2026-11-21\n",
            Encoding.YAML,
            {"when": "2026-11-21T04:03:02Z", "day": "2026-11-21"},
        ),
        (b"a: &x 1\nb: *x\n1: yes\n", Encoding.YAML, {"a": 1, "b": 1, "1": True}),
    ],
)
def test_bodies_are_decoded_by_encoding(data: bytes, encoding: Encoding, value: JsonValue) -> None:
    assert decode(data, encoding) == value


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"", Encoding.JSON),
        (b"nonsense", Encoding.JSON),
        (b"a: [", Encoding.YAML),
        (b"[" * 5000, Encoding.YAML),
        (b"\xff", Encoding.YAML),
        (b"!!python/object:x {}", Encoding.YAML),
        (b"nonsense", Encoding.PROTOBUF),
    ],
)
def test_undecodable_bodies_are_refused(data: bytes, encoding: Encoding) -> None:
    with pytest.raises(StatusError) as caught:
        decode(data, encoding)
    assert caught.value.code == 400


def test_a_body_that_is_too_large_is_refused() -> None:
    with pytest.raises(StatusError) as caught:
        decode(b" " * (BODY_LIMIT + 1), Encoding.JSON)
    assert (caught.value.code, caught.value.message) == (413, "Request entity too large: limit is 3145728")


@pytest.mark.parametrize(
    ("data", "encoding", "complaint"),
    [
        (b"", Encoding.JSON, "unexpected end of JSON input"),
        (b"\n\x1c", Encoding.JSON, "invalid character '\\x1c' looking for beginning of value"),
        (b"[" * 300 + b"]" * 300, Encoding.JSON, "exceeded max depth"),
        (b"a: b: c", Encoding.YAML, "yaml: mapping values are not allowed in this context"),
        (b"a: 1\nb:\n\t- 1\n", Encoding.YAML, "yaml: line 3: found character that cannot start any token"),
        (b"a: !!python/object:x {}", Encoding.YAML, "yaml: "),
        (b"a: \xff", Encoding.YAML, "yaml: invalid leading UTF-8 octet"),
        (b"a: \xe2\x82", Encoding.YAML, "yaml: incomplete UTF-8 octet sequence"),
        (b"a: \xe2\x28\xa1", Encoding.YAML, "yaml: invalid trailing UTF-8 octet"),
        (b"a: \xc0\xaf", Encoding.YAML, "yaml: invalid length of a UTF-8 sequence"),
        (b"a: \xed\xa0\x80", Encoding.YAML, "yaml: invalid Unicode character"),
        (b"a: \x01\xff", Encoding.YAML, "yaml: control characters are not allowed"),
        (b"a: \x00", Encoding.YAML, "yaml: control characters are not allowed"),
        (b"a: [.inf]", Encoding.YAML, "json: unsupported value: +Inf"),
        (b"a: -.INF", Encoding.YAML, "json: unsupported value: -Inf"),
        (b'{"a": 1e400}', Encoding.JSON, "json: cannot unmarshal number 1e400 into Go value of type float64"),
        (b"9" * 5000, Encoding.JSON, "json: cannot unmarshal number 999"),
    ],
)
def test_errors_of_invalid_bodies_are_those_of_go(data: bytes, encoding: Encoding, complaint: str) -> None:
    with pytest.raises(BodyError) as caught:
        read_body(data, encoding)
    assert str(caught.value).startswith(complaint)


@pytest.mark.slow
def test_invalid_utf_8_is_replaced() -> None:
    assert read_body(b'{"a":"\xff","b":"\\ud800"}', Encoding.JSON).value == {"a": "\ufffd", "b": "\ufffd"}
    assert read_body(b'"' + b"\xff" * (BODY_LIMIT - 2) + b'"', Encoding.JSON).value == "\ufffd" * (BODY_LIMIT - 2)
    assert read_body('a: "€"'.encode("utf-16"), Encoding.YAML).value == {"a": "€"}


def test_duplicate_keys_in_yaml_are_reported() -> None:
    body = read_body(b"a: 1\nb: 1.0\na: 3\n---\nother\n", Encoding.YAML)

    assert (body.value, body.repeats) == ({"a": 3, "b": 1}, ('line 3: key "a" already set in map',))
    assert body.closely() == {"a": 3, "b": 1}


@pytest.mark.parametrize(
    ("data", "summary"),
    [(b"", "<empty>"), (b"{}", "{}"), (b"{" + b"a" * 40, "{" + "a" * 29 + " ..."), (b"x" * 31, "78" * 30 + " ...")],
)
def test_long_bodies_are_summarized(data: bytes, summary: str) -> None:
    assert Body(None, data).summary == summary


def test_numbers_are_written_as_in_go() -> None:
    read: JsonValue = {"a": [1.0, 1.5, True, 2**63 - 1, 2**63, 12345678901234567890, 1e21, -0.0, Spelled("1e2")]}
    plain = with_plain_numbers(read)

    assert plain == {"a": [1, 1.5, True, 2**63 - 1, 9223372036854776000, 12345678901234567000, 1e21, 0, 100]}
    assert json.loads(encode(plain, Encoding.JSON)) == plain


def test_objects_are_encoded_as_json_or_yaml() -> None:
    assert encode({"b": 1, "a": "é"}, Encoding.JSON) == '{"b":1,"a":"é"}\n'.encode()
    assert encode({"b": 1, "a": [{"d": 1, "c": "é"}]}, Encoding.YAML) == "a:\n- c: é\n  d: 1\nb: 1\n".encode()
    assert encode({"b": 2**70}, Encoding.YAML) == b'{"b":1180591620717411303424}\n'


@given(st.binary(max_size=60), st.sampled_from(list(Encoding)))
def test_any_bytes_are_a_body_or_refused(data: bytes, encoding: Encoding) -> None:
    try:
        decode(data, encoding)
    except StatusError as error:
        assert error.code == 400
