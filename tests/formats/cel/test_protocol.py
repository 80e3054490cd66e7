"""The lines that the daemon and a rule worker exchange."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.support.values import json_values
from wharfinger.formats.cel.protocol import (
    MAX_FINDINGS,
    CelProtocolError,
    CelRequest,
    Finding,
    FindingKind,
    decode_line,
    decode_request,
    encode_at,
    encode_check,
    encode_evaluation,
    encode_findings,
)
from wharfinger.formats.json.value import JsonValue, ShapeError, canonical_json
from wharfinger.formats.schemas.validations import SchemaRules

RULES = SchemaRules(1, b'{"rules":[]}')
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
FINDINGS = st.builds(
    Finding,
    st.sampled_from(FindingKind),
    st.lists(TEXT | st.integers(0, 9)).map(tuple),
    TEXT,
    TEXT,
    TEXT,
    st.integers(0, 9),
)


def test_check_requests_round_trip() -> None:
    assert decode_request(encode_check(RULES)) == CelRequest(RULES.text)


@given(json_values(), json_values())
def test_evaluation_requests_round_trip(value: JsonValue, old: JsonValue) -> None:
    line = encode_evaluation(RULES, value, old)
    assert line.count(b"\n") == 1
    request = decode_request(line)
    assert (request.rules, request.has_self) == (RULES.text, True)
    assert canonical_json(request.value) == canonical_json(value)
    assert canonical_json(request.old) == canonical_json(old)


def test_a_null_is_a_value() -> None:
    request = decode_request(encode_evaluation(RULES, None, None))
    assert request == CelRequest(RULES.text, has_self=True)


def test_a_value_without_a_json_form_is_not_sent() -> None:
    with pytest.raises(ShapeError, match="surrogate"):
        encode_evaluation(RULES, "\ud800", None)


@pytest.mark.parametrize(
    "line",
    [b"", b"{}", b"[]", b'{"rules":', b"\xff", b'{"rules":{},"self":' + b"[" * 300 + b"]" * 300 + b"}", b"[" * 9999],
)
def test_invalid_requests_are_refused(line: bytes) -> None:
    with pytest.raises(CelProtocolError, match="not a request"):
        decode_request(line)


@given(st.lists(FINDINGS, max_size=5))
def test_findings_round_trip(findings: list[Finding]) -> None:
    assert decode_line(encode_findings(findings)) == tuple(findings)


@given(TEXT)
def test_the_line_that_names_the_next_rule_round_trips(place: str) -> None:
    assert decode_line(encode_at(place)) == place


def test_a_finding_has_the_path_of_the_value_that_its_rule_checked() -> None:
    path = ("a", 1, "b")
    made = [Finding(FindingKind.FAILED, path, "", "", "", below).made_of for below in (-1, 0, 1, 3, 9)]
    assert made == [path, path, ("a", 1), (), ()]


def test_an_answer_has_a_limited_number_of_findings() -> None:
    finding = Finding(FindingKind.FAILED, (), "a", "b")
    assert decode_line(encode_findings([finding] * (MAX_FINDINGS + 1))) == (finding,) * MAX_FINDINGS


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"{}",
        b'{"at":1}',
        b'{"findings":1}',
        b'{"findings":[1]}',
        b'{"findings":[{"kind":"other"}]}',
        b'{"findings":[{"kind":"failed","path":1}]}',
        b'{"findings":[{"kind":"failed","message":[]}]}',
    ],
)
def test_invalid_answers_are_refused(line: bytes) -> None:
    with pytest.raises(CelProtocolError, match="not an answer"):
        decode_line(line)
