"""The protocol of jq workers: frames that arrive in pieces, and messages in both directions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.support.values import json_values
from wharfinger.formats.errors import FormatError
from wharfinger.formats.jq.protocol import (
    JqProtocolError,
    JqRefusal,
    JqRequest,
    JqResults,
    JqText,
    RefusalKind,
    decode_answer,
    decode_request,
    encode_refusal,
    encode_request,
    encode_results,
    encode_text,
)
from wharfinger.formats.json.value import JsonValue, encode_json


@given(st.text(st.characters(exclude_categories=["Cs"])), st.none() | json_values())
def test_requests_round_trip(program: str, value: JsonValue) -> None:
    request = JqRequest(program, None if value is None else encode_json(value))
    assert decode_request(encode_request(request)) == request


def test_a_null_input_is_sent_as_an_input() -> None:
    assert decode_request(encode_request(JqRequest(".", b"null"))).text == b"null"


def test_a_program_with_half_a_surrogate_pair_is_not_sent() -> None:
    with pytest.raises(JqProtocolError, match="surrogate"):
        encode_request(JqRequest("\ud800", None))


@pytest.mark.parametrize("text", [b"", b'{"a":', b"1 2", b'"\xff"', b"[" * 100_000])
def test_invalid_json_is_not_sent(text: bytes) -> None:
    with pytest.raises(JqProtocolError, match="is not JSON"):
        encode_request(JqRequest(".", text, whole=True))


@given(st.lists(json_values(), max_size=4))
def test_results_round_trip(values: list[JsonValue]) -> None:
    texts = [encode_json(value).decode() for value in values]
    assert decode_answer(encode_results(texts)) == JqResults(tuple(values))


@pytest.mark.parametrize(
    ("texts", "text"),
    [
        ([], b"null"),
        (["3.0"], b"3"),
        (['{"b":1,"a":[1E+3]}'], b'{"a":[1000],"b":1}'),
        (["1", '"x"'], b'[1,"x"]'),
        (["[]"], b"[]"),
    ],
)
def test_results_are_combined_into_one_canonical_text(texts: list[str], text: bytes) -> None:
    assert decode_answer(encode_text(texts)) == JqText(text)


@pytest.mark.parametrize("text", ["1e999", "[" * 300 + "]" * 300, "nonsense"])
def test_results_without_a_canonical_form_are_refused(text: str) -> None:
    with pytest.raises(FormatError):
        encode_text([text])


@given(json_values())
def test_a_request_for_one_combined_text_round_trips(value: JsonValue) -> None:
    request = JqRequest(".", encode_json(value), whole=True)
    assert decode_request(encode_request(request)) == request


@pytest.mark.parametrize(
    ("text", "value"),
    [("3.0", "3"), ("[1E+17,-2.0]", "[100000000000000000, -2]"), ('{"a":0.0}', "{'a': 0}"), ("1.5", "1.5")],
)
def test_whole_numbers_are_integers(text: str, value: str) -> None:
    answer = decode_answer(encode_results([text]))
    assert isinstance(answer, JqResults)
    assert repr(answer.values[0]) == value


def test_numbers_beyond_64_bits_keep_their_type() -> None:
    answer = decode_answer(encode_results(["123456789012345678901234567890", "1e30"]))
    assert repr(answer) == "JqResults(values=(123456789012345678901234567890, 1e+30))"


@given(st.sampled_from(RefusalKind), st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_refusals_round_trip(kind: RefusalKind, message: str) -> None:
    assert decode_answer(encode_refusal(JqRefusal(kind, message))) == JqRefusal(kind, message)


def test_a_message_with_half_a_surrogate_pair_can_be_sent() -> None:
    answer = decode_answer(encode_refusal(JqRefusal(RefusalKind.RUN, "a\udc80b")))
    assert answer == JqRefusal(RefusalKind.RUN, "a?b")


@pytest.mark.parametrize(
    "payload", [b"", b"[]", b"{}", b'{"program":1}', b'{"program":"."', b"\xff", b'{"program":"\xff"}']
)
def test_invalid_requests_are_refused(payload: bytes) -> None:
    with pytest.raises(JqProtocolError, match="not a request"):
        decode_request(payload)


@pytest.mark.parametrize(
    "payload",
    [
        *(
            b"",
            b"null",
            b"{}",
            b'{"results":1}',
            b'{"error":"x"}',
            b'{"error":"x","kind":"y"}',
            b'{"error":1,"kind":"run"}',
        ),
        *(b'{"text":1', b'{"text":}', b'{"text":' + b"[" * 5_000 + b"]" * 5_000 + b"}"),
        *(b'{"error":"","kind":"run"}', b'{"results":[1e999]}', b'{"results":[' + b"[" * 300 + b"]" * 300 + b"]}"),
    ],
)
def test_invalid_answers_are_refused(payload: bytes) -> None:
    with pytest.raises(FormatError, match="jq"):
        decode_answer(payload)
