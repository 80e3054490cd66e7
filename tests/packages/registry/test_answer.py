import socket
import ssl

import httpx
import pytest

from tests.packages.support.faulty_registry import error_body
from wharfinger.packages.errors import ArtifactNotFoundError, RegistryError
from wharfinger.packages.registry.answer import MAX_QUOTE, failure, network_failure, quote

NONE = httpx.Headers()


@pytest.mark.parametrize(
    ("status", "transient", "says"),
    [
        (400, False, "refused (400)"),
        (401, False, "check user name and password"),
        (403, False, "give this user access"),
        (404, False, "push it, or correct the name"),
        (405, False, "refused (405)"),
        (408, True, "the registry failed (408)"),
        (429, True, "too many requests"),
        (500, True, "the registry failed (500)"),
        (503, True, "the registry failed (503)"),
        (302, False, "refused (302)"),
    ],
)
def test_each_status_is_transient_or_permanent(status: int, transient: bool, says: str) -> None:
    error = failure("host/web:1", status, error_body("CODE", "words of the registry"), NONE)
    assert error.transient is transient
    assert says in str(error)
    assert str(error).startswith("host/web:1: ")
    assert "CODE words of the registry" in str(error)
    assert isinstance(error, ArtifactNotFoundError) is (status == 404)


@pytest.mark.parametrize(
    ("after", "hint"), [("30", "registry asks to wait 30 s"), ("soon", ""), ("9" * 20, ""), ("", "")]
)
def test_retry_after_is_part_of_the_message(after: str, hint: str) -> None:
    text = str(failure("x", 429, b"", httpx.Headers({"Retry-After": after})))
    assert (hint in text) if hint else ("asks to wait" not in text)


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'{"errors":[]}', b'{"errors":{}}', b'{"errors":[{"code":5}]}', b"x" * 10**6]
)
def test_bodies_that_are_not_error_documents_are_not_quoted(body: bytes) -> None:
    assert quote(body) == ""
    assert str(failure("x", 500, body, NONE)) == "x: the registry failed (500)"


def test_quotes_are_short_and_in_one_line() -> None:
    said = quote(error_body("A", "b" * 5_000)) + quote(b'{"errors":[{"message":"a\\nb\\u001b[31m"}]}')
    assert len(said) <= MAX_QUOTE + 20
    assert said.isprintable()


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "transient", "says"),
    [
        (httpx.ConnectError("connection refused"), True, "connection refused; check the address"),
        (httpx.ConnectError("[Errno 113] No route to host"), True, "host/web:1: No route to host; check the address"),
        (
            caused(httpx.ConnectError("x"), socket.gaierror(-2, "Name or service not known")),
            True,
            "host/web:1: its name cannot be looked up: Name or service not known; check the address",
        ),
        (httpx.ConnectTimeout(""), True, "no answer in time (ConnectTimeout)"),
        (httpx.ReadTimeout(""), True, "no answer in time (ReadTimeout)"),
        (httpx.RemoteProtocolError("peer closed"), True, "peer closed"),
        (httpx.ReadError(""), True, "ReadError; check"),
        (httpx.LocalProtocolError("bad header"), False, "cannot be sent: bad header"),
        (httpx.UnsupportedProtocol("x"), False, "cannot be sent"),
        (httpx.InvalidURL("x"), False, "cannot be sent"),
        (caused(httpx.ConnectError("x"), ssl.SSLCertVerificationError("self-signed")), True, "--ca"),
        (caused(httpx.ConnectError("x"), caused(OSError(), ssl.SSLError("wrong version"))), True, "--plain-http"),
    ],
)
def test_network_errors_are_transient_and_invalid_requests_are_not(
    error: Exception, transient: bool, says: str
) -> None:
    found = network_failure("host/web:1", error)
    assert isinstance(found, RegistryError)
    assert found.transient is transient
    assert says in str(found)
