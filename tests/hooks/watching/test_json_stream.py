import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.json.value import JsonError, JsonValue, encode_json
from wharfinger.hooks.watching.json_stream import MAX_BYTES, MAX_DOCUMENTS, read_json_stream


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b" \r\n\t ", []),
        (b"{}", [{}]),
        (b'{"a":1}{"a":2}', [{"a": 1}, {"a": 2}]),
        (b'{"a":1}\n\n{"a":2}\n', [{"a": 1}, {"a": 2}]),
        (b'[{"a":1}] []', [[{"a": 1}], []]),
        (b'{"a": "}{]\\"["}', [{"a": '}{]"['}]),
        (b'{\n"a":\n[{"b":\n{}}]}', [{"a": [{"b": {}}]}]),
        ('{"ä": "\\u00e4"}'.encode(), [{"ä": "ä"}]),
    ],
)
def test_documents_follow_each_other_with_or_without_white_space(data: bytes, expected: list[JsonValue]) -> None:
    assert read_json_stream(data, what="metrics") == expected


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"1", r"line 1: expected an object or a list, found '1'"),
        (b'{}\n"a"', r"""line 2: expected an object or a list, found '"a"'"""),
        (b"{}\n\n  x {}", r"line 3: expected an object or a list, found 'x \{\}'"),
        (b"{} trailing", r"line 1: expected an object or a list, found 'trailing'"),
        (b"\xe0\x30U\xa0", r"line 1: expected an object or a list, found bytes that are not text \(e0 30 55 a0\)$"),
        (b"}", r"line 1: expected an object or a list, found '\}'"),
        (b"{}\n{", r"the document that begins in line 2 does not end"),
        (b'{"a": \n"b', r"a string that begins in line 2 does not end"),
        (b'{"a": "b\\"}', r"a string that begins in line 1 does not end"),
        (b"{}{]", r"metrics: document 2: "),
        (b"{}{a: 1}", r"metrics: document 2: "),
        (b'{"a": NaN}', r"metrics: document 1: "),
        (b'{"\xff": 1}', r"metrics: document 1: "),
        (b"[" * 201 + b"]" * 201, r"metrics: document 1: nested deeper than 200 levels"),
        (b" " * (MAX_BYTES + 1), rf"{MAX_BYTES + 1} bytes is over the limit of {MAX_BYTES}"),
        (b"[]" * (MAX_DOCUMENTS + 1), rf"more than {MAX_DOCUMENTS} documents"),
    ],
)
def test_invalid_streams_are_refused_with_the_position(data: bytes, why: str) -> None:
    with pytest.raises(JsonError, match=why):
        read_json_stream(data, what="metrics")


def test_a_stream_at_its_limits_is_read() -> None:
    assert len(read_json_stream(b"[]" * MAX_DOCUMENTS, what="metrics")) == MAX_DOCUMENTS
    filler = b"x" * (MAX_BYTES - 2 - len(b'[""]'))
    assert len(read_json_stream(b'["' + filler + b'"]  ', what="metrics")) == 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("piece", [b'"\\', b"\\n", b'\\"', b'"', b"{", b"[]", b'""'])
def test_reading_hostile_repetition_takes_linear_time(piece: bytes) -> None:
    """A reader that took quadratic time would need hours for 4 MiB, so the test checks only that reading ends."""
    with pytest.raises(JsonError):
        read_json_stream(b'["' + piece * (MAX_BYTES // len(piece) - 4), what="metrics")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
documents = st.lists(json_values, max_size=3) | st.dictionaries(st.text(), json_values, max_size=3)


@given(st.lists(st.tuples(documents, st.sampled_from([b"", b"\n", b" \r\n\t"])), max_size=5))
def test_written_streams_are_read_back(stream: list[tuple[JsonValue, bytes]]) -> None:
    data = b"".join(encode_json(document) + gap for document, gap in stream)
    assert read_json_stream(data, what="metrics") == [document for document, _ in stream]


@given(
    st.lists(st.sampled_from(["{", "}", "[", "]", '"', "\\", "1", ",", ":", "a", " ", "\n"]), max_size=12).map("".join)
)
def test_single_documents_are_accepted_like_in_the_standard_library(text: str) -> None:
    try:
        expected = json.loads(text)
    except ValueError:
        expected = None
    if isinstance(expected, dict | list):
        assert read_json_stream(text.encode(), what="metrics") == [expected]
