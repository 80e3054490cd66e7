"""Admission of Pod resizes. A resize is refused if the Pod's node is unsuitable or unknown."""

import pytest

from tests.control_plane.support.pod_writes import backend, write
from wharfinger.control_plane.api.core.pods.resize_admission import check_node_features, check_node_size
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import JsonObject

ROOM: JsonObject = {"cpu": "2", "memory": "1Gi"}


def pod(cpu: str, node: str = "n", **spec: JsonObject) -> JsonObject:
    container: JsonObject = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": "p"}, "spec": {"nodeName": node, "containers": [container], **spec}}


def node(system: str = "linux", **status: JsonObject) -> JsonObject:
    return {
        "metadata": {"name": "n", "labels": {"kubernetes.io/os": system}},
        "status": {"allocatable": ROOM, **status},
    }


@pytest.mark.parametrize(
    ("cpu", "there", "why"),
    [
        ("2", node(), ""),
        ("3", node(), "node didn't have enough allocatable resources: cpu, requested: 3000, allocatable: 2000"),
        ("1", node("windows"), 'pod resize is only supported on linux nodes, node "n" is "windows"'),
        ("1", {"metadata": {"name": "other"}}, 'node "n" not found'),
    ],
)
def test_a_resize_must_fit_a_linux_node(cpu: str, there: JsonObject, why: str) -> None:
    admission = write(backend(("", "nodes", there)), pod(cpu), pod("500m"), below="resize")
    if not why:
        check_node_size(admission)
        return
    with pytest.raises(StatusError) as caught:
        check_node_size(admission)
    assert caught.value.message.endswith(f"is forbidden: {why}")


def test_a_resize_of_pod_resources_needs_a_node_feature() -> None:
    whole: JsonObject = {"requests": {"cpu": "1"}}
    new, old = pod("1", resources=whole), pod("1")
    able = node()
    able["status"] = {"declaredFeatures": ["InPlacePodLevelResourcesVerticalScaling"]}
    check_node_features(write(backend(("", "nodes", able)), new, old, below="resize"))
    with pytest.raises(StatusError, match="requires features InPlacePodLevelResourcesVerticalScaling which are not"):
        check_node_features(write(backend(("", "nodes", node())), new, old, below="resize"))


@pytest.mark.parametrize(
    ("new", "below"), [(pod("9", "simulated"), "resize"), (pod("9", ""), "resize"), (pod("9"), "")]
)
def test_other_requests_are_not_checked(new: JsonObject, below: str) -> None:
    admission = write(backend(), new, pod("1"), below=below)
    check_node_size(admission)
    check_node_features(admission)
