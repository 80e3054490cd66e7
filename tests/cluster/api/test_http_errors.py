"""Errors made from HTTP responses and connection failures."""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.cluster.api.errors import ApiError, ConflictError, GoneError, InvalidError, NotFoundError
from wharfinger.cluster.api.http_errors import (
    MAX_RETRY_AFTER_S,
    MIN_RETRY_AFTER_S,
    NotServedError,
    error_of_response,
    error_of_status,
    retry_after,
    unreachable,
)
from wharfinger.formats.json.value import JsonValue


@pytest.mark.parametrize(
    ("code", "kind", "transient"),
    [
        (400, InvalidError, False),
        (401, ApiError, True),
        (404, NotFoundError, True),
        (405, ApiError, False),
        (409, ConflictError, True),
        (410, GoneError, True),
        (422, InvalidError, False),
        (429, ApiError, True),
        (500, ApiError, True),
    ],
)
def test_the_status_code_decides_the_error_type(code: int, kind: type[ApiError], transient: bool) -> None:
    error = error_of_response(code, b'{"kind":"Status","reason":"Because","message":"it is so"}', "get Pod a/b")
    assert type(error) is kind
    assert (error.code, error.reason, error.transient) == (code, "Because", transient)
    assert str(error) == f"get Pod a/b: it is so ({code} Because)"


def test_a_status_without_a_message_is_named_by_its_code() -> None:
    assert str(error_of_response(409, b'{"kind":"Status"}', "x")) == "x: Conflict (409 Conflict)"
    assert str(error_of_response(418, b'{"kind":"Status"}', "x")) == "x: Unknown (418 Unknown)"


@pytest.mark.parametrize(
    "body", [b"<html>\n Bad  gateway</html>", b"\xff\xfe", b"", b"[1]", b"[" * 100_000, b'{"a":1}']
)
def test_answers_without_a_status_are_quoted(body: bytes) -> None:
    error = error_of_response(502, body, "get Pod a/b")
    assert (error.code, error.reason) == (502, "Unknown")
    assert len(error.message) < 400
    if body.startswith(b"<html>"):
        assert error.message == "get Pod a/b: <html> Bad gateway</html>"
    if not body:
        assert error.message == "get Pod a/b: no explanation was given"


def test_a_path_that_is_not_served_differs_from_a_missing_object() -> None:
    assert isinstance(error_of_response(404, b"404 page not found", "x"), NotServedError)
    body = b'{"kind":"Status","message":"the server could not find the requested resource"}'
    assert isinstance(error_of_response(404, body, "x"), NotServedError)
    assert type(error_of_response(404, b'{"kind":"Status","message":"pods \\"b\\" not found"}', "x")) is NotFoundError


def test_a_status_inside_a_stream_is_an_error() -> None:
    gone = error_of_status({"code": 410, "reason": "Expired", "message": "too old"}, "watch Pod")
    assert isinstance(gone, GoneError)
    assert str(gone) == "watch Pod: too old (410 Expired)"
    assert error_of_status({}, "watch Pod").code == 500
    assert error_of_status({"code": 200, "message": 5, "reason": ""}, "w").reason == "InternalError"


def test_an_unreachable_error_names_the_server() -> None:
    assert (
        str(unreachable("https://s", "get x", httpx.ConnectError("refused")))
        == "get x: no answer from https://s: refused"
    )
    assert "the answer took too long" in str(unreachable("https://s", "get x", httpx.ReadTimeout("")))
    assert "PoolTimeout" in str(unreachable("https://s", "get x", httpx.PoolTimeout("")))


NOON = "Wed, 21 Oct 2026 12:00:00 GMT"


@pytest.mark.parametrize(
    ("value", "date", "seconds"),
    [
        ("5", "", 5.0),
        ("0", "", 1.0),
        ("301", "", 300.0),
        ("9" * 5000, "", 300.0),
        ("", "", None),
        ("-1", "", None),
        ("1.5", "", None),
        ("²", "", None),
        ("soon", NOON, None),
        ("Wed, 21 Oct 2026 12:00:07 GMT", NOON, 7.0),
        ("Wed, 21 Oct 2026 12:00:07 -0000", NOON, 7.0),
        ("Wed, 21 Oct 2026 11:59:00 GMT", NOON, 1.0),
        ("Thu, 22 Oct 2026 12:00:00 GMT", NOON, 300.0),
        ("Wed, 21 Oct 2026 12:00:07 GMT", "", None),
        ("Wed, 21 Oct 2026 12:00:07 GMT", "noon", None),
        ("Wed, 21 Oct 2026 25:00:07 GMT", NOON, None),
    ],
)
def test_retry_after_is_parsed(value: str, date: str, seconds: float | None) -> None:
    assert retry_after(value, date) == seconds


HEADER = st.one_of(
    st.text(max_size=60),
    st.integers().map(str),
    st.from_regex(
        r"[A-Z][a-z]{2}, [0-9]{1,3} (Jan|Oct|Foo) [0-9]{1,5} [0-9]{2}:[0-9]{2}:[0-9]{2} (GMT|[-+][0-9]{1,6})"
    ),
)


@given(HEADER, HEADER)
def test_any_retry_after_is_bounded(value: str, date: str) -> None:
    asked = retry_after(value, date)
    assert asked is None or MIN_RETRY_AFTER_S <= asked <= MAX_RETRY_AFTER_S


@pytest.mark.parametrize(
    ("status", "kept"), [(429, True), (500, True), (503, True), (302, False), (409, False), (422, False)]
)
def test_retry_after_counts_only_for_overload_statuses(status: int, kept: bool) -> None:
    error = error_of_response(status, b"", "x", retry_after_s=7.0)
    assert error.retry_after_s == (7.0 if kept else None)
    assert error_of_response(status, b"", "x").retry_after_s is None


def test_a_status_inside_a_stream_may_carry_retry_after() -> None:
    def asked(seconds: JsonValue) -> float | None:
        return error_of_status({"code": 429, "details": {"retryAfterSeconds": seconds}}, "watch Pod").retry_after_s

    assert [asked(value) for value in (2, 10**400, 0, "2", None)] == [2.0, 300.0, None, None, None]
