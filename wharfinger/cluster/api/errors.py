"""The errors that requests to a Kubernetes API can raise.

::

    ClusterError                 base; .transient: a retry without a change can help; .retry_after_s: the delay asked for
    ├── ApiError                 the server answered with a Status: .code, .reason, .message
    │   ├── NotFoundError        404
    │   ├── ConflictError        409: an optimistic lock lost, AlreadyExists, or an apply conflict
    │   ├── GoneError            410: the resourceVersion or continue token is too old; list again
    │   ├── ForbiddenError       403; .refusal: the access that no rule allows, if the server's message names it
    │   ├── InvalidError         400, 422: the object is wrong; only a change helps
    │   └── SchemaMismatchError  500 of an apply: the object does not fit the schema of its kind
    ├── UnreachableError         no usable answer: connection refused, reset, timed out, or broken off
    │   ├── SilentServerError    a stream, such as a watch, was silent for too long
    │   └── WatchLineError       a line of a watch is too long, incomplete, or no event (defined in watch_stream.py)
    ├── FencedError              a write was not sent: the Lease that permits writes is not held
    ├── UnknownKindError         discovery knows no such kind (its CRD may not be there yet)
    │   └── SilentKindError      the kind is unknown because the API server behind its group does not answer
    ├── ConnectionConfigError    the kubeconfig or the pod's service account is not usable (defined in connection.py)
    ├── MalformedAnswerError     the answer is not what the API promises (defined in http_errors.py)
    ├── ResponseTooLargeError    the answer is over the limit (defined in http_session.py)
    ├── CommandError             a command in a pod could not be run, or its result is not known (defined in pod_exec.py)
    └── ReleaseError             an operation on a release cannot be done (its subclasses are defined where they are raised)

Other modules define further subclasses of ClusterError.
"""

from typing import Final

from wharfinger.kube.access_rules import refusal_of


class ClusterError(Exception):
    """The base of all errors that requests to a cluster raise."""

    transient: bool = True
    retry_after_s: float | None = None
    """The delay, in seconds, that the server asked for before a retry; None if it asked for none."""


class UnreachableError(ClusterError):
    """The API server did not answer, or its answer broke off."""


class SilentServerError(UnreachableError):
    """A stream was silent for longer than its limit; its connection may be dead."""


class FencedError(ClusterError):
    """A write was not sent, because this process does not hold the Lease that permits writes, or may have lost it."""


class UnknownKindError(ClusterError):
    """The server does not serve this kind. The error is transient, because the CRD of the kind may still be created."""


class SilentKindError(UnknownKindError):
    """The API server behind this kind does not answer, so objects of the kind may exist."""


class ApiError(ClusterError):
    """The server answered with a failure (a `Status` of Kubernetes' API conventions)."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(f"{message} ({code} {reason})")
        self.code = code
        self.reason = reason
        self.message = message
        self.transient = code >= 500 or code in {408, 409, 410, 429, 401, 403, 404}


class NotFoundError(ApiError):
    """The server answered 404: the object does not exist."""


class ForbiddenError(ApiError):
    """The server answered 403. If the server's message names the missing access, the error's text ends with the rule to add.

    The error is transient, because such a rule may be added at any time, and no event reports that.
    """

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(code, reason, message)
        self.refusal = refusal_of(message)

    def __str__(self) -> str:
        """Return the message of the server. If it names the missing access, append the RBAC rule to add, as a line of YAML."""
        said = super().__str__()
        return said if self.refusal is None else f"{said}; {self.refusal.remedy()}"


class ConflictError(ApiError):
    """The server answered 409: an optimistic lock was lost, the object exists already, or an apply conflicts."""


class GoneError(ApiError):
    """The server answered 410: the resourceVersion or the continue token is too old."""


class InvalidError(ApiError):
    """The server answered 400 or 422. The error is permanent: only a change of the object helps."""


class SchemaMismatchError(ApiError):
    """The server answered 500 to an apply: a field is not in the object's schema, or an item occurs twice.

    Only a change of the object or of the schema helps. The error is transient nevertheless, because a server uses the old schema
    for a short time after a CRD was changed, so another attempt may succeed.
    """


_UNFIT: Final = "failed to create typed patch object"
_UNKNOWN_TYPE: Final = "no corresponding type for"
"""A part of the message with which the server reports that it has no schema of the kind yet."""


class ReleaseError(ClusterError):
    """The operation on a release cannot be done as requested. The error is permanent: a retry without a change does not help."""

    transient = False


_KINDS: Final = {
    400: InvalidError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
}


def api_error(code: int, reason: str, message: str, *, retry_after_s: float | None = None) -> ApiError:
    """Return the error of the type that fits an HTTP status code."""
    kind = _KINDS.get(code, ApiError)
    if code == 500 and _UNFIT in message and _UNKNOWN_TYPE not in message:
        kind = SchemaMismatchError
    error = kind(code, reason, message)
    error.retry_after_s = retry_after_s
    return error
