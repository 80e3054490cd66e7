"""From an HTTP answer, or none, to a ClusterError that says what was asked of which server.

An API server answers a failure with a `Status` object (API conventions, "Response Status Kind"); proxies and load balancers
in front of it answer with whatever they like, which is quoted, shortened.
"""

from typing import Final

import msgspec

from wharfinger.cluster.errors import ApiError, ClusterError, NotFoundError, UnreachableError, api_error
from wharfinger.formats.json_value import JsonObject

QUOTED_CHARS: Final = 300
"""How much of an answer that is no Status is quoted."""

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
    """A 404 of the server's router: the resource itself, not one object of it, is not (or no longer) there."""


class MalformedAnswerError(ClusterError):
    """The server's answer is not what the API promises; perhaps something else answers at that address."""


class _Status(msgspec.Struct):
    kind: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""


def error_of_response(status: int, body: bytes, what: str) -> ApiError:
    """The error for an answer with a status of 400 or more; ``what`` is the request in words (``get Pod a/b``)."""
    parsed = _parse(body)
    if status == 404 and (parsed is None or "could not find the requested resource" in parsed.message):
        return NotServedError(404, "NotFound", f"{what}: the server does not serve this kind of object (any more)")
    if parsed is not None:
        reason = parsed.reason or _REASONS.get(status, "Unknown")
        return api_error(status, reason, f"{what}: {parsed.message or reason}")
    text = " ".join(body[: 4 * QUOTED_CHARS].decode("utf-8", "replace").split())[:QUOTED_CHARS]
    return api_error(status, _REASONS.get(status, "Unknown"), f"{what}: {text or 'no explanation was given'}")


def error_of_status(status: JsonObject, what: str) -> ApiError:
    """The error for a Status that came inside a stream (a watch's ERROR event)."""
    code, reason, message = status.get("code"), status.get("reason"), status.get("message")
    number = code if isinstance(code, int) and code >= 400 else 500
    words = reason if isinstance(reason, str) and reason else _REASONS.get(number, "Unknown")
    return api_error(number, words, f"{what}: {message if isinstance(message, str) and message else words}")


def unreachable(server: str, what: str, error: Exception) -> UnreachableError:
    """No answer: the server, what was asked, and the transport's own words (or those of what caused its silence)."""
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


def _parse(body: bytes) -> _Status | None:
    try:
        parsed = msgspec.json.decode(body, type=_Status)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return parsed if parsed.kind == "Status" else None
