import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.cluster.control_plane.bodies import BODY_LIMIT, decode, encode, json_complaint
from wharfinger.cluster.control_plane.negotiation import Encoding
from wharfinger.cluster.control_plane.status import StatusError
from wharfinger.formats.json_value import JsonValue


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
def test_bodies(data: bytes, encoding: Encoding, value: JsonValue) -> None:
    assert decode(data, encoding) == value


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"", Encoding.JSON),
        (b"nonsense", Encoding.JSON),
        (b"a: [", Encoding.YAML),
        (b"a: 1\na: 2\n", Encoding.YAML),
        (b"a: 1\n---\nb: 1\n", Encoding.YAML),
        (b"[" * 5000, Encoding.YAML),
        (b"\xff", Encoding.YAML),
        (b"!!python/object:x {}", Encoding.YAML),
        (b"nonsense", Encoding.PROTOBUF),
    ],
)
def test_bad_bodies(data: bytes, encoding: Encoding) -> None:
    with pytest.raises(StatusError) as caught:
        decode(data, encoding)
    assert caught.value.code == 400


def test_a_body_has_a_limit() -> None:
    with pytest.raises(StatusError) as caught:
        decode(b" " * (BODY_LIMIT + 1), Encoding.JSON)
    assert (caught.value.code, caught.value.message) == (413, "Request entity too large: limit is 3145728")


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "json parse error: unexpected end of JSON input (<empty>)"),
        (b" \r\n\t", "json parse error: unexpected end of JSON input (<empty>)"),
        (b"\n\x1c", "json parse error: invalid character '\x1c' looking for beginning of value (0a1c)"),
        (b"\x0b", "json parse error: invalid character '\x0b' looking for beginning of value (0b)"),
        (b"not json", "json parse error: invalid character 'o' in literal null (expecting 'u') (6e6f74206a736f6e)"),
        (b"tru", "json parse error: the body is not one JSON document (747275)"),
        (b"<x>", "json parse error: invalid character '<' looking for beginning of value (3c783e)"),
        (b"{", "json parse error: the body is not one JSON document (7b)"),
    ],
)
def test_complaints(data: bytes, complaint: str) -> None:
    assert json_complaint(data) == complaint


def test_answers() -> None:
    assert encode({"b": 1, "a": "é"}, Encoding.JSON) == '{"b":1,"a":"é"}\n'.encode()
    assert encode({"b": 1, "a": [{"d": 1, "c": "é"}]}, Encoding.YAML) == "a:\n- c: é\n  d: 1\nb: 1\n".encode()
    assert encode({"b": 2**70}, Encoding.YAML) == b'{"b":1180591620717411303424}\n'


def test_what_is_wrong_with_yaml_is_said_with_its_place() -> None:
    with pytest.raises(StatusError) as caught:
        decode(b"a: 1\nb: 2\na: 3\n", Encoding.YAML)
    assert caught.value.message == "error decoding YAML: line 3, column 1: duplicate key 'a'"


@given(st.binary(max_size=60), st.sampled_from(list(Encoding)))
def test_any_bytes_are_a_body_or_refused(data: bytes, encoding: Encoding) -> None:
    try:
        decode(data, encoding)
    except StatusError as error:
        assert error.code == 400
