"""The ClusterError for a failed HTTP request; it names the request and the server.

An API server answers a failure with a `Status` object (API conventions, "Response Status Kind"). Proxies and load balancers in
front of it answer with arbitrary text; the error quotes its beginning.

If a server asks for a later retry (`Retry-After`, RFC 9110 §10.2.3), the error carries the delay. A date in that header is
compared with the `Date` of the same answer, so this machine's clock does not matter.
"""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final

import msgspec

from wharfinger.cluster.api.errors import ApiError, ClusterError, NotFoundError, UnreachableError, api_error
from wharfinger.formats.json.value import JsonObject, find

QUOTED_CHARS: Final = 300
"""The largest number of characters quoted from an answer that is not a Status."""
MIN_RETRY_AFTER_S: Final = 1.0
MAX_RETRY_AFTER_S: Final = 300.0
"""The longest delay that a server may ask for; MIN_RETRY_AFTER_S is the shortest. Other values are moved to these bounds."""

_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Gone",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class NotServedError(NotFoundError):
    """A 404 of the server's router: the server does not serve this type of resource (any more)."""


class MalformedAnswerError(ClusterError):
    """The server's answer is not what the API promises; another program may be answering at that address."""


class _Status(msgspec.Struct):
    kind: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""


def retry_after(value: str, date: str = "") -> float | None:
    """Return the seconds that a ``Retry-After`` header asks for, within bounds; None if the header cannot be understood.

    ``date`` is the answer's ``Date``. Without ``date``, a Retry-After that is a date cannot be understood.
    """
    if value.isascii() and value.isdigit():
        return _bounded(float(value))
    until, sent = _http_date(value), _http_date(date)
    return None if until is None or sent is None else _bounded((until - sent).total_seconds())


def error_of_response(status: int, body: bytes, what: str, *, retry_after_s: float | None = None) -> ApiError:
    """Return the error for an answer with a status of 400 or more; ``what`` is the request in words (``get Pod a/b``).

    ``retry_after_s`` is the delay that the answer's headers ask for; it is only used if the server is overloaded (429, 5xx).
    """
    error = _error_of_response(status, body, what)
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        error.retry_after_s = retry_after_s
    return error


def _error_of_response(status: int, body: bytes, what: str) -> ApiError:
    parsed = _parse(body)
    if status == 404 and (parsed is None or "could not find the requested resource" in parsed.message):
        return NotServedError(404, "NotFound", f"{what}: the server does not serve this kind of object (any more)")
    if parsed is not None:
        reason = parsed.reason or _REASONS.get(status, "Unknown")
        return api_error(status, reason, f"{what}: {parsed.message or reason}")
    text = " ".join(body[: 4 * QUOTED_CHARS].decode("utf-8", "replace").split())[:QUOTED_CHARS]
    return api_error(status, _REASONS.get(status, "Unknown"), f"{what}: {text or 'no explanation was given'}")


def error_of_status(status: JsonObject, what: str) -> ApiError:
    """Return the error for a Status inside a stream (a watch's ERROR event)."""
    code, reason, message = status.get("code"), status.get("reason"), status.get("message")
    number = code if isinstance(code, int) and code >= 400 else 500
    words = reason if isinstance(reason, str) and reason else _REASONS.get(number, "Unknown")
    asked = find(status, "details", "retryAfterSeconds")
    return api_error(
        number,
        words,
        f"{what}: {message if isinstance(message, str) and message else words}",
        retry_after_s=_bounded(asked) if isinstance(asked, int) and asked > 0 else None,
    )


def unreachable(server: str, what: str, error: Exception) -> UnreachableError:
    """Return the error for a missing answer, with the server, the request, and the message of the transport or of its
    cause.
    """
    words = str(error) or _TIMEOUTS.get(type(error).__name__, "")
    cause: BaseException | None = error
    for _ in range(8):
        cause = None if cause is None else cause.__cause__ or cause.__context__
        words = words or ("" if cause is None else str(cause))
    return UnreachableError(f"{what}: no answer from {server}: {words or type(error).__name__}")


_TIMEOUTS: Final = {
    "ConnectTimeout": "connecting took too long",
    "ReadTimeout": "the answer took too long",
    "WriteTimeout": "sending took too long",
}


def _bounded(seconds: float) -> float:
    return float(min(max(seconds, MIN_RETRY_AFTER_S), MAX_RETRY_AFTER_S))


def _http_date(text: str) -> datetime | None:
    """Return an HTTP date, or None for any other text. A date without a zone is in UTC, as HTTP defines."""
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, OverflowError, IndexError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _parse(body: bytes) -> _Status | None:
    try:
        parsed = msgspec.json.decode(body, type=_Status)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return parsed if parsed.kind == "Status" else None
