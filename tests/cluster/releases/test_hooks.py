"""Helm hooks, run by the engine on the control plane in memory, and read by the real helm."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.cluster.support.client_contract import key, widget_crd
from tests.cluster.support.clusters import memory_cluster
from tests.cluster.support.release_bench import cluster, open_engine
from tests.cluster.support.release_requests import config_map, request
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import NotFoundError, ReleaseError
from wharfinger.cluster.api.http_client import HttpClusterClient
from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.cluster.records.release import ReleaseStatus
from wharfinger.cluster.records.release_store import ReleaseStore
from wharfinger.cluster.releases.engine import ReleaseEngine
from wharfinger.cluster.releases.hooks import (
    DeletePolicy,
    HookEvent,
    HookFailedError,
    HookRunner,
    hook_entry,
    hooks_of,
    parse_hook,
    parse_hooks,
)
from wharfinger.cluster.releases.options import utc_now
from wharfinger.cluster.releases.request import Outcome, ReleaseRequest
from wharfinger.cluster.watch.object_waits import silent
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find
from wharfinger.kube.resource import ObjectKey, name_of


def hook(name: str, events: str, kind: str = "ConfigMap", weight: str = "", policy: str = "") -> JsonObject:
    """Return a Helm hook that is a Job, a Pod or a ConfigMap."""
    annotations: JsonObject = {"helm.sh/hook": events}
    if weight:
        annotations["helm.sh/hook-weight"] = weight
    if policy:
        annotations["helm.sh/hook-delete-policy"] = policy
    metadata: JsonObject = {"name": name, "annotations": annotations}
    pod: JsonObject = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.example/x:1"}]}
    if kind == "Job":
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": {"spec": pod}}}
    if kind == "Pod":
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def with_hooks(*hooks: JsonObject, v: str = "1") -> ReleaseRequest:
    return replace(request(config_map("a", v=v)), hooks=hooks)


async def key_of(client: ClusterClient, kind: str, name: str) -> ObjectKey:
    api_version = "batch/v1" if kind == "Job" else "v1"
    return ObjectKey(await client.resource_type(api_version, kind), "default", name)


async def exists(client: ClusterClient, kind: str, name: str) -> bool:
    try:
        await client.get(await key_of(client, kind, name))
    except NotFoundError:
        return False
    return True


# -- annotations


def test_a_hook_is_parsed() -> None:
    parsed = parse_hook(
        hook("x", "post-install, Post-Upgrade,rollback", weight="-5", policy="hook-succeeded,hook-failed,x")
    )
    assert parsed.events == {HookEvent.POST_INSTALL, HookEvent.POST_UPGRADE}
    assert parsed.weight == -5
    assert parsed.policies == {DeletePolicy.SUCCEEDED, DeletePolicy.FAILED}
    assert str(parsed) == "hook ConfigMap x"
    default = parse_hook(hook("x", "test-success", weight="heavy"))
    assert default.events == {HookEvent.TEST}
    assert default.weight == 0
    assert default.policies == {DeletePolicy.BEFORE_CREATION}
    with pytest.raises(ReleaseError, match="without apiVersion"):
        parse_hooks([{"kind": "Job"}])


async def test_hooks_are_stored_in_the_record(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, open_engine(client) as engine:
        await engine.upgrade(with_hooks(hook("x", "post-delete", weight="3", policy="hook-succeeded")))
        (record,) = await engine.history("web", "default")
        entry = record.hooks[0]
        assert {name: entry[name] for name in ("name", "kind", "events", "weight", "delete_policies")} == {
            "name": "x",
            "kind": "ConfigMap",
            "events": ["post-delete"],
            "weight": 3,
            "delete_policies": ["hook-succeeded"],
        }
        assert hooks_of(record) == parse_hooks([hook("x", "post-delete", weight="3", policy="hook-succeeded")])
        assert entry == hook_entry(hooks_of(record)[0])


# -- running


async def creations(client: ClusterClient, count: int, since: str) -> list[str]:
    """Return the names of the first ``count`` ConfigMaps created in ``default`` after the resourceVersion ``since``."""
    names: list[str] = []
    kind = (await key_of(client, "ConfigMap", "x")).resource
    async with client.watch(kind, "default", resource_version=since) as events:
        async for event in events:
            if event.type is WatchType.ADDED:
                names.append(name_of(event.object))
            if len(names) == count:
                break
    return names


async def test_hooks_run_in_the_order_of_event_and_weight(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, open_engine(client) as engine:
        since = (await client.list((await key_of(client, "ConfigMap", "x")).resource, "default")).resource_version
        hooks = [
            hook("late", "pre-install", weight="5"),
            hook("after", "post-install"),
            hook("b", "pre-install"),
            hook("early", "pre-install,pre-upgrade", weight="-1"),
            hook("never", "test"),
        ]
        await engine.upgrade(with_hooks(*hooks))
        assert await creations(client, 5, since) == ["early", "b", "late", "a", "after"]
        assert not await exists(client, "ConfigMap", "never")
        result = await engine.upgrade(with_hooks(*hooks))
        assert result.outcome is Outcome.UNCHANGED


async def test_kinds_that_others_need_come_first(autojump_clock: MockClock) -> None:
    """A Job would wait forever for a ServiceAccount created after it."""
    async with memory_cluster() as client, open_engine(client) as engine:
        account = hook("x", "pre-install") | {"kind": "ServiceAccount"}
        async with upgrading(client, engine, with_hooks(hook("migrate", "pre-install", "Job"), account)) as ended:
            assert await exists(client, "ServiceAccount", "x")
            await set_status(client, "Job", "migrate", job_condition("Complete"))
        assert ended == [Outcome.INSTALLED]


async def test_definitions_are_never_deleted(autojump_clock: MockClock) -> None:
    """If a CRD is a hook, it is never deleted, because all objects of its kind would be deleted with it."""
    async with memory_cluster() as client:
        crd = widget_crd()
        metadata = crd["metadata"]
        assert isinstance(metadata, dict)
        annotations: JsonObject = {"helm.sh/hook": "test", "helm.sh/hook-delete-policy": "hook-succeeded"}
        runner = HookRunner(client, "default", silent)
        await runner.run(parse_hooks([{**crd, "metadata": {**metadata, "annotations": annotations}}]), HookEvent.TEST)
        kept = parse_hooks([{**crd, "metadata": {**metadata, "annotations": {"helm.sh/hook": "test"}}}])
        with pytest.raises(HookFailedError, match="its object still exists from an earlier run"):
            await runner.run(kept, HookEvent.TEST)
        kind = await client.resource_type("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        assert "deletionTimestamp" not in as_object(
            (await client.get(ObjectKey(kind, "", name_of(crd))))["metadata"], ""
        )


async def test_install_hooks_run_again_after_a_failed_install(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, open_engine(client) as engine:
        wanted = with_hooks(hook("init", "pre-install", "Job"), hook("x", "pre-upgrade"))
        async with upgrading(client, engine, wanted) as ended:
            await set_status(client, "Job", "init", job_condition("Failed", "once"))
        async with upgrading(client, engine, wanted) as ended:
            assert ended == []
            await set_status(client, "Job", "init", job_condition("Complete"))
        assert ended == [Outcome.UPGRADED]
        assert not await exists(client, "ConfigMap", "x")


async def test_an_interrupted_hook_does_not_block_the_next_attempt(autojump_clock: MockClock) -> None:
    """When a hook with the policy "hook-succeeded" is interrupted, its object is deleted.

    Otherwise all later upgrades would fail.
    """
    async with memory_cluster() as client, open_engine(client) as engine:
        wanted = with_hooks(hook("migrate", "pre-install", "Job", policy="hook-succeeded"))
        with trio.move_on_after(10) as scope:
            await engine.upgrade(wanted)
        assert scope.cancelled_caught
        assert not await exists(client, "Job", "migrate")
        async with upgrading(client, engine, wanted) as ended:
            await set_status(client, "Job", "migrate", job_condition("Complete"))
        assert ended == [Outcome.UPGRADED]


async def test_successful_hooks_do_not_block_the_next_attempt(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, open_engine(client) as engine:
        wanted = with_hooks(
            hook("settings", "pre-install", weight="-1", policy="hook-succeeded"), hook("migrate", "pre-install", "Job")
        )
        async with upgrading(client, engine, wanted) as ended:
            await set_status(client, "Job", "migrate", job_condition("Failed", "once"))
        assert not await exists(client, "ConfigMap", "settings")
        async with upgrading(client, engine, wanted) as ended:
            await set_status(client, "Job", "migrate", job_condition("Complete"))
        assert ended == [Outcome.UPGRADED]


async def test_changed_hooks_alone_make_a_revision(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, open_engine(client) as engine:
        await engine.upgrade(with_hooks())
        assert (await engine.upgrade(with_hooks(hook("x", "pre-upgrade")))).outcome is Outcome.UPGRADED
        assert await exists(client, "ConfigMap", "x")


async def test_delete_policies_are_followed(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, open_engine(client) as engine:
        await engine.upgrade(
            with_hooks(hook("kept", "pre-install"), hook("gone", "pre-install", policy="hook-succeeded"), v="1")
        )
        assert await exists(client, "ConfigMap", "kept")
        assert not await exists(client, "ConfigMap", "gone")
        uid = find(await client.get(key("kept")), "metadata", "uid")
        await engine.upgrade(with_hooks(hook("kept", "pre-upgrade"), v="2"))
        assert find(await client.get(key("kept")), "metadata", "uid") != uid
        with pytest.raises(
            HookFailedError, match=r"pre-upgrade hook ConfigMap kept: its object still exists from an earlier run"
        ):
            await engine.upgrade(with_hooks(hook("kept", "pre-upgrade", policy="hook-failed"), v="3"))
        assert not await exists(client, "ConfigMap", "kept")
        assert [one.status.value for one in await engine.history("web", "default")] == [
            "superseded",
            "deployed",
            "failed",
        ]


@asynccontextmanager
async def upgrading(
    client: HttpClusterClient, engine: ReleaseEngine, wanted: ReleaseRequest
) -> AsyncIterator[list[Outcome | HookFailedError]]:
    """Run an upgrade during the ``async with`` block. After the block, the yielded list has the upgrade's outcome or error."""
    ended: list[Outcome | HookFailedError] = []

    async def run() -> None:
        try:
            ended.append((await engine.upgrade(wanted)).outcome)
        except HookFailedError as error:
            ended.append(error)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await wait_all_tasks_blocked()
        yield ended


async def set_status(client: ClusterClient, kind: str, name: str, status: JsonObject) -> None:
    await client.merge_patch(await key_of(client, kind, name), {"status": status}, subresource="status")
    await wait_all_tasks_blocked()


def job_condition(kind: str, message: str = "") -> JsonObject:
    """Return the status of a finished Job. Its conditions have the order in which the Job controller writes them."""
    decided = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}[kind]
    conditions: list[JsonValue] = [{"type": each, "status": "True", "message": message} for each in (decided, kind)]
    ended: JsonObject = {"completionTime": "2026-01-01T00:00:01Z"} if kind == "Complete" else {}
    return {"startTime": "2026-01-01T00:00:00Z", **ended, "conditions": conditions}


async def test_jobs_and_pods_are_waited_for(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, open_engine(client) as engine:
        wanted = with_hooks(hook("migrate", "pre-install", "Job"), hook("check", "pre-install", "Pod", weight="1"))
        async with upgrading(client, engine, wanted) as ended:
            assert not await exists(client, "Pod", "check")
            await set_status(client, "Job", "migrate", job_condition("Complete"))
            assert await exists(client, "Pod", "check")
            ready: JsonObject = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            await set_status(client, "Pod", "check", ready)
            assert not await exists(client, "ConfigMap", "a")
            await set_status(client, "Pod", "check", {"phase": "Succeeded"})
        assert ended == [Outcome.INSTALLED]
        assert await exists(client, "ConfigMap", "a")


@pytest.mark.parametrize("policy", ["", "hook-failed"])
async def test_a_job_that_fails_ends_the_upgrade(policy: str, autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, open_engine(client) as engine:
        async with upgrading(client, engine, with_hooks(hook("migrate", "pre-install", "Job", policy=policy))) as ended:
            await set_status(client, "Job", "migrate", job_condition("Failed", "BackoffLimitExceeded"))
        (error,) = ended
        assert isinstance(error, HookFailedError)
        assert str(error) == "pre-install hook Job migrate failed: BackoffLimitExceeded"
        assert error.transient
        assert await exists(client, "Job", "migrate") is (policy == "")
        assert not await exists(client, "ConfigMap", "a")
        (record,) = await engine.history("web", "default")
        assert record.status is ReleaseStatus.FAILED


async def test_a_deleted_job_ends_the_upgrade(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, open_engine(client) as engine:
        async with upgrading(client, engine, with_hooks(hook("migrate", "pre-install", "Job"))) as ended:
            await client.delete(await key_of(client, "Job", "migrate"))
        assert [str(error) for error in ended] == [
            "pre-install hook Job migrate failed: the object was deleted before it was done"
        ]


async def test_a_cancelled_hook_with_a_delete_policy_is_deleted(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        runner = HookRunner(client, "default", silent)
        with trio.move_on_after(30) as scope:
            await runner.run(parse_hooks([hook("x", "test", "Job", policy="hook-failed")]), HookEvent.TEST)
        assert scope.cancelled_caught
        assert not await exists(client, "Job", "x")


async def test_delete_hooks_run_around_an_uninstall(autojump_clock: MockClock) -> None:
    async with memory_cluster(simulate=True) as client, open_engine(client) as engine:
        hooks = [hook("before", "pre-delete", "Job"), hook("after", "post-delete", "Job", policy="hook-succeeded")]
        await engine.upgrade(with_hooks(*hooks))
        with trio.fail_after(600):
            done = await engine.uninstall("web", "default")
        assert done.deleted == (key("a"),)
        assert await exists(client, "Job", "before")
        assert not await exists(client, "Job", "after")
        assert await engine.history("web", "default") == []


async def test_unreadable_hooks_stop_the_uninstall(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, open_engine(client) as engine:
        await engine.upgrade(with_hooks())
        secret = ObjectKey(await client.resource_type("v1", "Secret"), "default", "sh.helm.release.v1.web.v1")
        (record,) = await engine.history("web", "default")
        broken = replace(record, document={**record.document, "hooks": [{"manifest": "a: ["}]})
        await client.delete(secret)
        await ReleaseStore(client, utc_now).create(broken)
        with pytest.raises(ReleaseError, match="check `helm get hooks`"):
            await engine.uninstall("web", "default")


# -- faults


@pytest.mark.parametrize("lost", [False, True])
async def test_every_request_of_a_hook_may_fail_once(lost: bool, autojump_clock: MockClock) -> None:
    """A run of a hook deletes the old object, and creates and deletes a new one. Any of these requests may fail once."""
    hooks = parse_hooks([hook("x", "test", policy="before-hook-creation,hook-succeeded")])
    async with cluster() as (client, transport):
        await client.create(config_map_object("x"))
        transport.requests.clear()
        await HookRunner(client, "default", silent).run(hooks, HookEvent.TEST)
        total = len(transport.requests)
        assert total == 5
    for number in range(total):
        async with cluster() as (client, transport):
            made = await client.create(config_map_object("x"))
            if lost:
                transport.lose_answer_of = number + len(transport.requests)
            else:
                transport.fault = failing_once(number)
            await HookRunner(client, "default", silent).run(hooks, HookEvent.TEST)
            assert not await exists(client, "ConfigMap", "x"), made


async def test_a_conflict_without_another_writer_is_retried(autojump_clock: MockClock) -> None:
    hooks = parse_hooks([hook("x", "test")])
    async with cluster() as (client, transport):
        answers = [httpx.Response(409, content=b"{}")]
        transport.fault = lambda asked: answers.pop() if answers and asked.method == "POST" else None
        await HookRunner(client, "default", silent).run(hooks, HookEvent.TEST)
        assert await exists(client, "ConfigMap", "x")


def failing_once(number: int) -> Callable[[httpx.Request], Exception | None]:
    """Return a fault that breaks the request with this number, and no other request."""
    left = [number]

    def fault(asked: httpx.Request) -> Exception | None:
        if asked.url.path in {"/api", "/apis"} or {"watch", "limit"} & set(asked.url.params):
            return None
        left[0] -= 1
        return httpx.ReadError("reset") if left[0] == -1 else None

    return fault


def config_map_object(name: str) -> JsonObject:
    """Return a ConfigMap in ``default``."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
