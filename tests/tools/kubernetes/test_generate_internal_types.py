"""The generator of internal_types.json. It reads the structs in Go files."""

import pytest

from tools.kubernetes import generate_internal_types
from tools.kubernetes.generate_internal_types import Sources, Table

INTERNAL = """
type PodTemplateSpec struct {
	metav1.ObjectMeta
	// a comment
	Spec PodSpec
}
type PodSpec struct {
	VolumeSource
	Name Named
	Limits ResourceList
	Since *metav1.Time
}
type VolumeSource struct {
	NFS *int32
}
type PersistentVolumeClaimSpec struct {
}
type PersistentVolumeSpec struct {
}
type ServiceSpec struct {
}
type Named string
type ResourceList map[ResourceName]resource.Quantity
"""
API = """
type PodSpec struct {
	VolumeSource `json:",inline"`
	Name Named `json:"theName,omitempty" protobuf:"x"`
}
type VolumeSource struct {
	NFS *int32 `json:"nfs"`
}
"""
META = """
type ObjectMeta struct {
	Labels map[string]string `json:"labels,omitempty"`
}
"""


def test_go_files_become_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate_internal_types, "ROOTS", ("core.PodTemplateSpec",))
    table = Table({"core": Sources("core", INTERNAL)}, {"core": Sources("v1", API)}, Sources("metav1", META)).build()
    assert set(table) == {"core.PodTemplateSpec", "core.PodSpec", "metav1.ObjectMeta"}
    assert table["core.PodTemplateSpec"] == [["+", "metadata", "metav1.ObjectMeta"], ["Spec", "spec", "core.PodSpec"]]
    assert table["core.PodSpec"] == [
        ["NFS", "nfs", "*int"],
        ["Name", "theName", "string"],
        ["Limits", "limits", "{}quantity"],
        ["Since", "since", "*time"],
    ]
    assert table["metav1.ObjectMeta"] == [["labels?", "labels", "{}string"]]
