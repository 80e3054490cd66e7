"""Jobs: success and failure, parallel and indexed Pods, and suspension."""

import pytest
import trio
from trio.testing import MockClock

from tests.control_plane.support.controller_harness import conditions_of, job, key, listed, look, open_cluster, settle
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.formats.json.value import JsonObject, find

FAIL: JsonObject = {"wharfinger.dev/fail": "true"}
SLOW: JsonObject = {"wharfinger.dev/ready-after": "30"}
NEVER: JsonObject = {"wharfinger.dev/never-ready": "true"}


async def seen(client: ClusterClient, name: str = "j") -> JsonObject:
    found = await look(client, "batch/v1", "Job", name)
    assert found is not None
    return found


async def test_a_job_completes_after_all_completions(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(job("j", completions=3, parallelism=2))
        await settle()
        found = await seen(client)
        assert (find(found, "status", "succeeded"), find(found, "status", "active")) == (3, None)
        assert conditions_of(found) == {
            "SuccessCriteriaMet": ("True", "CompletionsReached"),
            "Complete": ("True", "CompletionsReached"),
        }
        pods = await listed(client, "v1", "Pod")
        assert [find(pod, "status", "phase") for pod in pods] == ["Succeeded"] * 3
        assert [find(pod, "metadata", "finalizers") for pod in pods] == [None] * 3


@pytest.mark.parametrize("restart", ["Never", "OnFailure"])
async def test_a_job_fails_beyond_its_backoff_limit(restart: str, autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(job("j", FAIL, restart=restart, backoffLimit=2))
        await settle()
        found = await seen(client)
        assert conditions_of(found)["Failed"] == ("True", "BackoffLimitExceeded")
        assert find(found, "status", "failed") == (3 if restart == "Never" else 1)
        pods = await listed(client, "v1", "Pod")
        assert [find(pod, "status", "phase") for pod in pods] == (["Failed"] * 3 if restart == "Never" else [])


async def test_a_job_ends_at_its_deadline_and_is_deleted_after_its_ttl(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(job("j", NEVER, activeDeadlineSeconds=20, ttlSecondsAfterFinished=30))
        await settle()
        assert find(await seen(client), "status", "ready") == 1
        await settle(20)
        assert conditions_of(await seen(client))["Failed"] == ("True", "DeadlineExceeded")
        assert await listed(client, "v1", "Pod") == []
        await settle(30)
        assert await look(client, "batch/v1", "Job", "j") is None


async def test_a_client_observes_the_end_of_a_job_with_a_ttl_of_zero(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(job("j", {}, ttlSecondsAfterFinished=0))
        await trio.sleep(1)
        assert conditions_of(await seen(client))["Complete"][0] == "True"
        await settle(3)
        assert await look(client, "batch/v1", "Job", "j") is None


async def test_a_suspended_job_has_no_pods(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(job("j", SLOW))
        await settle()
        where = await key(client, "batch/v1", "Job", "j")
        await client.merge_patch(where, {"spec": {"suspend": True}})
        await settle()
        found = await seen(client)
        assert conditions_of(found)["Suspended"] == ("True", "JobSuspended")
        assert find(found, "status", "startTime") is None
        assert await listed(client, "v1", "Pod") == []
        await client.merge_patch(where, {"spec": {"suspend": False}})
        await trio.sleep(40)
        found = await seen(client)
        assert conditions_of(found)["Suspended"] == ("False", "JobResumed")
        assert conditions_of(found)["Complete"][0] == "True"


async def test_indexed_jobs_create_a_pod_for_each_index(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(job("j", completions=4, parallelism=3, completionMode="Indexed"))
        await settle()
        assert find(await seen(client), "status", "completedIndexes") == "0-3"
        pods = await listed(client, "v1", "Pod")
        numbers = [find(pod, "metadata", "labels", "batch.kubernetes.io/job-completion-index") for pod in pods]
        assert numbers == ["0", "1", "2", "3"]
        assert find(pods[2], "spec", "hostname") == "j-2"


async def test_a_work_queue_job_completes_without_completions(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(job("j", parallelism=3, completions=None))
        await settle()
        assert conditions_of(await seen(client))["Complete"][0] == "True"


async def test_deleted_pods_of_a_job_are_replaced(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(job("j", SLOW))
        await settle()
        (before,) = await listed(client, "v1", "Pod")
        await client.delete(await key(client, "v1", "Pod", str(find(before, "metadata", "name"))))
        await settle()
        (after,) = await listed(client, "v1", "Pod")
        assert find(before, "metadata", "uid") != find(after, "metadata", "uid")


async def test_pods_are_deleted_with_their_job(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(job("j", SLOW, parallelism=2))
        await settle()
        await client.delete(await key(client, "batch/v1", "Job", "j"))
        await settle()
        assert await listed(client, "v1", "Pod") == []


async def test_jobs_of_another_controller_are_ignored(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(job("j", managedBy="example.com/other"))
        await settle()
        assert find(await seen(client), "status") in ({}, None)
