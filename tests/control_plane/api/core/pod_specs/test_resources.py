"""Validation of container resources: their names, huge pages, and claims."""

import pytest

from wharfinger.control_plane.api.core.pod_specs.resources import (
    is_extended,
    overcommits,
    pod_resource_name_errors,
    quantity_errors,
    resource_errors,
)
from wharfinger.formats.json.value import JsonObject


@pytest.mark.parametrize(
    ("resources", "count"),
    [
        ({"limits": {"cpu": "1", "hugepages-2Mi": "4Mi"}}, 0),
        ({"limits": {"hugepages-2Mi": "4Mi"}}, 1),
        ({"limits": {"hugepages-x": "1", "cpu": "1"}}, 1),
        ({"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}, "requests": {"hugepages-2Mi": "3Mi"}}, 2),
        ({"claims": [{"name": "c", "request": "r"}, {"name": "c", "request": "r"}]}, 1),
        ({"claims": [{"name": "c", "request": "r"}, {"name": "c"}]}, 1),
    ],
)
def test_invalid_container_resources_are_reported(resources: JsonObject, count: int) -> None:
    assert len(resource_errors(resources, "r", {"c"})) == count


def test_resource_names_are_classified() -> None:
    assert is_extended("example.com/gpu")
    assert not is_extended("cpu")
    assert not overcommits("hugepages-2Mi")
    assert pod_resource_name_errors("cpu", "p") == []
    assert len(pod_resource_name_errors("a b", "p")) == 1
    assert len(pod_resource_name_errors("storage", "p")) == 1
    assert len(quantity_errors("pods", "-500m", "p")) == 2
