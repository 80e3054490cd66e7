"""The AdmissionReviews that are sent to webhooks, and the answers of webhooks (``admission.k8s.io/v1``)."""

import base64
import binascii
from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.admission.request import Resource, request_document, seen
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
"""The fields of a new object's metadata that get another value in each attempt to write the object."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer of a webhook. If there is no valid answer, ``failed`` has the reason, and no other field is set."""

    allowed: bool = False
    code: int = 0
    reason: str = ""
    message: str = ""
    warnings: tuple[str, ...] = ()
    failed: str = ""
    patch: tuple[JsonValue, ...] = ()
    """The operations of the JSON Patch of a mutating webhook."""


def review_of(admission: Admission, asked: Resource, taken: Resource) -> JsonObject:
    """Return the ``request`` of a review without its uid; ``taken`` is the resource in the version of the webhook's rules."""
    document = request_document(admission, asked, taken)
    return {
        **document,
        "object": seen(admission, taken, admission.obj),
        "oldObject": seen(admission, taken, admission.old),
    }


def key_of(webhook: str, review: JsonObject) -> str:
    """Return the key of a call; all attempts of one write have the same key, even if their generated values differ."""
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
        kept.pop("managedFields", None)  # their times differ in each attempt
        review = {**review, "object": {**obj, "metadata": kept}}
    return f"{webhook} {checksum(review)}"


def read_verdict(code: int, body: bytes, uid: str, *, mutating: bool = False) -> Verdict:
    """Return the verdict in the answer to the review with this uid; ``code`` is the HTTP status.

    Only a ``mutating`` webhook may return a patch.
    """
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
        patch = _patch_of(response, mutating=mutating)
        if isinstance(patch, str):
            return Verdict(failed=f"received invalid webhook response: {patch}")
        return Verdict(
            find(response, "allowed") is True,
            find_int(response, "status", "code"),
            find_str(response, "status", "reason"),
            find_str(response, "status", "message"),
            tuple(text for text in find_list(response, "warnings") if isinstance(text, str)),
            patch=patch,
        )
    except FormatError as error:
        return Verdict(failed=str(error))


def _patch_of(response: JsonObject, *, mutating: bool) -> tuple[JsonValue, ...] | str:
    """Return the operations of the patch in a response, or the reason why the patch is invalid. Raises FormatError."""
    given, kind = find(response, "patch"), find(response, "patchType")
    if not mutating:
        return "validating webhook may not return response.patch" if given else ()
    if not given:
        return "webhook returned response.patchType but not response.patch" if kind is not None else ()
    if kind is None:
        return "webhook returned response.patch but not response.patchType"
    if kind != "JSONPatch":
        return f"webhook returned invalid response.patchType of {str(kind)[:80]!r}"
    try:
        text = base64.b64decode(given if isinstance(given, str) else "", validate=True)
    except (binascii.Error, ValueError) as error:
        return f"response.patch: {error}"
    operations = decode_json(text, max_bytes=MAX_ANSWER_BYTES, what="response.patch")
    return tuple(operations) if isinstance(operations, list) else "response.patch: expected a list of operations"


def denial(name: str, verdict: Verdict) -> status.StatusError:
    """Return the error of a write that a webhook denies, with kube-apiserver's message."""
    by = f'admission webhook "{name}" denied the request'
    if verdict.message:
        by = f"{by}: {verdict.message}"
    else:
        by = f"{by}: {verdict.reason}" if verdict.reason else f"{by} without explanation"
    return status.StatusError(max(verdict.code, BAD_REQUEST), verdict.reason, by)


def failure(name: str, why: str) -> status.StatusError:
    """Return the error of a write if a webhook with the failure policy ``Fail`` gives no valid answer."""
    return status.internal_error(f'failed calling webhook "{name}": failed to call webhook: {why}')
