"""Responses, converted to h11 events."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import h11
import pytest

from wharfinger.httpd.messages import Response, StreamingResponse
from wharfinger.httpd.reply import may_have_body, response_head, text_response


def never_opened() -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
    raise AssertionError("a head opens no stream")


def headers_of(head: h11.Response) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in head.headers}


def test_a_response_head_has_length_and_headers() -> None:
    head = response_head(Response(201, b"abc", headers=(("Location", "/x"),)), close=False)
    headers = headers_of(head)
    assert (head.status_code, head.reason) == (201, b"Created")
    assert headers.pop("date").endswith(" GMT")
    assert headers == {"content-type": "application/json", "content-length": "3", "location": "/x"}


def test_a_streamed_response_has_no_length() -> None:
    headers = headers_of(response_head(StreamingResponse(200, never_opened), close=True))
    assert "content-length" not in headers
    assert headers["connection"] == "close"


@pytest.mark.parametrize("status", [204, 304])
def test_statuses_without_a_body_have_no_length(status: int) -> None:
    assert not may_have_body(status)
    assert set(headers_of(response_head(Response(status), close=False))) == {"date"}


def test_an_unknown_status_has_no_reason() -> None:
    assert response_head(Response(299), close=False).reason == b""


@pytest.mark.parametrize("status", [-1, 0, 100, 101, 199, 600])
def test_a_status_that_ends_no_exchange_is_refused(status: int) -> None:
    with pytest.raises(ValueError, match=str(status)):
        response_head(Response(status), close=False)


@pytest.mark.parametrize("name", ["Content-Length", "transfer-encoding", "Connection", "Date", "content-type"])
def test_a_handler_cannot_set_framing_headers(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        response_head(Response(200, headers=((name, "1"),)), close=False)


@pytest.mark.parametrize("value", ["a\r\nSet-Cookie: b", "a\nb", "a\x00"])
def test_a_header_cannot_contain_a_line_break(value: str) -> None:
    with pytest.raises(h11.LocalProtocolError):
        response_head(Response(200, headers=(("X-A", value),)), close=False)
    with pytest.raises(h11.LocalProtocolError):
        response_head(Response(200, content_type=value), close=False)


def test_a_text_response_ends_with_a_newline() -> None:
    assert text_response(404, "no such thing") == Response(404, b"no such thing\n", "text/plain; charset=utf-8")
