"""AdmissionReviews (``admission.k8s.io/v1``) as this server reads and answers them."""

from dataclasses import dataclass
from typing import Final

from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    ShapeError,
    as_object,
    decode_json,
    encode_json,
    find,
    find_str,
)

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
MAX_REVIEW_BYTES: Final = 8 * 1024 * 1024
"""The size limit of a review. A review contains the object before the change and the object after it, both as JSON of at most
3 MiB.
"""
MAX_WARNING: Final = 256
"""The maximum length of a warning in characters. If there are many warnings, kube-apiserver cuts each one to this length."""
REFUSED: Final = 422


@dataclass(frozen=True, slots=True)
class Review:
    """A request to judge an object that is about to be stored, together with the object that is stored now, if any.

    If ``deletes`` is true, ``obj`` is about to be deleted.
    """

    uid: str
    obj: JsonObject
    old: JsonObject | None
    deletes: bool = False


def read_review(body: bytes) -> Review:
    """Read a review. Raises FormatError."""
    review = as_object(decode_json(body, max_bytes=MAX_REVIEW_BYTES, what="the review"), "the review")
    said = (find_str(review, "apiVersion"), find_str(review, "kind"))
    if said != (API_VERSION, KIND):
        raise ShapeError(f"the review: expected {API_VERSION} {KIND}, found {' '.join(said)!r:.100}")
    uid, obj, old = (
        find_str(review, "request", "uid"),
        find(review, "request", "object"),
        find(review, "request", "oldObject"),
    )
    if not uid:
        raise ShapeError("the review: expected request.uid, found none")
    if find(review, "request", "operation") == "DELETE":
        return Review(uid, as_object(old, "request.oldObject"), None, deletes=True)
    return Review(uid, as_object(obj, "request.object"), None if old is None else as_object(old, "request.oldObject"))


def answer_to(review: Review, refusal: str, warnings: tuple[str, ...]) -> bytes:
    """Return the body of the answer; an empty ``refusal`` admits the object."""
    response: dict[str, JsonValue] = {"uid": review.uid, "allowed": not refusal}
    if refusal:
        response["status"] = {"code": REFUSED, "reason": "Invalid", "message": refusal}
    if warnings:
        response["warnings"] = [_cut(text) for text in warnings]
    return encode_json({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_WARNING else f"{line[: MAX_WARNING - 1]}…"
