"""The heads of requests, among them some that h11 accepts and the server refuses."""

import h11
import pytest

from wharfinger.httpd.head import MAX_HEADERS, RequestHead, check_head
from wharfinger.httpd.target import RefusedRequestError, Target


def head_of(raw: bytes) -> RequestHead:
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(raw.replace(b"\n", b"\r\n") + b"\r\n\r\n")
    event = connection.next_event()
    assert isinstance(event, h11.Request)
    return check_head(event, header_bytes=4000, body_bytes=1000)


def test_a_head_is_parsed() -> None:
    head = head_of(b"POST /a?b=c HTTP/1.1\nHost: x\nX-Two: 1\nx-two: 2\nContent-Length: 1000\nNote: caf\xe9\t!")
    assert head.method == "POST"
    assert head.target == Target("/a", {"b": ("c",)})
    assert head.headers == {"host": "x", "x-two": "1, 2", "content-length": "1000", "note": "café\t!"}
    assert head.length == 1000


def test_repeated_headers_whose_values_have_commas_stay_separate() -> None:
    head = head_of(b"GET / HTTP/1.1\nHost: x\nImpersonate-Group: a,b\nImpersonate-Group: c")
    assert head.headers["impersonate-group"] == "a,b\nc"


def test_the_length_of_the_body_is_read() -> None:
    assert head_of(b"GET / HTTP/1.1\nHost: x").length == 0
    assert head_of(b"PUT / HTTP/1.1\nHost: x\nTransfer-Encoding: chunked").length is None
    assert head_of(b"PUT / HTTP/1.1\nHost: x\nContent-Length: 5\nContent-Length: 5").length == 5


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"GET / HTTP/2.0\nHost: x", 505),
        (b"PRI * HTTP/2.0", 505),
        (b"GET / HTTP/0.9", 505),
        (b"PUT / HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\nContent-Length: 5", 400),
        (b"PUT / HTTP/1.0\nHost: x\nTransfer-Encoding: chunked", 400),
        (b"GET / HTTP/1.1\nHost: x\nA: \x01", 400),
        (b"GET / HTTP/1.1\nHost: x\nA: b\x7f", 400),
        (b"GET /%x HTTP/1.1\nHost: x", 400),
        (b"PUT / HTTP/1.1\nHost: x\nContent-Length: 1001", 413),
        (b"PUT / HTTP/1.1\nHost: x\nContent-Length: 99999999999999999999", 413),
        (b"PUT / HTTP/1.1\nHost: x\nExpect: miracles", 417),
        (b"GET / HTTP/1.1\nHost: x\nA: " + b"a" * 4000, 431),
        (b"GET /" + b"a" * 4000 + b" HTTP/1.1\nHost: x", 431),
        (b"GET / HTTP/1.1\nHost: x" + b"\nA: a" * MAX_HEADERS, 431),
        (b"CONNECT x:443 HTTP/1.1\nHost: x", 501),
    ],
)
def test_invalid_heads_are_refused(raw: bytes, status: int) -> None:
    with pytest.raises(RefusedRequestError) as refused:
        head_of(raw)
    assert refused.value.status == status
