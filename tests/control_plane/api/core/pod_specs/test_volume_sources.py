"""Validation of the sources of volumes. Recordings of a real API server cover most errors."""

import pytest

from wharfinger.control_plane.api.core.pod_specs.volume_sources import SOURCES, driver_errors
from wharfinger.formats.json.value import JsonObject


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("iscsi", {"targetPortal": "p", "iqn": "iqn.2001-04.com.example:x", "initiatorName": "naa." + "1" * 32}),
        ("iscsi", {"targetPortal": "p", "iqn": "eui." + "a" * 16}),
        ("flocker", {"datasetName": "a"}),
        ("quobyte", {"registry": "a:1,[::1]:2", "volume": "v"}),
        ("fc", {"targetWWNs": ["a"], "lun": 3}),
        ("flexVolume", {"driver": "d", "options": {"a/b": "c"}}),
        ("azureDisk", {"diskName": "d", "diskURI": "/subscriptions/x", "kind": "Managed"}),
        ("storageos", {"volumeName": "v", "secretRef": {"name": "s"}}),
        ("csi", {"driver": "d.example.com", "nodePublishSecretRef": {"name": "s"}}),
        ("emptyDir", {"sizeLimit": "1Gi"}),
        ("cinder", {"volumeID": "v"}),
        ("gcePersistentDisk", {"pdName": "p", "partition": 255}),
        ("nfs", {"server": "s", "path": "/"}),
        ("hostPath", {"path": "/a", "type": "File"}),
    ],
)
def test_valid_volume_sources_are_accepted(kind: str, source: JsonObject) -> None:
    assert SOURCES[kind](source, "p") == []


def test_long_driver_names_are_refused() -> None:
    assert len(driver_errors("a" * 64, "p")) == 1
