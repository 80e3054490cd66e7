"""The AdmissionReviews that webhooks are sent, and their answers (``admission.k8s.io/v1``)."""

from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.admission.request import Resource, at_resource, request_document
from wharfinger.control_plane.api.common.admission import Admission
from wharfinger.control_plane.wire import status
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    checksum,
    decode_json,
    find,
    find_int,
    find_list,
    find_str,
)

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
MAX_ANSWER_BYTES: Final = 3 * 1024 * 1024
BAD_REQUEST: Final = 400
_DRAWN: Final = ("uid", "creationTimestamp", "managedFields")
"""The metadata of a new object that differs each time the write is tried."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer of a webhook; ``failed`` says why there is none, and then nothing else is set."""

    allowed: bool = False
    code: int = 0
    reason: str = ""
    message: str = ""
    warnings: tuple[str, ...] = ()
    failed: str = ""


def review_of(admission: Admission, asked: Resource, taken: Resource) -> JsonObject:
    """Return the ``request`` of a review without its uid; ``taken`` is the resource as the webhook's rules name it."""
    document = request_document(admission, asked, taken)
    return {
        **document,
        "object": at_resource(taken, admission.obj, admission.subresource),
        "oldObject": at_resource(taken, admission.old, admission.subresource),
    }


def key_of(webhook: str, review: JsonObject) -> str:
    """Return a key that is equal for the same question, whatever a second attempt of the same write draws anew."""
    obj = find(review, "object")
    if find(review, "operation") == "CREATE" and isinstance(obj, dict):
        metadata = find(obj, "metadata")
        kept = dict(metadata) if isinstance(metadata, dict) else {}
        drawn = (*_DRAWN, "name") if kept.get("generateName") else _DRAWN
        left: JsonObject = {name: value for name, value in kept.items() if name not in drawn}
        review = {**review, "object": {**obj, "metadata": left}, "name": find(left, "name") or ""}
    elif isinstance(obj, dict):
        metadata = find(obj, "metadata")
        kept = dict(metadata) if isinstance(metadata, dict) else {}
        kept.pop("managedFields", None)  # the times in them move
        review = {**review, "object": {**obj, "metadata": kept}}
    return f"{webhook} {checksum(review)}"


def read_verdict(code: int, body: bytes, uid: str) -> Verdict:
    """Return the verdict in an answer to the review with this uid."""
    if not 200 <= code < 300:
        return Verdict(failed=f"the server answered with {code}")
    try:
        answer = decode_json(body, max_bytes=MAX_ANSWER_BYTES, what="the answer of a webhook")
        said = (find_str(answer, "apiVersion"), find_str(answer, "kind"))
        if said != (API_VERSION, KIND):
            return Verdict(
                failed=f"expected webhook response of {API_VERSION}, Kind={KIND}, got {said[0]}, Kind={said[1]}"
            )
        response: JsonValue = find(answer, "response")
        if not isinstance(response, dict):
            return Verdict(failed="webhook response was absent")
        if find_str(response, "uid") != uid:
            return Verdict(failed=f'expected response.uid="{uid}", got "{find_str(response, "uid")}"')
        return Verdict(
            find(response, "allowed") is True,
            find_int(response, "status", "code"),
            find_str(response, "status", "reason"),
            find_str(response, "status", "message"),
            tuple(text for text in find_list(response, "warnings") if isinstance(text, str)),
        )
    except FormatError as error:
        return Verdict(failed=str(error))


def denial(name: str, verdict: Verdict) -> status.StatusError:
    """Return the error with which a denied write fails, as the kube-apiserver words it."""
    by = f'admission webhook "{name}" denied the request'
    if verdict.message:
        by = f"{by}: {verdict.message}"
    else:
        by = f"{by}: {verdict.reason}" if verdict.reason else f"{by} without explanation"
    return status.StatusError(max(verdict.code, BAD_REQUEST), verdict.reason, by)


def failure(name: str, why: str) -> status.StatusError:
    """Return the error with which a write fails if a webhook that must answer does not."""
    return status.internal_error(f'failed calling webhook "{name}": failed to call webhook: {why}')
