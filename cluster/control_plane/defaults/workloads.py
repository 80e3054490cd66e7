"""Defaults of workloads: apps, batch, autoscaling, and what is made of pod templates."""

from collections.abc import Callable, Mapping
from typing import Final

from wharfinger.cluster.control_plane.defaults.core import default_claim
from wharfinger.cluster.control_plane.defaults.filling import fill, inner, objects
from wharfinger.cluster.control_plane.defaults.pods import default_pod_template
from wharfinger.formats.json_value import JsonObject, find


def _deployment(obj: JsonObject) -> None:
    spec = inner(obj, "spec")
    default_pod_template(inner(spec, "template"))
    fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = inner(spec, "strategy")
    fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(inner(strategy, "rollingUpdate"), maxUnavailable="25%", maxSurge="25%")


def _stateful_set(obj: JsonObject) -> None:
    spec = inner(obj, "spec")
    default_pod_template(inner(spec, "template"))
    fill(spec, podManagementPolicy="OrderedReady", replicas=1, revisionHistoryLimit=10)
    fill(inner(spec, "persistentVolumeClaimRetentionPolicy"), whenDeleted="Retain", whenScaled="Retain")
    strategy = inner(spec, "updateStrategy")
    fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(inner(strategy, "rollingUpdate"), partition=0)
    for claim in objects(spec, "volumeClaimTemplates"):
        fill(claim, apiVersion="v1", kind="PersistentVolumeClaim")
        fill(inner(claim, "status"), phase="Pending")
        default_claim(claim)


def _daemon_set(obj: JsonObject) -> None:
    spec = inner(obj, "spec")
    default_pod_template(inner(spec, "template"))
    fill(spec, revisionHistoryLimit=10)
    strategy = inner(spec, "updateStrategy")
    fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(inner(strategy, "rollingUpdate"), maxUnavailable=1, maxSurge=0)


def _replica_set(obj: JsonObject) -> None:
    spec = inner(obj, "spec")
    default_pod_template(inner(spec, "template"))
    fill(spec, replicas=1)


def _replication_controller(obj: JsonObject) -> None:
    spec = inner(obj, "spec")
    fill(spec, replicas=1)
    labels = find(spec, "template", "metadata", "labels")
    if isinstance(spec.get("template"), dict):
        default_pod_template(inner(spec, "template"))
    if isinstance(labels, dict):
        fill(spec, selector=dict(labels))
        fill(inner(obj, "metadata"), labels=dict(labels))


def _pod_template(obj: JsonObject) -> None:
    default_pod_template(inner(obj, "template"))


def _job(obj: JsonObject) -> None:
    spec = inner(obj, "spec")
    default_pod_template(inner(spec, "template"))
    labels = find(spec, "template", "metadata", "labels")
    if isinstance(labels, dict):
        fill(inner(obj, "metadata"), labels=dict(labels))
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    limit = 6 if spec.get("backoffLimitPerIndex") is None else 2**31 - 1
    replacement = "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed"
    fill(spec, parallelism=1, backoffLimit=limit, completionMode="NonIndexed", suspend=False)
    fill(spec, podReplacementPolicy=replacement, manualSelector=spec.get("manualSelector") or False)


def _cron_job(obj: JsonObject) -> None:
    spec = inner(obj, "spec")
    default_pod_template(inner(inner(inner(spec, "jobTemplate"), "spec"), "template"))
    fill(spec, concurrencyPolicy="Allow", suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)


def _autoscaler(obj: JsonObject) -> None:
    spec = inner(obj, "spec")
    fill(spec, minReplicas=1)
    if obj.get("apiVersion") == "autoscaling/v2" and not spec.get("metrics"):
        target: JsonObject = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


WORKLOAD_DEFAULTS: Final[Mapping[tuple[str, str], Callable[[JsonObject], None]]] = {
    ("", "PodTemplate"): _pod_template,
    ("", "ReplicationController"): _replication_controller,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("autoscaling", "HorizontalPodAutoscaler"): _autoscaler,
    ("batch", "CronJob"): _cron_job,
    ("batch", "Job"): _job,
}
