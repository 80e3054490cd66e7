import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.core.volumes.volume_validation import VOLUME_RULES
from wharfinger.formats.json.value import JsonObject, JsonValue


def volume(**spec: JsonValue) -> JsonObject:
    annotations = spec.pop("annotations", {})
    whole: JsonObject = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, **spec}
    return {"metadata": {"name": "a" * 60, "annotations": annotations}, "spec": whole}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"hostPath": {"path": "/"}}, ""),
        (
            {"hostPath": {"path": "/"}, "persistentVolumeReclaimPolicy": "Recycle"},
            "may not be 'recycle' for a hostPath mount",
        ),
        ({"csi": {"driver": "d", "volumeHandle": "h", "nodeStageSecretRef": {}}}, ""),
        (
            {"csi": {"driver": "d", "volumeHandle": "h", "nodePublishSecretRef": {"name": "a"}}},
            "nodePublishSecretRef.namespace",
        ),
        ({"cinder": {"volumeID": "a", "secretRef": {"name": "a"}}}, "spec.cinder.secretRef.namespace: Required"),
        (
            {"storageos": {"volumeName": "a", "secretRef": {"name": "a"}}},
            "spec.storageos.secretRef.namespace: Required",
        ),
        ({"glusterfs": {"endpoints": "a", "path": "b", "endpointsNamespace": ""}}, "if the endpointnamespace is set"),
        ({"glusterfs": {"endpoints": "a", "path": "b", "endpointsNamespace": "A_"}}, "RFC 1123 label"),
        ({"azureFile": {"secretName": "a", "shareName": "b", "secretNamespace": ""}}, "secretNamespace: Required"),
        (
            {"iscsi": {"targetPortal": "p" * 10, "iqn": "x", "initiatorName": "iqn.2026-01.a:b", "secretRef": {}}},
            "Total length of",
        ),
        ({"local": {"path": "/a"}}, "Local volume requires node affinity"),
        ({"local": {"path": "/a"}, "nodeAffinity": {}}, "must specify required node constraints"),
        ({"nfs": {"server": "a", "path": "/"}, "cephfs": {}}, "spec.cephFS: Forbidden"),
        ({"hostPath": {"path": "/a"}, "volumeAttributesClassName": ""}, "an empty string is disallowed"),
        ({"hostPath": {"path": "/a"}, "volumeAttributesClassName": "A_"}, "spec.csi: Required value"),
        ({"hostPath": {"path": "/a"}, "capacity": {"storage": "-1"}}, "must be a valid resource quantity"),
    ],
)
def test_invalid_volume_sources_are_refused(spec: JsonObject, said: str) -> None:
    errors = [str(error) for error in VOLUME_RULES.create(volume(**spec))]

    assert not errors if not said else any(said in error for error in errors)


def test_mount_option_annotations_need_a_volume_type_with_mounts() -> None:
    old: JsonObject = {"volume.beta.kubernetes.io/mount-options": "x"}

    assert len(VOLUME_RULES.create(volume(annotations=old, hostPath={"path": "/a"}))) == 1
    assert VOLUME_RULES.create(volume(annotations=old, nfs={"server": "a", "path": "/a"})) == []
    assert len(VOLUME_RULES.warnings(volume(annotations=old, rbd={}), None)) == 2


def test_forbidden_changes_of_volumes_are_refused() -> None:
    old = volume(csi={"driver": "d", "volumeHandle": "h"}, volumeAttributesClassName="a")
    grown = volume(
        csi={"driver": "d", "volumeHandle": "h", "controllerExpandSecretRef": {"name": "a", "namespace": "b"}}
    )

    assert [error.field for error in VOLUME_RULES.update(grown, old)] == ["spec.volumeAttributesClassName"]


@given(shapes("spec", "capacity", "storage", "hostPath", "csi", "nodeAffinity", "accessModes", "iscsi", "azureDisk"))
def test_arbitrary_objects_do_not_crash(obj: JsonObject) -> None:
    VOLUME_RULES.create(obj), VOLUME_RULES.update(obj, {}), VOLUME_RULES.warnings(obj, None)
