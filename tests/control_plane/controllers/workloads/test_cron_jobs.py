"""CronJobs in virtual time."""

import pytest
import trio
from trio.testing import MockClock

from tests.control_plane.support.controller_harness import job, key, listed, look, obj, open_cluster, settle
from wharfinger.control_plane.controllers.workloads.cron_jobs import STAMP
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_object


def cron(annotations: JsonObject | None = None, **spec: JsonValue) -> JsonObject:
    template: JsonObject = {"metadata": {"annotations": annotations or {}}, "spec": find_object(job("j"), "spec")}
    return obj("batch/v1", "CronJob", "c", spec={"schedule": "*/10 * * * *", "jobTemplate": template, **spec})


async def test_a_job_starts_at_each_scheduled_time_and_old_jobs_are_deleted(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(cron(successfulJobsHistoryLimit=2))
        await trio.sleep(3600 + 5)
        jobs = await listed(client, "batch/v1", "Job")
        assert [find(one, "metadata", "annotations", STAMP) for one in jobs] == [
            "2026-11-21T04:50:00Z",
            "2026-11-21T05:00:00Z",
        ]
        found = await look(client, "batch/v1", "CronJob", "c")
        assert find(found, "status", "lastScheduleTime") == "2026-11-21T05:00:00Z"
        assert find(found, "status", "lastSuccessfulTime") == "2026-11-21T05:00:00Z"
        assert find(found, "status", "active") is None


@pytest.mark.parametrize(("policy", "running"), [("Allow", 3), ("Forbid", 1), ("Replace", 1)])
async def test_the_concurrency_policy_limits_running_jobs(policy: str, running: int, autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(cron({"wharfinger.dev/never-ready": "true"}, concurrencyPolicy=policy))
        await trio.sleep(1800 + 5)
        found = await look(client, "batch/v1", "CronJob", "c")
        assert len(find_list(found, "status", "active")) == running
        assert len(await listed(client, "batch/v1", "Job")) == running


async def test_a_suspended_cron_job_starts_no_job(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(cron(suspend=True))
        await trio.sleep(3600)
        assert await listed(client, "batch/v1", "Job") == []
        where = await key(client, "batch/v1", "CronJob", "c")
        await client.merge_patch(where, {"spec": {"suspend": False}})
        await settle()
        assert len(await listed(client, "batch/v1", "Job")) == 1


async def test_jobs_are_deleted_with_their_cron_job(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(cron(timeZone="Europe/Paris"))
        await trio.sleep(700)
        assert len(await listed(client, "batch/v1", "Job")) == 1
        await client.delete(await key(client, "batch/v1", "CronJob", "c"))
        await settle()
        assert await listed(client, "batch/v1", "Job") == []
        assert await listed(client, "v1", "Pod") == []
