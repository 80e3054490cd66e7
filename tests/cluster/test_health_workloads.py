"""DaemonSets and Jobs are observed, and every change of their messages is reported.

Weakness 16 in ``tests/spec_weaknesses.py`` must not occur: a similar project reported only changes of the state, and did not
watch DaemonSets and Jobs.
"""

from typing import Final

import pytest
import trio
from trio.testing import MockClock

from tests.cluster.support.clusters import memory_cluster
from tests.cluster.support.health_setup import health_setup, row
from wharfinger.cluster.health.monitor import QUIET_S
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import ObjectKey, ResourceType

DAEMON_SET: Final = ResourceType("apps", "v1", "DaemonSet", "daemonsets", namespaced=True)
JOB: Final = ResourceType("batch", "v1", "Job", "jobs", namespaced=True)


@pytest.mark.parametrize(
    ("resource", "spec", "steps", "expected"),
    [
        (
            DAEMON_SET,
            {"selector": {"matchLabels": {"app": "one"}}},
            [
                {"observedGeneration": 1, "desiredNumberScheduled": 2, "updatedNumberScheduled": 1},
                {"updatedNumberScheduled": 2, "numberAvailable": 1},
                {"numberAvailable": 2},
                {"numberAvailable": 0},
            ],
            [
                "web Reconciling (one: not observed by its controller yet)",
                "web Reconciling (one: 1 of 2 pods updated)",
                "web Reconciling (one: 1 of 2 pods available)",
                "web Current",
                "web Reconciling (one: 0 of 2 pods available)",
            ],
        ),
        (
            JOB,
            {},
            [{"active": 1}, {"active": 1, "failed": 1}, {"conditions": [{"type": "FailureTarget", "status": "True"}]}],
            [
                "web Reconciling (one: 0 of 1 completions, 0 active, 0 failed)",
                "web Reconciling (one: 0 of 1 completions, 1 active, 0 failed)",
                "web Reconciling (one: 0 of 1 completions, 1 active, 1 failed)",
            ],
        ),
    ],
    ids=["DaemonSet", "Job"],
)
async def test_every_status_change_of_daemon_sets_and_jobs_is_reported(
    resource: ResourceType, spec: JsonObject, steps: list[JsonObject], expected: list[str], autojump_clock: MockClock
) -> None:
    """Each step changes the message about the object. This is reported even if the state of the release stays the same."""
    pod: JsonObject = {"containers": [{"name": "main", "image": "a"}], "restartPolicy": "Always"}
    if resource is JOB:
        pod["restartPolicy"] = "Never"
    template: JsonObject = {"metadata": {"labels": {"app": "one"}}, "spec": pod}
    one: JsonObject = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "one", "namespace": "default"},
        "spec": {**spec, "template": template},
    }
    async with memory_cluster() as client, health_setup(client) as setup:
        await setup.install(row(one, resource))
        await trio.sleep(2 * QUIET_S)
        for step in steps:
            await client.merge_patch(ObjectKey(resource, "default", "one"), {"status": step}, subresource="status")
            await trio.sleep(2 * QUIET_S)
        assert setup.take() == expected
