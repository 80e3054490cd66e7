"""The ``scale`` subresource of an object."""

import pytest

from wharfinger.control_plane.catalog.scales import scale_of
from wharfinger.control_plane.kinds.kind import ScalePaths
from wharfinger.formats.json.value import JsonObject, find

PATHS = ScalePaths(".spec.replicas", ".status.replicas", ".spec.selector")


@pytest.mark.parametrize("obj", [{}, {"spec": {"replicas": 0}}, {"spec": {"replicas": "many"}}])
def test_zero_and_unreadable_replicas_are_omitted(obj: JsonObject) -> None:
    scale = scale_of(PATHS, obj)

    assert scale["spec"] == {}
    assert scale["status"] == {"replicas": 0}


def test_selectors_are_formatted_as_text() -> None:
    assert find(scale_of(PATHS, {"spec": {"selector": "app=x,tier in (a)"}}), "status", "selector") == (
        "app=x,tier in (a)"
    )
    without = ScalePaths(PATHS.replicas, PATHS.status_replicas, "")
    assert find(scale_of(without, {"spec": {"selector": "app=x"}}), "status", "selector") is None
