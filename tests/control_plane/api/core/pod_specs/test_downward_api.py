"""Validation of field references of the downward API, in variables and in volumes."""

import pytest

from wharfinger.control_plane.api.core.pod_specs.downward_api import (
    ENVIRONMENT_FIELDS,
    VOLUME_FIELDS,
    field_reference_errors,
    resource_reference_errors,
)
from wharfinger.formats.json.value import JsonObject


@pytest.mark.parametrize(
    ("path", "count"),
    [
        ("metadata.name", 0),
        ("spec.host", 0),
        ("metadata.labels['a']", 0),
        ("metadata.labels['']", 2),
        ("metadata.labels", 1),
        ("['a']", 1),
        ("nothing", 1),
    ],
)
def test_field_references_in_variables_are_checked(path: str, count: int) -> None:
    reference: JsonObject = {"apiVersion": "v1", "fieldPath": path}
    assert len(field_reference_errors(reference, ENVIRONMENT_FIELDS, "p")) == count


def test_field_references_in_volumes_are_checked() -> None:
    assert field_reference_errors({"apiVersion": "v1", "fieldPath": "metadata.annotations"}, VOLUME_FIELDS, "p") == []
    assert resource_reference_errors({"resource": "limits.hugepages-2Mi", "divisor": "1Mi"}, "p", volume=False) == []
    assert len(resource_reference_errors({"resource": "limits.hugepages-2Mi", "divisor": "3"}, "p", volume=False)) == 1
