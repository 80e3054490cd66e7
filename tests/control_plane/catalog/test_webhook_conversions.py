"""Conversion webhooks over real TLS: the versions in which objects are stored and shown."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.control_plane.support.bench import send, watching
from tests.control_plane.support.webhook_server import (
    Hook,
    configure_mutating,
    patch,
    serving,
)
from wharfinger.control_plane.service import ControlPlane
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_str
from wharfinger.httpd.messages import Response

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRONS = "/apis/stable.example.com/{}/namespaces/default/crontabs"


def cron_definition(hook: Hook) -> JsonObject:
    """Return a CRD. Its field ``cron`` is a list in ``v1alpha1``, and a string in the storage version ``v1alpha2``."""

    def version(name: str, cron: JsonObject, *, storage: bool) -> JsonObject:
        spec: JsonObject = {"type": "object", "properties": {"cron": cron}}
        schema: JsonObject = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
        return {"name": name, "served": True, "storage": storage, "schema": schema}

    client: JsonObject = {"url": hook.url, "caBundle": hook.ca}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "crontabs.stable.example.com"},
        "spec": {
            "group": "stable.example.com",
            "scope": "Namespaced",
            "names": {"plural": "crontabs", "singular": "crontab", "kind": "CronTab"},
            "versions": [
                version("v1alpha1", {"type": "array", "items": {"type": "string"}}, storage=False),
                version("v1alpha2", {"type": "string"}, storage=True),
            ],
            "conversion": {
                "strategy": "Webhook",
                "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]},
            },
        },
    }


def convert(request: JsonObject) -> JsonObject:
    """Convert objects between both versions, as the hook in shell-operator's example ``210-conversion-webhook`` does."""
    desired, objects = find_str(request, "desiredAPIVersion"), find(request, "objects")
    assert isinstance(objects, list)
    converted: list[JsonValue] = []
    for obj in objects:
        assert isinstance(obj, dict)
        cron = find(obj, "spec", "cron")
        new: JsonValue = " ".join(map(str, cron)) if isinstance(cron, list) else [*str(cron).split(" ")]
        metadata = find(obj, "metadata")
        assert isinstance(metadata, dict)
        annotated: JsonObject = {**metadata, "annotations": {"converted": "yes"}, "generation": 99}
        converted.append({**obj, "apiVersion": desired, "metadata": annotated, "spec": {"cron": new}})
    return {"result": {"status": "Success"}, "convertedObjects": converted}


def crontab(version: str, cron: JsonValue, name: str = "a") -> JsonObject:
    metadata: JsonObject = {"name": name}
    spec: JsonObject = {"cron": cron}
    return {"apiVersion": f"stable.example.com/{version}", "kind": "CronTab", "metadata": metadata, "spec": spec}


@asynccontextmanager
async def converting() -> AsyncIterator[tuple[Hook, ControlPlane]]:
    async with serving() as (hook, plane):
        hook.judge = convert
        assert (await send(plane, "POST", DEFINITIONS, cron_definition(hook))).code == 201
        yield hook, plane


async def test_objects_are_converted_to_the_storage_and_the_requested_version() -> None:
    async with converting() as (hook, plane):
        old, new = CRONS.format("v1alpha1"), CRONS.format("v1alpha2")
        answer = await send(plane, "POST", old, crontab("v1alpha1", ["*", "1"]))
        assert (answer.code, find(answer.body, "spec", "cron")) == (201, ["*", "1"])
        assert find(answer.body, "metadata", "generation") == 1, "only labels and annotations are the webhook's"
        assert find(answer.body, "metadata", "annotations") == {"converted": "yes"}
        hook.seen.clear()
        shown = await send(plane, "GET", f"{new}/a")
        assert (find(shown.body, "apiVersion"), find(shown.body, "spec", "cron")) == (
            "stable.example.com/v1alpha2",
            "* 1",
        )
        assert hook.seen == [], "the stored version needs no conversion"
        merge = "application/merge-patch+json"
        changed = await send(plane, "PATCH", f"{old}/a", {"spec": {"cron": ["2", "3"]}}, content_type=merge)
        assert (changed.code, find(changed.body, "spec", "cron")) == (200, ["2", "3"])
        assert find((await send(plane, "GET", f"{new}/a")).body, "spec", "cron") == "2 3"
        whole = (await send(plane, "GET", f"{old}/a")).body
        assert (await send(plane, "PUT", f"{old}/a", {**whole, "spec": {"cron": ["9"]}})).code == 200
        assert (await send(plane, "DELETE", f"{old}/a")).code == 200


async def test_lists_and_watch_events_are_converted_in_one_call() -> None:
    async with converting() as (hook, plane):
        old, new = CRONS.format("v1alpha1"), CRONS.format("v1alpha2")
        for name in "abc":
            assert (await send(plane, "POST", new, crontab("v1alpha2", f"{name} *", name))).code == 201
        hook.seen.clear()
        items = find((await send(plane, "GET", old)).body, "items")
        assert isinstance(items, list)
        assert [find(one, "spec", "cron") for one in items] == [["a", "*"], ["b", "*"], ["c", "*"]]
        assert len(hook.seen) == 1
        hook.seen.clear()
        async with watching(plane, f"{old}?watch=true") as lines:
            events = [json.loads(await anext(lines)) for _ in range(3)]
            assert len(hook.seen) == 1
            assert (await send(plane, "POST", new, crontab("v1alpha2", "d *", "d"))).code == 201
            events.append(json.loads(await anext(lines)))
        assert [(one["type"], one["object"]["spec"]["cron"]) for one in events] == [
            ("ADDED", [name, "*"]) for name in "abcd"
        ]


@pytest.mark.parametrize("fault", ["failure", "another name", "too few", "garbage", "another version"])
async def test_a_failed_conversion_is_an_error_and_stores_nothing(fault: str) -> None:
    async with converting() as (hook, plane):
        old = CRONS.format("v1alpha1")

        def judge(request: JsonObject) -> JsonObject:
            found = convert(request)
            objects = found["convertedObjects"]
            assert isinstance(objects, list)
            assert isinstance(objects[0], dict)
            match fault:
                case "failure":
                    return {"result": {"status": "Failure", "message": "not today"}}
                case "another name":
                    return {**found, "convertedObjects": [{**objects[0], "metadata": {"name": "b"}}]}
                case "another version":
                    return {**found, "convertedObjects": [{**objects[0], "apiVersion": "stable.example.com/v9"}]}
                case _:
                    return {**found, "convertedObjects": []}

        hook.judge = judge
        hook.raw = Response(200, b"<html>") if fault == "garbage" else None
        answer = await send(plane, "POST", old, crontab("v1alpha1", ["*"]))
        assert answer.code == 500
        why = "conversion webhook for stable.example.com/v1alpha1, Kind=CronTab failed: "
        assert why in find_str(answer.body, "message")
        hook.judge, hook.raw = convert, None
        assert (await send(plane, "GET", f"{CRONS.format('v1alpha2')}/a")).code == 404


async def test_an_update_is_not_stored_if_its_result_cannot_be_shown() -> None:
    async with converting() as (hook, plane):
        old, new = CRONS.format("v1alpha1"), CRONS.format("v1alpha2")
        assert (await send(plane, "POST", new, crontab("v1alpha2", "1"))).code == 201

        def one_way(request: JsonObject) -> JsonObject:
            if find(request, "objects", 0, "spec", "cron") == "2":
                return {"result": {"status": "Failure", "message": "no way back"}}
            return convert(request)

        hook.judge = one_way
        merge = "application/merge-patch+json"
        changed = await send(plane, "PATCH", f"{old}/a", {"spec": {"cron": ["2"]}}, content_type=merge)
        assert changed.code == 500
        assert find((await send(plane, "GET", f"{new}/a")).body, "spec", "cron") == "1"


async def test_a_webhook_gets_objects_in_the_version_of_its_rules() -> None:
    async with converting() as (hook, plane):
        rule: JsonObject = {
            "apiGroups": ["stable.example.com"], "apiVersions": ["v1alpha2"], "operations": ["*"], "resources": ["crontabs"]
        }  # fmt: skip
        await configure_mutating(hook, plane, "a", rules=[rule])

        def judge(request: JsonObject) -> JsonObject:
            if "objects" in request:
                return convert(request)
            assert find(request, "object", "spec", "cron") == "* 1"
            return patch({"op": "replace", "path": "/spec/cron", "value": "7 8"})

        hook.judge = judge
        answer = await send(plane, "POST", CRONS.format("v1alpha1"), crontab("v1alpha1", ["*", "1"]))
        assert (answer.code, find(answer.body, "spec", "cron")) == (201, ["7", "8"])
