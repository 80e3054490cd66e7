"""The ClusterError for a failed HTTP request. It names the request, and, if there was no answer, also the server.

An API server answers a failed request with a `Status` object (API conventions, "Response Status Kind"). Proxies and load
balancers in front of it answer with arbitrary text. The error then quotes the beginning of the text.

If a server asks for a later retry (header `Retry-After`, RFC 9110 §10.2.3), the error has the delay. If the header has a date,
the delay is counted from the `Date` of the same answer, so this machine's clock does not matter.
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
"""The longest delay that is accepted from a server. A longer delay counts as this one, and a delay below MIN_RETRY_AFTER_S
counts as MIN_RETRY_AFTER_S.
"""

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
    """A 404 for the path, not for an object: the server does not serve this type of resource, or no longer serves it."""


class MalformedAnswerError(ClusterError):
    """The answer is not one that a Kubernetes API gives. Perhaps another program answers at this address."""


class _Status(msgspec.Struct):
    kind: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""


def retry_after(value: str, date: str = "") -> float | None:
    """Return the delay in seconds that a ``Retry-After`` header asks for, within bounds; None if the header cannot be read.

    ``date`` is the ``Date`` header of the same answer. Without it, a ``Retry-After`` that is a date cannot be read.
    """
    if value.isascii() and value.isdigit():
        return _bounded(float(value))
    until, sent = _http_date(value), _http_date(date)
    return None if until is None or sent is None else _bounded((until - sent).total_seconds())


def error_of_response(status: int, body: bytes, what: str, *, retry_after_s: float | None = None) -> ApiError:
    """Return the error for an answer with a status of 400 or more. ``what`` is the request in words (``get Pod a/b``).

    ``retry_after_s`` is the delay that the answer's headers ask for. It is ignored unless the status is 429 or 5xx.
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
    """Return the error for a Status in a stream (the ERROR event of a watch)."""
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
    """Return the error for a request that got no answer. It names the request, the server, and the message of ``error`` or of the
    nearest cause of ``error`` that has a message.
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
    """Parse an HTTP date. Return None for any other text. A date without a time zone is in UTC, as HTTP defines."""
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
