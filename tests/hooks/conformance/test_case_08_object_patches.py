"""Case 8: every operation on objects, from the text that a hook writes to the resulting cluster."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock

from tests.cluster.support.client_contract import NAMESPACE, config_map, key, widget_crd
from tests.cluster.support.clusters import memory_cluster
from tests.hooks.conformance.jq_here import JqHere
from tests.hooks.conformance.patch_cases import (
    BEFORE,
    CREATIONS,
    DELETIONS,
    PATCHES,
    TOGETHER,
    WRONG,
    PatchCase,
    configmap,
    of_widget,
)
from wharfinger.cluster.api.errors import NotFoundError
from wharfinger.cluster.api.http_client import HttpClusterClient
from wharfinger.formats.json.value import JsonObject, JsonValue, find_object, find_str
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.object_operations import despite_failure, read_operations
from wharfinger.hooks.running.object_patches import OperationFailure, apply_operations
from wharfinger.hooks.running.results import read_object_patches
from wharfinger.kube.resource import ObjectKey


@asynccontextmanager
async def cluster() -> AsyncIterator[HttpClusterClient]:
    """Open a cluster with the objects that every row starts with."""
    async with memory_cluster(simulate=True) as client:
        a = await client.create(config_map("a", labels={"app": "x"}, v="1", w="1"))
        owned = config_map("owned", v="1")
        find_object(owned, "metadata")["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": find_str(a, "metadata", "uid")}
        ]
        await client.create(owned)
        await client.create(widget_crd())
        await trio.sleep(1)
        widget: JsonObject = {"apiVersion": "example.test/v1", "kind": "Widget", "spec": {"size": 1}}
        await client.create({**widget, "metadata": {"name": "one", "namespace": "default"}})
        yield client


async def done(client: HttpClusterClient, text: str) -> tuple[OperationFailure, ...]:
    operations = read_operations(read_object_patches(text.encode(), hook="h"), hook="h")
    failures = await apply_operations(client, JqHere(), operations, jitter=lambda: 0.5)
    await trio.sleep(30)  # Objects whose owner is gone are garbage-collected in this time.
    return failures


async def data_of(client: HttpClusterClient, name: str) -> JsonValue:
    try:
        return (await client.get(key(name))).get("data")
    except NotFoundError:
        return None


async def widget_of(client: HttpClusterClient) -> JsonObject:
    resource = await client.resource_type("example.test/v1", "Widget")
    return await client.get(ObjectKey(resource, "default", "one"))


async def check(case: PatchCase) -> None:
    async with cluster() as client:
        failures = await done(client, case.text)
        assert len(failures) == len(case.failures), failures
        for failure, beginning in zip(failures, case.failures, strict=True):
            assert failure.message.startswith(beginning)
        expected: dict[str, JsonObject | None] = {"a": BEFORE, "owned": {"v": "1"}, "new": None, **case.data}
        assert {name: await data_of(client, name) for name in expected} == expected
        widget = await widget_of(client)
        for name, value in (case.widget or {"spec": {"size": 1}, "status": None}).items():
            assert widget.get(name) == value
        for name in case.namespaces:
            assert find_str(await client.get(ObjectKey(NAMESPACE, "", name)), "metadata", "name") == name


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CREATIONS)
async def test_creations_give_the_expected_cluster(case: str, autojump_clock: MockClock) -> None:
    await check(CREATIONS[case])


@pytest.mark.parametrize("case", DELETIONS)
async def test_deletions_give_the_expected_cluster(case: str, autojump_clock: MockClock) -> None:
    await check(DELETIONS[case])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", PATCHES)
async def test_patches_give_the_expected_cluster(case: str, autojump_clock: MockClock) -> None:
    await check(PATCHES[case])


@pytest.mark.parametrize("case", TOGETHER)
async def test_several_operations_give_the_expected_cluster(case: str, autojump_clock: MockClock) -> None:
    await check(TOGETHER[case])


def test_tables_have_as_many_rows_as_the_contract() -> None:
    assert len(CREATIONS | DELETIONS | PATCHES | TOGETHER) >= 40


async def test_update_replaces_the_whole_object(autojump_clock: MockClock) -> None:
    """An update is a replacement, not a merge: labels are removed as well."""
    async with cluster() as client:
        assert await done(client, configmap("a", "CreateOrUpdate")) == ()
        assert find_object(await client.get(key("a")), "metadata").get("labels") is None


@pytest.mark.parametrize(
    "text", ["operation: JQPatch\nkind: cm\nnamespace: default\nname: a\njqFilter: '.data.v = \"1\"'\n"]
)
async def test_a_filter_that_changes_nothing_writes_nothing(text: str, autojump_clock: MockClock) -> None:
    async with cluster() as client:
        before = find_str(await client.get(key("a")), "metadata", "resourceVersion")
        assert await done(client, text) == ()
        assert find_str(await client.get(key("a")), "metadata", "resourceVersion") == before


@pytest.mark.parametrize("case", WRONG)
async def test_one_invalid_document_prevents_all_operations(case: str, autojump_clock: MockClock) -> None:
    document, why = WRONG[case]
    text = f"{configmap('new', 'Create')}---\n{json.dumps(document)}\n"
    async with cluster() as client:
        with pytest.raises(HookError) as caught:
            await done(client, text)
        assert "can't validate document: " in str(caught.value)
        assert why in str(caught.value)
        assert await data_of(client, "new") is None


async def test_failed_hook_applies_only_marked_status_patches(autojump_clock: MockClock) -> None:
    status = "mergePatch: {status: {phase: Failed}}\nsubresource: status\n"
    texts = [
        of_widget("MergePatch", "mergePatch: {spec: {size: 7}}\nignoreHookError: true"),
        of_widget("MergePatch", "mergePatch: {status: {other: true}}\nsubresource: status"),
        of_widget("MergePatch", status + "ignoreHookError: true"),
    ]
    async with cluster() as client:
        documents = read_object_patches("---\n".join(texts).encode(), hook="h")
        left = despite_failure(read_operations(documents, hook="h"))
        assert await apply_operations(client, JqHere(), left) == ()
        widget = await widget_of(client)
        assert (widget["spec"], widget["status"]) == ({"size": 1}, {"phase": "Failed"})
