"""The quality-of-service classes of Pods."""

import pytest

from wharfinger.control_plane.api.core.pods.quality_of_service import quality_class
from wharfinger.formats.json.value import JsonObject

FULL: JsonObject = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "0"}}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"requests": FULL, "limits": FULL}, "Guaranteed"),
        ({"limits": FULL}, "Burstable"),
        ({"requests": FULL, "limits": {"cpu": "2", "memory": "1Gi"}}, "Burstable"),
    ],
)
def test_the_quality_class_depends_on_requests_and_limits(resources: JsonObject, expected: str) -> None:
    assert quality_class({"containers": [{"resources": resources}]}) == expected
    assert quality_class({"resources": resources, "containers": [{}]}) == expected
