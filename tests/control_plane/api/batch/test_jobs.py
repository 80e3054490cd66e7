"""Validation of changes to Jobs."""

import pytest

from wharfinger.control_plane.api.batch.jobs import job_update_errors
from wharfinger.formats.json.value import JsonObject


def _job(affinity: JsonObject | None) -> JsonObject:
    pod: JsonObject = {"restartPolicy": "Never", "containers": [{"name": "c"}]}
    template: JsonObject = {"spec": pod if affinity is None else {**pod, "affinity": affinity}}
    status: JsonObject = {"conditions": [{"type": "Suspended", "status": "True"}]}
    return {"metadata": {"name": "j"}, "spec": {"suspend": True, "template": template}, "status": status}


@pytest.mark.parametrize(
    ("affinity", "refused"),
    [(None, False), ({"nodeAffinity": {"b": 2}}, False), ({"podAffinity": {"c": 3}}, True)],
)
def test_only_the_node_affinity_of_a_suspended_job_may_change(affinity: JsonObject | None, refused: bool) -> None:
    errors = job_update_errors(_job(affinity), _job({"nodeAffinity": {"a": 1}}))
    assert ("spec.template.spec" in [error.field for error in errors]) is refused
