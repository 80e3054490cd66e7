"""The answers of hooks to API servers, well-formed and hostile."""

import base64
import json

import pytest

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.webhooks.answers import (
    MAX_ANSWER_BYTES,
    MAX_MESSAGE,
    MAX_WARNING,
    MAX_WARNINGS,
    AdmissionAnswer,
    read_admission_answer,
    read_conversion_answer,
)

OLD = "stable.example.com/v1alpha1"
NEW = "stable.example.com/v1alpha2"


def admission(answer: JsonValue, *, mutating: bool = True, file: str = "VALIDATING_RESPONSE_PATH") -> AdmissionAnswer:
    return read_admission_answer({file: json.dumps(answer).encode()}, hook="h", mutating=mutating)


def packed(value: JsonValue) -> str:
    return base64.b64encode(json.dumps(value).encode()).decode()


def test_observed_answers_give_the_expected_responses() -> None:
    """The answers were observed with published hooks (spec hook-protocol §6.4a)."""
    assert admission({"allowed": True}).response("u") == {"uid": "u", "allowed": True}
    why = "Only images from repo.example.com are allowed"
    denied = admission({"allowed": False, "message": why}).response("u")
    assert denied == {"uid": "u", "allowed": False, "status": {"code": 403, "reason": "Forbidden", "message": why}}
    operations: JsonValue = [{"op": "add", "path": "/spec/replicas", "value": 333}]
    changed = admission({"allowed": True, "patch": packed(operations)}).response("u")
    assert changed["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(str(changed["patch"]))) == operations


@pytest.mark.parametrize("file", ["ADMISSION_RESPONSE_PATH", "VALIDATING_RESPONSE_PATH"])
def test_answers_are_read_from_both_file_names(file: str) -> None:
    assert admission({"allowed": True}, file=file).allowed


def test_warnings_and_messages_are_truncated() -> None:
    many: list[JsonValue] = ["x" * 1000] * 50
    answer = admission({"allowed": False, "message": "y\n" * MAX_MESSAGE, "warnings": many, "unknown": 1})
    assert len(answer.warnings) == MAX_WARNINGS
    assert {len(text) for text in answer.warnings} == {MAX_WARNING}
    assert len(answer.message) == MAX_MESSAGE


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("", "the file is empty"),
        ("<html>", "the answer"),
        ("[]", "expected an object"),
        ("{}", "allowed: expected true or false"),
        ('{"allowed": "yes"}', "allowed: expected true or false"),
        ('{"allowed": true, "warnings": [1]}', r"warnings\[0\]: expected a text"),
        ('{"allowed": true, "message": 1}', "message"),
        ('{"allowed": true, "patch": [1]}', "patch: expected a JSON Patch in base64"),
        ('{"allowed": true, "patch": "%%"}', "patch: expected a JSON Patch in base64"),
        ('{"allowed": true, "patch": "e30="}', "patch: expected a list"),
        (json.dumps({"allowed": True, "patch": packed([{"op": "nope", "path": "/a"}])}), r"patch\[0\]: expected op"),
        (json.dumps({"allowed": True, "patch": packed([{"op": "add"}] * 10_001)}), "over the limit"),
        ('{"allowed": true, "x": "' + "y" * MAX_ANSWER_BYTES + '"}', "the answer"),
    ],
)
def test_faulty_answers_are_refused_with_the_file_and_the_fault(answer: str, why: str) -> None:
    with pytest.raises(HookError, match=why) as caught:
        read_admission_answer({"VALIDATING_RESPONSE_PATH": answer.encode()}, hook="h", mutating=True)
    assert caught.value.file == "VALIDATING_RESPONSE_PATH"


def test_a_validating_hook_must_not_change_the_object() -> None:
    with pytest.raises(HookError, match="bind it as kubernetesMutating"):
        admission({"allowed": True, "patch": packed([{"op": "remove", "path": "/a"}])}, mutating=False)


def obj(version: str = OLD, name: str = "a", kind: str = "CronTab") -> JsonObject:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "default", "uid": "u"}}


def conversion(answer: JsonValue) -> tuple[JsonObject, ...]:
    answers = {"CONVERSION_RESPONSE_PATH": json.dumps(answer).encode()}
    return read_conversion_answer(answers, hook="h", objects=(obj(),), to_version=NEW)


def test_converted_objects_are_read() -> None:
    assert conversion({"convertedObjects": [obj(NEW)]}) == (obj(NEW),)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"failedMessage": "no"}, "it could not convert: no"),
        ({}, "expected 1 objects, found 0"),
        ({"convertedObjects": [obj(NEW), obj(NEW)]}, "expected 1 objects, found 2"),
        ({"convertedObjects": [obj(OLD)]}, "apiVersion: expected stable.example.com/v1alpha2"),
        ({"convertedObjects": [obj(NEW, name="b")]}, "metadata.name: a conversion must not change it"),
        ({"convertedObjects": [obj(NEW, kind="Other")]}, "kind: a conversion must not change it"),
        ({"convertedObjects": ["x"]}, "convertedObjects"),
    ],
)
def test_faulty_conversion_answers_are_refused(answer: JsonValue, why: str) -> None:
    with pytest.raises(HookError, match=why):
        conversion(answer)
