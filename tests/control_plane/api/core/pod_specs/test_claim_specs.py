"""Validation of the data sources and the storage sizes of PersistentVolumeClaims."""

from wharfinger.control_plane.api.core.pod_specs.claim_specs import claim_spec_errors, claim_spec_warnings
from wharfinger.formats.json.value import JsonObject


def test_invalid_claim_sources_are_reported() -> None:
    spec: JsonObject = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "dataSource": {"kind": "Odd", "name": "a", "apiGroup": "A_"},
        "dataSourceRef": {"kind": "Odd", "name": "", "namespace": "X_"},
    }
    fields = [error.field for error in claim_spec_errors(spec, "s")]
    assert fields == [
        "s.dataSource.apiGroup",
        "s.dataSourceRef.name",
        "s.dataSourceRef",
        "s.dataSourceRef.namespace",
        "s",
    ]
    matching: JsonObject = spec | {"dataSource": {"kind": "PersistentVolumeClaim", "name": "a"}}
    matching["dataSourceRef"] = {"kind": "PersistentVolumeClaim", "name": "b"}
    assert str(claim_spec_errors(matching, "s")[0]).endswith("must match dataSourceRef")


def test_fractional_byte_values_cause_a_warning() -> None:
    assert claim_spec_warnings({"resources": {"limits": {"storage": "1500m"}}}, "s") == [
        's.resources.limits[storage]: fractional byte value "1500m" is invalid, must be an integer'
    ]
