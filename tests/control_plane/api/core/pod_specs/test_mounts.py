"""Validation of the mounts and the block devices of containers."""

from wharfinger.control_plane.api.core.pod_specs.mounts import mount_errors
from wharfinger.formats.json.value import JsonObject

CLAIM: JsonObject = {"name": "p", "persistentVolumeClaim": {"claimName": "c"}}


def test_a_volume_cannot_be_both_device_and_mount() -> None:
    container: JsonObject = {
        "volumeMounts": [{"name": "p", "mountPath": "/a"}],
        "volumeDevices": [{"name": "p", "devicePath": "/a"}],
    }
    assert len(mount_errors(container, {"p": CLAIM}, "c")) == 4
    assert mount_errors({"volumeDevices": [{"name": "p", "devicePath": "/dev/a"}]}, {"p": CLAIM}, "c") == []


def test_valid_mounts_are_accepted() -> None:
    mount: JsonObject = {
        "name": "p",
        "mountPath": "/a",
        "mountPropagation": "Bidirectional",
        "recursiveReadOnly": "Disabled",
    }
    container: JsonObject = {"securityContext": {"privileged": True}, "volumeMounts": [mount]}
    assert mount_errors(container, {"p": CLAIM}, "c") == []
