"""Defaults of workloads, some of which depend on other fields. Defaulting a second time changes nothing."""

import pytest

from wharfinger.control_plane.api.by_kind.defaults import apply_defaults
from wharfinger.control_plane.api.by_kind.workload_defaults import WORKLOAD_DEFAULTS
from wharfinger.formats.json.value import JsonObject, find

APPS, BATCH = "apps/v1", "batch/v1"


@pytest.mark.parametrize(
    ("version", "kind", "spec", "path", "value"),
    [
        (APPS, "Deployment", {"strategy": {"type": "Recreate"}}, ("strategy",), {"type": "Recreate"}),
        (APPS, "Deployment", {}, ("strategy", "rollingUpdate", "maxSurge"), "25%"),
        (APPS, "DaemonSet", {"updateStrategy": {"type": "OnDelete"}}, ("updateStrategy",), {"type": "OnDelete"}),
        (APPS, "StatefulSet", {}, ("podManagementPolicy",), "OrderedReady"),
        (BATCH, "Job", {"parallelism": 3}, ("completions",), None),
        (BATCH, "Job", {}, ("completions",), 1),
        (BATCH, "Job", {"completionMode": "Indexed", "completions": 2, "backoffLimitPerIndex": 1}, ("backoffLimit",), 2147483647),
        (BATCH, "CronJob", {}, ("successfulJobsHistoryLimit",), 3),
        ("v1", "ReplicationController", {"template": {"metadata": {"labels": {"a": "b"}}}}, ("selector",), {"a": "b"}),
    ],
)  # fmt: skip
def test_workloads_get_defaults(
    version: str, kind: str, spec: JsonObject, path: tuple[str, ...], value: object
) -> None:
    once = apply_defaults({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": spec})

    assert find(once, "spec", *path) == value
    assert apply_defaults(once) == once


def test_every_workload_has_its_defaults() -> None:
    kinds = {kind for _, kind in WORKLOAD_DEFAULTS}
    assert {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "PodTemplate"} <= kinds
