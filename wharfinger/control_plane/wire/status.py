"""Failures in Kubernetes' form: the ``Status`` object, its reasons and the wording that clients match on.

Verbs raise :class:`StatusError`; the handler turns it into the response. The functions here return the usual errors; their
reasons, codes and messages are copied from recorded answers of a kube-apiserver (API conventions, "Response Status Kind").
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from wharfinger.control_plane.kinds.kind import Kind
from wharfinger.formats.json.value import JsonObject, JsonValue

MAX_ERROR_CHARS: Final = 8 * 1024 * 1024
"""The maximum total length, in characters, of the errors of one object in an answer. Without a limit, as in kube-apiserver, one
request could use up the memory."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """An error in one field: ``metadata.name: Invalid value: "x": …``; ``reason`` is a ``CauseType``."""

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


class StatusError(Exception):
    """A failed request, with the content of its Status; ``code`` is the HTTP status."""

    def __init__(
        self, code: int, reason: str, message: str, details: JsonObject | None = None, *, retry_after: int = 0
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after = retry_after
        """Seconds for ``Retry-After``; 0 for none."""
        self.warnings: tuple[str, ...] = ()
        """The warnings for the client."""
        self.continue_token = ""
        """The token with which an expired list can be continued."""

    def body(self) -> JsonObject:
        """Return the Status object."""
        metadata: JsonObject = {"continue": self.continue_token} if self.continue_token else {}
        body: JsonObject = {"kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure"}
        if self.message:
            body["message"] = self.message
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        return body


def success(name: str, group: str, plural: str, uid: str) -> JsonObject:
    """Return the Status of a completed deletion."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {**_details(name, group, plural), "uid": uid},
    }


def _details(name: str, group: str, kind: str) -> JsonObject:
    details: JsonObject = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    return details


def not_found(kind: Kind, name: str) -> StatusError:
    """Return the 404 for an object."""
    return StatusError(404, "NotFound", f'{kind.resource} "{name}" not found', _details(name, kind.group, kind.plural))


def no_such_resource() -> StatusError:
    """Return the 404 for a resource that is not in its group and version."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(kind: Kind, name: str, *, leaving: bool = False) -> StatusError:
    """Return the 409 for a create; ``leaving`` is true if the existing object is being deleted."""
    details = _details(name, kind.group, kind.plural)
    message = f'{kind.resource} "{name}" already exists'
    return StatusError(409, "AlreadyExists", f"object is being deleted: {message}" if leaving else message, details)


def not_generated(kind: Kind, name: str) -> StatusError:
    """Return the 409 for a create with ``generateName`` whose generated name is taken; the client should try again."""
    details = {**_details(name, kind.group, kind.plural), "retryAfterSeconds": 1}
    message = (
        f'{kind.resource} "{name}" already exists, the server was not able to generate a unique name for the object'
    )
    return StatusError(409, "AlreadyExists", message, details, retry_after=1)


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
"""The message for a write with a resourceVersion that is not the current one."""


def conflict(kind: Kind, name: str, why: str = MODIFIED) -> StatusError:
    """Return the 409 for a write that conflicts with the stored object, by default because of a failed optimistic lock."""
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
    return StatusError(409, "Conflict", message, _details(name, kind.group, kind.plural))


def precondition_conflict(kind: Kind, name: str, why: str) -> StatusError:
    """Return the 409 for a delete whose preconditions are not met.

    The message names the kind as it is stored. The messages of other conflicts name the resource.
    """
    group = kind.stored.group if kind.stored is not None else kind.group
    qualified = f"{kind.kind}.{group}" if group else kind.kind
    message = f'Operation cannot be fulfilled on {qualified} "{name}": {why}'
    return StatusError(409, "Conflict", message, _details(name, group, kind.kind))


def apply_conflict(message: str, conflicts: Sequence[tuple[str, str]]) -> StatusError:
    """Return the 409 for an apply; ``conflicts`` are pairs of the manager, as printed, and the field path."""
    causes: list[JsonValue] = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": field}
        for manager, field in conflicts
    ]
    return StatusError(409, "Conflict", message, {"causes": causes})


def _within_limit(errors: Sequence[FieldError]) -> Sequence[FieldError]:
    """Return the first errors: those that fit into an answer, and the first one that does not fit completely."""
    sizes = accumulate(len(error.message) for error in errors)
    last = next((index for index, size in enumerate(sizes) if size > MAX_ERROR_CHARS), None)
    return errors if last is None else errors[: last + 1]


def aggregated(messages: Iterable[str]) -> str:
    """Return error messages in the form of Go's ``NewAggregate``: each once, and in brackets if there are several."""
    different = list(dict.fromkeys(messages))
    return different[0] if len(different) == 1 else f"[{', '.join(different)}]"


def invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> StatusError:
    """Return a 422 error whose causes list the errors, up to the limit of an answer. Its message contains each text only once."""
    errors = _within_limit(errors)
    what = aggregated(str(error) for error in errors)
    qualified = f"{kind}.{group}" if group else kind
    causes: list[JsonValue] = [
        {"reason": error.reason, "message": error.message, "field": error.field} for error in errors
    ]
    details = {**_details(name, group, kind), "causes": causes}
    return StatusError(422, "Invalid", f'{qualified} "{name}" is invalid: {what}', details)


def invalid_object(kind: Kind, name: str, errors: Sequence[FieldError]) -> StatusError:
    """Return the 422 for an object; the error names the group in which the kind is stored."""
    return invalid(kind.collection.group, kind.kind, name, errors)


def bad_request(message: str) -> StatusError:
    """Return a 400 error."""
    return StatusError(400, "BadRequest", message)


def forbidden(kind: Kind, name: str, why: str, causes: Sequence[FieldError] = ()) -> StatusError:
    """Return the error 403 (Forbidden) for a request about an object."""
    details = _details(name, kind.group, kind.plural)
    if causes:
        details["causes"] = [_cause(cause) for cause in causes]
    what = f'{kind.resource} "{name}"' if name else kind.resource
    return StatusError(403, "Forbidden", f"{what} is forbidden: {why}", details)


def _cause(error: FieldError) -> JsonObject:
    shown = {"reason": error.reason, "message": error.message, "field": error.field}
    return {name: value for name, value in shown.items() if value}


def forbidden_path(user: str, verb: str, path: str) -> StatusError:
    """Return the 403 for a path that is not a resource."""
    return StatusError(403, "Forbidden", f'forbidden: User "{user}" cannot {verb} path "{path}"', {})


def unauthorized() -> StatusError:
    """Return a 401 error."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def method_not_allowed() -> StatusError:
    """Return a 405 error."""
    return StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def not_acceptable(offered: Sequence[str]) -> StatusError:
    """Return a 406 error that lists the offered media types."""
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(offered)}"
    return StatusError(406, "NotAcceptable", message, {})


def only_accepted(offered: Sequence[str]) -> StatusError:
    """Return the 406 for a known media type whose parameters ask for a form that is not offered."""
    message = f"only the following media types are accepted: {', '.join(offered)}"
    return StatusError(406, "NotAcceptable", message)


def not_one_object(kind: Kind) -> StatusError:
    """Return the 406 for a list that is requested as the metadata of one object; the message names the list by its Go type."""
    name = "unstructured.UnstructuredList" if kind.custom else _go_name(kind, kind.list_kind)
    message = f"you requested PartialObjectMetadata, but the requested object is a list (*{name})"
    return StatusError(406, "NotAcceptable", message)


def not_a_list(kind: Kind) -> StatusError:
    """Return the 406 for one object that is requested as a list of metadata."""
    name = "unstructured.Unstructured" if kind.custom else _go_name(kind, kind.kind)
    message = f"you requested PartialObjectMetadataList, but the requested object is not a list (*{name})"
    return StatusError(406, "NotAcceptable", message)


def _go_name(kind: Kind, name: str) -> str:
    package = {"": "core", "events.k8s.io": "core", "internal.apiserver.k8s.io": "apiserverinternal"}.get(
        kind.group, kind.group.partition(".")[0]
    )
    return f"{package}.{name}"


def unsupported_media_type(accepted: Sequence[str]) -> StatusError:
    """Return a 415 error that lists the accepted media types."""
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return StatusError(415, "UnsupportedMediaType", message)


def expired(message: str) -> StatusError:
    """Return the 410 for a revision that is no longer known."""
    return StatusError(410, "Expired", message)


def too_large_revision(asked: int, current: int) -> StatusError:
    """Return the 504 for a read at a revision that has not been reached yet."""
    causes: list[JsonValue] = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    details: JsonObject = {"causes": causes, "retryAfterSeconds": 1}
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return StatusError(504, "Timeout", message, details, retry_after=1)


def internal(message: str) -> StatusError:
    """Return a 500 error for a failure without a specific status; its Status has no reason."""
    return StatusError(500, "", message)


def internal_error(message: str) -> StatusError:
    """Return a 500 error for a failure inside the server, with the reason and message of ``NewInternalError``."""
    details: JsonObject = {"causes": [{"message": message}]}
    return StatusError(500, "InternalError", f"Internal error occurred: {message}", details)
