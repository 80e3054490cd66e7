"""Case 10: admission and conversion, from the context of a hook to the answer for the API server."""

import base64
import json
from pathlib import Path

import pytest

from tests.hooks.conformance.golden import CONVERSION, MUTATING, VALIDATING, asked, ran, write_on_library
from wharfinger.formats.json.value import JsonObject
from wharfinger.hooks.running.run_report import ANSWERS
from wharfinger.hooks.watching import contexts
from wharfinger.hooks.webhooks.addresses import safe_name
from wharfinger.hooks.webhooks.answers import read_admission_answer, read_conversion_answer
from wharfinger.hooks.webhooks.bound_webhooks import bound_webhooks
from wharfinger.hooks.webhooks.chains import find_chain

CHAINS = [("alpha", "beta"), ("beta", "gamma"), ("gamma", "delta")]
DENIED = "Only images from repo.example.com are allowed"


def review(obj: JsonObject) -> JsonObject:
    request: JsonObject = {"uid": "u-1", "operation": "CREATE", "object": obj, "oldObject": None}
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


@pytest.mark.parametrize(
    ("image", "response"),
    [
        ("repo.example.com/cron:v1", {"uid": "u-1", "allowed": True}),
        (
            "docker.example.org/cron:v1",
            {"uid": "u-1", "allowed": False, "status": {"code": 403, "reason": "Forbidden", "message": DENIED}},
        ),
    ],
)
async def test_validating_hook_answers_with_its_verdict(tmp_path: Path, image: str, response: JsonObject) -> None:
    path = write_on_library(tmp_path, VALIDATING)
    hook = await asked(path)
    (webhook,) = bound_webhooks([hook], None).validating
    context = contexts.validating(webhook.binding, review({"kind": "CronTab", "spec": {"image": image}}), {})
    outcome = await ran(path, context, answers=ANSWERS)
    assert read_admission_answer(outcome.answers, hook=hook.name, mutating=False).response("u-1") == response


async def test_mutating_hook_answers_with_a_json_patch(tmp_path: Path) -> None:
    path = write_on_library(tmp_path, MUTATING)
    hook = await asked(path)
    (webhook,) = bound_webhooks([hook], None).mutating
    outcome = await ran(path, contexts.mutating(webhook.binding, review({"spec": {}}), {}), answers=ANSWERS)
    response = read_admission_answer(outcome.answers, hook=hook.name, mutating=True).response("u-1")
    assert response["patchType"] == "JSONPatch"
    patch = json.loads(base64.b64decode(str(response["patch"])))
    assert patch == [{"op": "add", "path": "/spec/replicas", "value": 333}]


async def test_conversion_hook_answers_with_converted_objects(tmp_path: Path) -> None:
    path = write_on_library(tmp_path, CONVERSION)
    hook = await asked(path)
    ((pair, (_, binding)),) = bound_webhooks([hook], None).conversions["crontabs.stable.example.com"].pairs.items()
    spec: JsonObject = {"cron": ["*", "*"]}
    old: JsonObject = {"apiVersion": pair[0], "kind": "CronTab", "metadata": {"name": "a"}, "spec": spec}
    document: JsonObject = {"request": {"uid": "u", "desiredAPIVersion": pair[1], "objects": [old]}}
    outcome = await ran(path, contexts.conversion(binding, pair, document, {}), answers=ANSWERS)
    (new,) = read_conversion_answer(outcome.answers, hook=hook.name, objects=[old], to_version=pair[1])
    assert new == {**old, "apiVersion": pair[1], "spec": {"cron": "* *"}}


def test_webhook_names_are_made_safe_for_urls() -> None:
    assert [safe_name(name) for name in ("weird spaced Name", "test-policy.example.com")] == [
        "weird-spaced-name",
        "test-policy-example-com",
    ]


def test_conversion_chain_passes_through_intermediate_versions() -> None:
    assert find_chain(CHAINS, "alpha", "delta") == tuple(CHAINS)
