"""AdmissionReviews that are sent to webhooks, and how the answers are read."""

import json

import pytest

from tests.control_plane.support.policy_asking import asked
from wharfinger.control_plane.admission.webhook_reviews import Verdict, denial, failure, key_of, read_verdict, review_of
from wharfinger.formats.json.value import JsonObject, JsonValue, find

UID = "u-1"


def answer(response: JsonValue, *, version: str = "admission.k8s.io/v1", kind: str = "AdmissionReview") -> bytes:
    return json.dumps({"apiVersion": version, "kind": kind, "response": response}).encode()


def test_a_review_has_the_object_in_the_matched_version() -> None:
    admission, resource, _ = asked(data={"a": "b"})
    review = review_of(admission, resource, resource)
    assert find(review, "operation") == "CREATE"
    assert find(review, "kind") == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert find(review, "object", "data") == {"a": "b"}
    assert find(review, "oldObject") is None
    assert find(review, "dryRun") is False


def test_repeated_attempts_of_a_write_have_the_same_key() -> None:
    def key(uid: str, name: str, data: str, operation: str = "CREATE", prefix: str = "a-") -> str:
        metadata: JsonObject = {"uid": uid, "name": name, "creationTimestamp": uid}
        metadata |= {"generateName": prefix} if prefix else {}
        return key_of("w", {"operation": operation, "name": name, "object": {"metadata": metadata, "data": data}})

    assert key("1", "a-1", "x") == key("2", "a-2", "x")
    assert key("1", "a-1", "x") != key("1", "a-1", "y")
    assert key("1", "a", "x", prefix="") != key("1", "b", "x", prefix="")
    assert key("1", "a-1", "x", "UPDATE") != key("2", "a-1", "x", "UPDATE")


@pytest.mark.parametrize(
    ("code", "body", "verdict"),
    [
        (200, answer({"uid": UID, "allowed": True, "warnings": ["w", 1]}), Verdict(allowed=True, warnings=("w",))),
        (200, answer({"uid": UID, "allowed": False, "status": {"code": 422, "reason": "Invalid", "message": "m"}}),
         Verdict(code=422, reason="Invalid", message="m")),
        (200, answer({"uid": "other", "allowed": True}), Verdict(failed='expected response.uid="u-1", got "other"')),
        (200, answer(None), Verdict(failed="webhook response was absent")),
        (200, answer({}, version="admission.k8s.io/v1beta1"), Verdict(
            failed="expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, "
            "got admission.k8s.io/v1beta1, Kind=AdmissionReview")),
        (500, b"", Verdict(failed="the server answered with 500")),
    ],
)  # fmt: skip
def test_answers_of_webhooks_are_read_as_verdicts(code: int, body: bytes, verdict: Verdict) -> None:
    assert read_verdict(code, body, UID) == verdict


def test_an_answer_that_is_not_json_is_a_failure() -> None:
    assert read_verdict(200, b"<html>", UID).failed
    assert not read_verdict(200, b"<html>", UID).allowed


@pytest.mark.parametrize(
    ("verdict", "code", "message"),
    [
        (Verdict(), 400, 'admission webhook "w" denied the request without explanation'),
        (Verdict(code=200, reason="Invalid"), 400, 'admission webhook "w" denied the request: Invalid'),
        (Verdict(code=403, reason="Forbidden", message="no"), 403, 'admission webhook "w" denied the request: no'),
    ],
)
def test_denials_have_the_code_and_message_of_the_webhook(verdict: Verdict, code: int, message: str) -> None:
    error = denial("w", verdict)
    assert (error.code, error.message) == (code, message)


def test_the_error_of_a_failed_call_names_the_webhook() -> None:
    error = failure("w", "no answer")
    assert error.code == 500
    assert error.message == 'Internal error occurred: failed calling webhook "w": failed to call webhook: no answer'
