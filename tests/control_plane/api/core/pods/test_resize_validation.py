"""Validation of Pod resizes, in cases that no recording of a real API server covers."""

import pytest

from tests.control_plane.support.pod_samples import pod_of
from wharfinger.control_plane.api.core.pods.resize_validation import resize_errors
from wharfinger.formats.json.value import JsonObject


def sized(cpu: str, **more: str) -> JsonObject:
    return pod_of(resources={"requests": {"cpu": cpu, **more}})


@pytest.mark.parametrize(
    ("new", "old", "count"),
    [
        (sized("2"), sized("1"), 0),
        (sized("2", memory="1Gi"), sized("1"), 0),
        (sized("1"), sized("1", memory="1Gi"), 1),
        (pod_of(resources={"limits": {"cpu": "1"}}), sized("1"), 0),
        (pod_of({"name": "b", "image": "i"}), pod_of(), 1),
    ],
)
def test_a_resize_changes_only_resource_amounts(new: JsonObject, old: JsonObject, count: int) -> None:
    assert len(resize_errors(new, old)[0]) == count


def test_resizes_on_windows_or_unsupported_nodes_are_refused() -> None:
    windows = pod_of(os={"name": "windows"})
    assert resize_errors(windows, windows)[1]
    running: JsonObject = {**pod_of(), "status": {"containerStatuses": [{"name": "a", "state": {"running": {}}}]}}
    assert [error.field for error in resize_errors(pod_of(), running)[0]] == ["spec"]


def test_init_containers_cannot_be_resized() -> None:
    policy: JsonObject = {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}
    old = pod_of(initContainers=[{"name": "i", "image": "i", "resources": {"requests": {"cpu": "1"}}, **policy}])
    new = pod_of(initContainers=[{"name": "i", "image": "j", "resources": {"requests": {"cpu": "2"}}, **policy}])
    assert [error.field for error in resize_errors(new, old)[0]] == ["spec.initContainers[0]"] * 2
