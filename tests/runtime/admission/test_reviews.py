"""AdmissionReviews: how the admission server reads them, and how it answers."""

import json

import pytest

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject
from wharfinger.runtime.admission.reviews import MAX_WARNING, Review, answer_to, read_review

OBJECT: JsonObject = {"kind": "Module"}


def review(**request: object) -> bytes:
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


def test_reviews_are_read_with_old_and_new_object() -> None:
    assert read_review(review(uid="u", object=OBJECT)) == Review("u", OBJECT, None)
    assert read_review(review(uid="u", object=OBJECT, oldObject=OBJECT)) == Review("u", OBJECT, OBJECT)
    deleted = read_review(review(uid="u", operation="DELETE", object=None, oldObject=OBJECT))
    assert deleted == Review("u", OBJECT, None, deletes=True)


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", review(object=OBJECT), review(uid="u"), review(uid="u", object=OBJECT, oldObject=1),
     review(uid="u", object=OBJECT).replace(b"/v1", b"/v2")],
)  # fmt: skip
def test_invalid_reviews_are_refused(body: bytes) -> None:
    with pytest.raises(FormatError):
        read_review(body)


def test_answers_contain_refusal_and_bounded_warnings() -> None:
    asked = Review("u", OBJECT, None)
    assert json.loads(answer_to(asked, "", ()))["response"] == {"uid": "u", "allowed": True}
    refused = json.loads(answer_to(asked, "no", ("w\n x", "y" * 1000)))["response"]
    assert refused["status"] == {"code": 422, "reason": "Invalid", "message": "no"}
    assert refused["allowed"] is False
    assert refused["warnings"][0] == "w x"
    assert len(refused["warnings"][1]) == MAX_WARNING
