"""What failures become."""

import httpx
import pytest

from wharfinger.cluster.errors import ApiError, ConflictError, GoneError, InvalidError, NotFoundError
from wharfinger.cluster.http_errors import NotServedError, error_of_response, error_of_status, unreachable


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
def test_kinds(code: int, kind: type[ApiError], transient: bool) -> None:
    error = error_of_response(code, b'{"kind":"Status","reason":"Because","message":"it is so"}', "get Pod a/b")
    assert type(error) is kind
    assert (error.code, error.reason, error.transient) == (code, "Because", transient)
    assert str(error) == f"get Pod a/b: it is so ({code} Because)"


def test_status_without_words() -> None:
    assert str(error_of_response(409, b'{"kind":"Status"}', "x")) == "x: Conflict (409 Conflict)"
    assert str(error_of_response(418, b'{"kind":"Status"}', "x")) == "x: Unknown (418 Unknown)"


@pytest.mark.parametrize(
    "body", [b"<html>\n Bad  gateway</html>", b"\xff\xfe", b"", b"[1]", b"[" * 100_000, b'{"a":1}']
)
def test_answers_that_are_no_status_are_quoted(body: bytes) -> None:
    error = error_of_response(502, body, "get Pod a/b")
    assert (error.code, error.reason) == (502, "Unknown")
    assert len(error.message) < 400
    if body.startswith(b"<html>"):
        assert error.message == "get Pod a/b: <html> Bad gateway</html>"
    if not body:
        assert error.message == "get Pod a/b: no explanation was given"


def test_a_path_that_is_not_served_differs_from_an_object_that_is_not_there() -> None:
    assert isinstance(error_of_response(404, b"404 page not found", "x"), NotServedError)
    body = b'{"kind":"Status","message":"the server could not find the requested resource"}'
    assert isinstance(error_of_response(404, body, "x"), NotServedError)
    assert type(error_of_response(404, b'{"kind":"Status","message":"pods \\"b\\" not found"}', "x")) is NotFoundError


def test_status_inside_a_stream() -> None:
    gone = error_of_status({"code": 410, "reason": "Expired", "message": "too old"}, "watch Pod")
    assert isinstance(gone, GoneError)
    assert str(gone) == "watch Pod: too old (410 Expired)"
    assert error_of_status({}, "watch Pod").code == 500
    assert error_of_status({"code": 200, "message": 5, "reason": ""}, "w").reason == "InternalError"


def test_unreachable_names_the_server() -> None:
    assert (
        str(unreachable("https://s", "get x", httpx.ConnectError("refused")))
        == "get x: no answer from https://s: refused"
    )
    assert "the answer took too long" in str(unreachable("https://s", "get x", httpx.ReadTimeout("")))
    assert "PoolTimeout" in str(unreachable("https://s", "get x", httpx.PoolTimeout("")))
