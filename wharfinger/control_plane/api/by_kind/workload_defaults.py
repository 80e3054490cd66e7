"""The defaults of workloads: apps, batch, autoscaling, and core kinds with pod templates."""

from collections.abc import Callable, Mapping
from typing import Final

from wharfinger.control_plane.api.autoscaling.defaults import default_autoscaler
from wharfinger.control_plane.api.common.filling import fill, fill_absent, inner, objects
from wharfinger.control_plane.api.core.defaults import default_claim
from wharfinger.control_plane.api.core.pod_specs.defaults import default_pod_template
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.kube.go_texts import read_number

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


def _deployment(obj: JsonObject) -> None:
    spec = inner(obj, "spec")
    default_pod_template(inner(spec, "template"))
    fill_absent(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = inner(spec, "strategy")
    fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill_absent(inner(strategy, "rollingUpdate"), maxUnavailable="25%", maxSurge="25%")


def _stateful_set(obj: JsonObject) -> None:
    spec = inner(obj, "spec")
    default_pod_template(inner(spec, "template"))
    fill(spec, podManagementPolicy="OrderedReady")
    fill_absent(spec, replicas=1, revisionHistoryLimit=10)
    fill(inner(spec, "persistentVolumeClaimRetentionPolicy"), whenDeleted="Retain", whenScaled="Retain")
    strategy = inner(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        inner(strategy, "rollingUpdate")
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == "RollingUpdate" and isinstance(rolling, dict):
        fill_absent(rolling, partition=0)
    for claim in objects(spec, "volumeClaimTemplates"):
        claim.update(apiVersion="v1", kind="PersistentVolumeClaim")
        fill(inner(claim, "status"), phase="Pending")
        default_claim(claim)


def _daemon_set(obj: JsonObject) -> None:
    """Set the defaults of a DaemonSet.

    The number of template changes is a field of the server's internal type; every API version shows it as an annotation.
    """
    spec = inner(obj, "spec")
    annotations = inner(inner(obj, "metadata"), "annotations")
    found = annotations.get(TEMPLATE_GENERATION, "0")
    number, problem = read_number(found, signed=True) if isinstance(found, str) else (0, "none")
    annotations[TEMPLATE_GENERATION] = found if problem else str(number)
    default_pod_template(inner(spec, "template"))
    fill_absent(spec, revisionHistoryLimit=10)
    strategy = inner(spec, "updateStrategy")
    fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill_absent(inner(strategy, "rollingUpdate"), maxUnavailable=1, maxSurge=0)
    if isinstance(rolling := strategy.get("rollingUpdate"), dict):  # the server's internal type cannot leave them unset
        fill_absent(rolling, maxUnavailable=0, maxSurge=0)


def _replica_set(obj: JsonObject) -> None:
    spec = inner(obj, "spec")
    default_pod_template(inner(spec, "template"))
    fill_absent(spec, replicas=1)


def _replication_controller(obj: JsonObject) -> None:
    spec = inner(obj, "spec")
    fill_absent(spec, replicas=1)
    if not isinstance(spec.get("template"), dict):
        return
    default_pod_template(inner(spec, "template"))
    labels = find(spec, "template", "metadata", "labels")
    if isinstance(labels, dict) and labels:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        if not find(obj, "metadata", "labels"):
            inner(obj, "metadata")["labels"] = dict(labels)


def _pod_template(obj: JsonObject) -> None:
    default_pod_template(inner(obj, "template"))


def _job(obj: JsonObject) -> None:
    spec = inner(obj, "spec")
    _job_spec(spec)
    labels = find(spec, "template", "metadata", "labels")
    if isinstance(labels, dict) and labels and not find(obj, "metadata", "labels"):
        inner(obj, "metadata")["labels"] = labels  # shared with the template: labels generated later appear in both
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    limit = 6 if spec.get("backoffLimitPerIndex") is None else 2**31 - 1
    replacement = "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed"
    fill_absent(spec, parallelism=1, backoffLimit=limit, completionMode="NonIndexed", suspend=False)
    fill_absent(spec, podReplacementPolicy=replacement, manualSelector=False)


def _job_spec(spec: JsonObject) -> None:
    """Set the defaults that a Job and the Job of a CronJob share."""
    default_pod_template(inner(spec, "template"))
    for rule in objects(spec, "podFailurePolicy", "rules"):
        for pattern in objects(rule, "onPodConditions"):
            fill(pattern, status="True")


def _cron_job(obj: JsonObject) -> None:
    spec = inner(obj, "spec")
    _job_spec(inner(inner(spec, "jobTemplate"), "spec"))
    fill(spec, concurrencyPolicy="Allow")
    fill_absent(spec, suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)


WORKLOAD_DEFAULTS: Final[Mapping[tuple[str, str], Callable[[JsonObject], None]]] = {
    ("", "PodTemplate"): _pod_template,
    ("", "ReplicationController"): _replication_controller,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("autoscaling", "HorizontalPodAutoscaler"): default_autoscaler,
    ("batch", "CronJob"): _cron_job,
    ("batch", "Job"): _job,
}
