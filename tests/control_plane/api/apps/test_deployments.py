"""Validation of the statuses and the rollbacks of Deployments."""

from wharfinger.control_plane.api.apps.deployments import collision_errors, deployment_errors, deployment_status_errors
from wharfinger.formats.json.value import JsonObject


def test_inconsistent_status_counts_are_refused() -> None:
    old: JsonObject = {"status": {"collisionCount": 2}}
    assert len(collision_errors({"status": {}}, old)) == 1
    assert len(collision_errors({"status": {"collisionCount": 1}}, old)) == 1
    assert not collision_errors({"status": {"collisionCount": 1}}, {})
    status: JsonObject = {"replicas": 1, "readyReplicas": 1, "availableReplicas": 2}
    assert len(deployment_status_errors({"status": status}, {})) == 2


def test_a_negative_rollback_revision_is_refused() -> None:
    obj: JsonObject = {"metadata": {"annotations": {"deprecated.deployment.rollback.to": "-1"}}, "spec": {}}
    assert "spec.rollback.version" in [error.field for error in deployment_errors(obj)]
