"""What talking to a Kubernetes API can raise.

::

    ClusterError                 base; .transient says whether trying again without a change can help, .retry_after_s when
    ├── ApiError                 the server answered with a Status: .code, .reason, .message
    │   ├── NotFoundError        404
    │   ├── ConflictError        409: an optimistic lock lost, AlreadyExists, or an apply conflict
    │   ├── GoneError            410: the resourceVersion or continue token is too old; list again
    │   ├── InvalidError         400, 422: the object is wrong; only a change helps
    │   └── SchemaMismatchError  500 of an apply: the object does not fit the schema of its kind
    ├── UnreachableError         no answer: connection refused, reset, timed out
    ├── UnknownKindError         discovery knows no such kind (its CRD may not be there yet)
    │   └── SilentKindError      nor can it: the API server behind the group does not answer
    ├── ConnectionConfigError    the kubeconfig, or a pod's service account, does not say how to connect (connection)
    ├── MalformedAnswerError     the answer is not what the API promises (http_errors)
    ├── ResponseTooLargeError    the answer is over the limit (http_session)
    └── ReleaseError             a release cannot be done as asked (its kinds are with what raises them)
"""

from typing import Final


class ClusterError(Exception):
    """Base of all errors of this part."""

    transient: bool = True
    retry_after_s: float | None = None
    """Seconds after which the server asked to be tried again; None where it did not say."""


class UnreachableError(ClusterError):
    """The API server did not answer."""


class UnknownKindError(ClusterError):
    """The server does not serve this kind; transient, since a CRD may yet arrive."""


class SilentKindError(UnknownKindError):
    """The API server behind this kind does not answer: its objects may well be there."""


class ApiError(ClusterError):
    """The server answered with a failure (a `Status` of Kubernetes' API conventions)."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(f"{message} ({code} {reason})")
        self.code = code
        self.reason = reason
        self.message = message
        self.transient = code >= 500 or code in {408, 409, 410, 429, 401, 403, 404}


class NotFoundError(ApiError):
    """404."""


class ConflictError(ApiError):
    """409."""


class GoneError(ApiError):
    """410."""


class InvalidError(ApiError):
    """400 or 422: permanent until the object changes."""


class SchemaMismatchError(ApiError):
    """500 of a server-side apply whose object has a field that its schema does not declare, or an item twice.

    Only a change of the object or of the schema helps. It is transient nevertheless: a server whose definition was upgraded a
    moment ago answers by the old schema for a while, so the request is worth some more attempts.
    """


_UNFIT: Final = "failed to create typed patch object"
_UNKNOWN_TYPE: Final = "no corresponding type for"
"""The server has no schema of the kind yet."""


class ReleaseError(ClusterError):
    """A release cannot be done as asked; permanent until something is changed."""

    transient = False


def api_error(code: int, reason: str, message: str, *, retry_after_s: float | None = None) -> ApiError:
    """The error type that fits an HTTP status code."""
    kind = {404: NotFoundError, 409: ConflictError, 410: GoneError, 400: InvalidError, 422: InvalidError}.get(
        code, ApiError
    )
    if code == 500 and _UNFIT in message and _UNKNOWN_TYPE not in message:
        kind = SchemaMismatchError
    error = kind(code, reason, message)
    error.retry_after_s = retry_after_s
    return error
