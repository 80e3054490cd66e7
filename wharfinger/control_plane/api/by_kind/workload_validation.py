"""The validation of workloads: apps, batch, autoscaling, policy, and the core kinds with pod templates."""

from typing import Final

from wharfinger.control_plane.api.apps.daemon_sets import (
    daemon_set_errors,
    daemon_set_status_errors,
    daemon_set_update_errors,
)
from wharfinger.control_plane.api.apps.deployments import (
    deployment_errors,
    deployment_status_errors,
    replica_set_errors,
    replica_set_status_errors,
    replication_controller_errors,
    selector_immutable,
)
from wharfinger.control_plane.api.apps.revisions import revision_errors, revision_update_errors
from wharfinger.control_plane.api.apps.stateful_sets import (
    stateful_set_errors,
    stateful_set_status_errors,
    stateful_set_update_errors,
)
from wharfinger.control_plane.api.autoscaling.validation import (
    autoscaler_errors,
    autoscaler_status_errors,
    autoscaler_update_errors,
)
from wharfinger.control_plane.api.batch.cron_jobs import cron_job_errors, cron_job_update_errors
from wharfinger.control_plane.api.batch.job_status import job_status_errors
from wharfinger.control_plane.api.batch.jobs import job_errors, job_update_errors
from wharfinger.control_plane.api.by_kind.workload_warnings import (
    controller_warnings,
    cron_job_warnings,
    job_warnings,
    named_template_warnings,
    pod_template_kind_warnings,
    stateful_set_warnings,
    template_warnings,
)
from wharfinger.control_plane.api.core.pod_specs.validation import pod_template_errors
from wharfinger.control_plane.api.policy.disruption_budgets import (
    budget_errors,
    budget_status_errors,
    budget_update_errors,
)
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, find_object


def _pod_template_errors(obj: JsonObject) -> list[FieldError]:
    return pod_template_errors(find_object(obj, "template"), "template")


WORKLOAD_RULES: Final[dict[str, Rules]] = {
    "ControllerRevision.apps": Rules(create=revision_errors, update=revision_update_errors),
    "CronJob.batch": Rules(create=cron_job_errors, update=cron_job_update_errors, warnings=cron_job_warnings),
    "DaemonSet.apps": Rules(
        create=daemon_set_errors,
        update=daemon_set_update_errors,
        status=daemon_set_status_errors,
        warnings=template_warnings,
    ),
    "Deployment.apps": Rules(
        create=deployment_errors,
        update=lambda new, old: deployment_errors(new) + selector_immutable(new, old),
        status=deployment_status_errors,
        warnings=named_template_warnings,
    ),
    "HorizontalPodAutoscaler.autoscaling": Rules(
        create=autoscaler_errors, update=autoscaler_update_errors, status=autoscaler_status_errors
    ),
    "Job.batch": Rules(create=job_errors, update=job_update_errors, status=job_status_errors, warnings=job_warnings),
    "PodDisruptionBudget.policy": Rules(create=budget_errors, update=budget_update_errors, status=budget_status_errors),
    "PodTemplate": Rules(
        create=_pod_template_errors,
        update=lambda new, _old: _pod_template_errors(new),
        warnings=pod_template_kind_warnings,
    ),
    "ReplicaSet.apps": Rules(
        create=replica_set_errors,
        update=lambda new, old: replica_set_errors(new) + selector_immutable(new, old),
        status=replica_set_status_errors,
        warnings=named_template_warnings,
    ),
    "ReplicationController": Rules(
        create=replication_controller_errors,
        update=lambda new, _old: replication_controller_errors(new),
        status=replica_set_status_errors,
        warnings=controller_warnings,
    ),
    "StatefulSet.apps": Rules(
        create=stateful_set_errors,
        update=stateful_set_update_errors,
        status=stateful_set_status_errors,
        warnings=stateful_set_warnings,
    ),
}
