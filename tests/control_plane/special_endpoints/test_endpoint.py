from wharfinger.control_plane.catalog.catalog import Catalog
from wharfinger.control_plane.special_endpoints.endpoint import asked_for


def test_functions_are_registered_by_kind_and_subresource() -> None:
    served = Catalog().find("", "v1", "pods")

    assert served is not None
    assert asked_for(served, "") == "Pod"
    assert asked_for(served, "eviction") == "Pod/eviction"
