"""Results observed with published hooks (spec hook-protocol §6.4a): our hooks have the same output in the same situations.

The hooks here were written for this project. The tests read their configurations and run them as the daemon does.
"""

import base64
import json
from datetime import timedelta
from pathlib import Path

from tests.hooks.conformance.golden import (
    CONVERSION,
    MUTATING,
    NAMESPACES,
    RATE,
    VALIDATING,
    asked,
    ran,
    write_on_library,
    write_plain,
)
from wharfinger.formats.json.value import JsonObject, JsonValue


def review(obj: JsonObject) -> JsonObject:
    request: JsonObject = {"uid": "u-1", "operation": "CREATE", "object": obj, "oldObject": None}
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


def namespace(name: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"a": "b"}}}


async def test_hook_with_two_namespace_bindings_handles_both(tmp_path: Path) -> None:
    hook = write_plain(tmp_path, NAMESPACES)
    assert [binding.name for binding in (await asked(hook)).config.kubernetes] == ["labels", "gone"]
    outcome = await ran(
        hook,
        {
            "binding": "labels",
            "type": "Event",
            "watchEvent": "Modified",
            "object": namespace("n"),
            "filterResult": {"a": "b"},
        },
        {"binding": "gone", "type": "Event", "watchEvent": "Deleted", "object": namespace("m")},
    )
    assert outcome.succeeded
    assert outcome.log_lines == ("Namespace n labels were modified", "Namespace m was deleted")
    synchronization: JsonObject = {"binding": "gone", "type": "Synchronization", "objects": []}
    assert (await ran(hook, synchronization)).log_lines == ()


async def test_rate_limited_hook_receives_all_waiting_contexts(tmp_path: Path) -> None:
    hook = write_on_library(tmp_path, RATE)
    config = (await asked(hook)).config
    assert (config.min_interval, config.burst) == (timedelta(seconds=3), 1)
    events: list[JsonObject] = [
        {"binding": "crontabs", "type": "Event", "watchEvent": "Added", "object": {"metadata": {"name": name}}}
        for name in ("a", "b")
    ]
    outcome = await ran(hook, *events)
    assert outcome.log_lines == ("RateLimitedHook binding contexts: 2",)


async def test_a_validating_hook_allows_and_denies(tmp_path: Path) -> None:
    hook = write_on_library(tmp_path, VALIDATING)
    (webhook,) = (await asked(hook)).config.validating
    assert webhook.name == "private-repo-policy.example.com"
    for image, answer in (
        ("repo.example.com/my-cron:v1", '{"allowed":true}'),
        (
            "docker.example.org/my-cron:v1",
            '{"allowed":false, "message":"Only images from repo.example.com are allowed"}',
        ),
    ):
        crontab: JsonObject = {"kind": "CronTab", "spec": {"image": image}}
        outcome = await ran(
            hook,
            {"binding": webhook.name, "type": "Validating", "review": review(crontab)},
            answers=["VALIDATING_RESPONSE_PATH"],
        )
        assert outcome.succeeded, outcome.exit_description
        assert outcome.answers["VALIDATING_RESPONSE_PATH"].decode().strip() == answer


async def test_a_mutating_hook_answers_with_a_patch(tmp_path: Path) -> None:
    hook = write_on_library(tmp_path, MUTATING)
    (webhook,) = (await asked(hook)).config.mutating
    outcome = await ran(
        hook,
        {"binding": webhook.name, "type": "Mutating", "review": review({"kind": "CronTab", "spec": {}})},
        answers=["VALIDATING_RESPONSE_PATH"],
    )
    answer = outcome.answers["VALIDATING_RESPONSE_PATH"].decode().strip()
    assert answer.startswith('{"allowed":true, "patch": "W3sib3Ai')
    said = json.loads(answer)
    assert sorted(said) == ["allowed", "patch"]
    patch = json.loads(base64.b64decode(said["patch"]))
    assert patch == [{"op": "add", "path": "/spec/replicas", "value": 333}]


async def test_a_conversion_hook_converts_all_objects(tmp_path: Path) -> None:
    hook = write_on_library(tmp_path, CONVERSION)
    (conversion,) = (await asked(hook)).config.conversions
    crons: list[list[JsonValue]] = [["*", "*"], ["0", "*"]]
    objects: list[JsonValue] = [
        {"apiVersion": "stable.example.com/v1alpha1", "kind": "CronTab", "spec": {"cron": cron}} for cron in crons
    ]
    outcome = await ran(
        hook,
        {
            "binding": conversion.name,
            "type": "Conversion",
            "fromVersion": "stable.example.com/v1alpha1",
            "toVersion": "stable.example.com/v1alpha2",
            "review": {"request": {"uid": "u", "objects": objects}},
        },
        answers=["CONVERSION_RESPONSE_PATH"],
    )
    assert outcome.succeeded, outcome.exit_description
    answer = outcome.answers["CONVERSION_RESPONSE_PATH"].decode()
    assert '"cron": "* *"' in answer
    assert json.loads(answer) == {
        "convertedObjects": [
            {"apiVersion": "stable.example.com/v1alpha2", "kind": "CronTab", "spec": {"cron": "* *"}},
            {"apiVersion": "stable.example.com/v1alpha2", "kind": "CronTab", "spec": {"cron": "0 *"}},
        ]
    }
