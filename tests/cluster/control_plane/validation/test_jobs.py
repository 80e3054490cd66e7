"""Changes of Jobs."""

from wharfinger.cluster.control_plane.validation.jobs import job_update_errors


def test_affinity_of_a_suspended_job_may_change_for_nodes_only() -> None:
    template = {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c"}], "affinity": {"nodeAffinity": {"a": 1}}}
    }
    status = {"conditions": [{"type": "Suspended", "status": "True"}]}
    old = {"metadata": {"name": "j"}, "spec": {"suspend": True, "template": template}, "status": status}
    fields = []
    for affinity in (None, {"nodeAffinity": {"b": 2}}, {"podAffinity": {"c": 3}}):
        pod = {**template["spec"], "affinity": affinity}
        new = {**old, "spec": {"suspend": True, "template": {"spec": {k: v for k, v in pod.items() if v is not None}}}}
        fields.append("spec.template.spec" in [error.field for error in job_update_errors(new, old)])
    assert fields == [False, False, True]
