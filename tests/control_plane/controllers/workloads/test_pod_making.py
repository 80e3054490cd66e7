"""Pods that controllers create from templates."""

from wharfinger.control_plane.controllers.workloads.pod_making import pod_of_template
from wharfinger.formats.json.value import JsonObject, find


def test_a_pod_has_the_metadata_and_spec_of_its_template() -> None:
    owner: JsonObject = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "n" * 80, "namespace": "x"},
    }
    template: JsonObject = {"metadata": {"labels": {"a": "b"}, "name": "dropped"}, "spec": {"containers": []}}
    pod = pod_of_template(owner, template)
    assert find(pod, "metadata", "labels") == {"a": "b"}
    assert len(str(find(pod, "metadata", "generateName"))) == 58
    assert find(pod, "metadata", "name") is None
    assert find(pod, "metadata", "ownerReferences", 0, "controller") is True
