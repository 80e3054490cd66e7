"""Pure readers of the reviews that API servers send to hooks' webhooks, and writers of the answers."""

from collections.abc import Iterator, Sequence
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
    find_list,
    find_object,
    find_str,
)
from wharfinger.hooks.config.bindings import AdmissionBinding
from wharfinger.runtime.admission import reviews

CONVERSION_VERSION: Final = "apiextensions.k8s.io/v1"
CONVERSION_KIND: Final = "ConversionReview"
MAX_BODY_BYTES: Final = 16 * 1024 * 1024
"""The size limit of a review for hooks. It is large, because all objects of a list are converted by one review."""
BATCH_BYTES: Final = 1024 * 1024
"""The limit on the JSON size of all objects that one run of a hook converts. It is low, because the size of the hook's answer,
which contains the converted objects, is limited, too.
"""
BATCH_OBJECTS: Final = 500
FAILED: Final = 500
MAX_REASON: Final = 512


@dataclass(frozen=True, slots=True)
class ConversionRequest:
    """Objects, and the version that they are to be converted to."""

    uid: str
    desired: str
    objects: tuple[JsonObject, ...]


def read_admission_review(body: bytes) -> JsonObject:
    """Read an AdmissionReview, and check that its request has a uid. Raises FormatError."""
    return _review(body, reviews.API_VERSION, reviews.KIND)


def read_conversion_review(body: bytes) -> ConversionRequest:
    """Return the request of a ConversionReview. Raises FormatError."""
    review = _review(body, CONVERSION_VERSION, CONVERSION_KIND)
    request = find_object(review, "request")
    desired = find_str(request, "desiredAPIVersion")
    if not desired:
        raise ShapeError("the review: expected request.desiredAPIVersion, found none")
    objects = tuple(as_object(obj, "request.objects") for obj in find_list(request, "objects"))
    return ConversionRequest(find_str(request, "uid"), desired, objects)


def conversion_review(request: ConversionRequest, objects: Sequence[JsonObject]) -> JsonObject:
    """Return the review that asks a hook to convert ``objects`` in one step. The objects come from the request, and earlier
    steps may have converted them already.
    """
    return {
        "apiVersion": CONVERSION_VERSION,
        "kind": CONVERSION_KIND,
        "request": {"uid": request.uid, "desiredAPIVersion": request.desired, "objects": [*objects]},
    }


def batches(objects: Sequence[JsonObject]) -> Iterator[tuple[int, ...]]:
    """Yield batches of positions in ``objects``. The objects of a batch are converted in one run: they have the same version,
    and stay within BATCH_BYTES and BATCH_OBJECTS. An object that is larger than BATCH_BYTES is a batch of its own.
    """
    by_version: dict[str, list[int]] = {}
    for place, obj in enumerate(objects):
        by_version.setdefault(find_str(obj, "apiVersion"), []).append(place)
    for places in by_version.values():
        batch: list[int] = []
        size = 0
        for place in places:
            length = len(encode_json(objects[place]))
            if batch and (size + length > BATCH_BYTES or len(batch) == BATCH_OBJECTS):
                yield tuple(batch)
                batch, size = [], 0
            batch.append(place)
            size += length
        yield tuple(batch)


def admission_answer(response: JsonObject) -> bytes:
    """Return the body of an answer: an AdmissionReview with this ``response``."""
    return encode_json({"apiVersion": reviews.API_VERSION, "kind": reviews.KIND, "response": response})


def failed_admission(uid: str, binding: AdmissionBinding, why: str) -> JsonObject:
    """Return the response to a request for which a hook gave no answer. The binding's failure policy decides, and the response
    contains the reason.

    Without a response, the API server would decide in the same way, but the user would not see the reason.
    """
    if binding.failure_policy == "Ignore":
        return {
            "uid": uid,
            "allowed": True,
            "warnings": [shortened(f"webhook {binding.name} was ignored: {why}", reviews.MAX_WARNING)],
        }
    status: JsonObject = {"code": FAILED, "reason": "InternalError", "message": shortened(why, MAX_REASON)}
    return {"uid": uid, "allowed": False, "status": status}


def admitted_without(uid: str, why: str) -> JsonObject:
    """Return the response that allows a request because no hook could judge it. The reason is returned as a warning."""
    return {"uid": uid, "allowed": True, "warnings": [shortened(why, reviews.MAX_WARNING)]}


def converted_answer(uid: str, objects: Sequence[JsonObject]) -> bytes:
    """Return the body of the answer to a ConversionReview, with the converted objects."""
    return _conversion_answer({"uid": uid, "result": {"status": "Success"}, "convertedObjects": [*objects]})


def failed_conversion(uid: str, why: str) -> bytes:
    """Return the body of a conversion that failed."""
    return _conversion_answer({"uid": uid, "result": {"status": "Failure", "message": shortened(why, MAX_REASON)}})


def shortened(text: str, most: int) -> str:
    """Return a text as one line of at most ``most`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _conversion_answer(response: JsonObject) -> bytes:
    return encode_json({"apiVersion": CONVERSION_VERSION, "kind": CONVERSION_KIND, "response": response})


def _review(body: bytes, api_version: str, kind: str) -> JsonObject:
    review = as_object(decode_json(body, max_bytes=MAX_BODY_BYTES, what="the review"), "the review")
    said = (find_str(review, "apiVersion"), find_str(review, "kind"))
    if said != (api_version, kind):
        raise ShapeError(f"the review: expected {api_version} {kind}, found {' '.join(said)!r:.100}")
    request: JsonValue = find(review, "request")
    if not find_str(as_object(request, "request"), "uid"):
        raise ShapeError("the review: expected request.uid, found none")
    return review
