"""Reviews for hooks: how AdmissionReviews and ConversionReviews are parsed, and the answers that API servers get."""

import json

import pytest

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.hooks.config.bindings import AdmissionBinding
from wharfinger.runtime.admission import hook_reviews as reviews


def body(kind: str, api_version: str, request: JsonValue) -> bytes:
    return json.dumps({"apiVersion": api_version, "kind": kind, "request": request}).encode()


def test_an_admission_review_is_passed_on_unchanged() -> None:
    read = reviews.read_admission_review(body("AdmissionReview", "admission.k8s.io/v1", {"uid": "u", "object": {}}))
    assert read["request"] == {"uid": "u", "object": {}}


def test_a_conversion_review_is_read_and_rebuilt() -> None:
    request: JsonObject = {"uid": "u", "desiredAPIVersion": "g/v2", "objects": [{"apiVersion": "g/v1"}]}
    read = reviews.read_conversion_review(body("ConversionReview", "apiextensions.k8s.io/v1", request))
    assert read == reviews.ConversionRequest("u", "g/v2", ({"apiVersion": "g/v1"},))
    assert reviews.conversion_review(read, read.objects)["request"] == request


@pytest.mark.parametrize("wrong", [b"x", b"[]", b"{}", body("Other", "v1", {"uid": "u"})])
def test_invalid_bodies_are_refused(wrong: bytes) -> None:
    for read in (reviews.read_admission_review, reviews.read_conversion_review):
        with pytest.raises(FormatError):
            read(wrong)


@pytest.mark.parametrize(
    "request_", [{"uid": ""}, {"uid": "u"}, None, {"uid": "u", "desiredAPIVersion": "v", "objects": [1]}]
)
def test_incomplete_requests_are_refused(request_: JsonValue) -> None:
    with pytest.raises(FormatError):
        reviews.read_conversion_review(body("ConversionReview", "apiextensions.k8s.io/v1", request_))


def test_objects_are_converted_by_version_in_bounded_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    objects: list[JsonObject] = [{"apiVersion": version, "x": "y" * 10} for version in ("v1", "v2", "v1", "v1")]
    assert list(reviews.batches(objects)) == [(0, 2, 3), (1,)]
    monkeypatch.setattr(reviews, "BATCH_OBJECTS", 2)
    assert list(reviews.batches(objects)) == [(0, 2), (3,), (1,)]
    monkeypatch.setattr(reviews, "BATCH_BYTES", 10)
    assert list(reviews.batches(objects)) == [(0,), (2,), (3,), (1,)]


@pytest.mark.parametrize(("policy", "allowed"), [("Fail", False), ("Ignore", True)])
def test_without_an_answer_the_failure_policy_decides_and_the_reason_is_reported(policy: str, allowed: bool) -> None:
    response = reviews.failed_admission("u", AdmissionBinding("a.b.c", (), failure_policy=policy), "it\nhung " * 200)
    assert response["allowed"] is allowed
    assert "it hung" in json.dumps(response)
    assert "\\n" not in json.dumps(response)


def test_conversion_answers_report_success_or_failure() -> None:
    done = json.loads(reviews.converted_answer("u", [{"a": 1}]))["response"]
    assert done == {"uid": "u", "result": {"status": "Success"}, "convertedObjects": [{"a": 1}]}
    failed = json.loads(reviews.failed_conversion("u", "why"))["response"]
    assert failed["result"] == {"status": "Failure", "message": "why"}
