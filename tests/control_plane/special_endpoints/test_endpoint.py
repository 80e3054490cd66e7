from wharfinger.control_plane.catalog.catalog import Catalog
from wharfinger.control_plane.special_endpoints.endpoint import endpoint_name


def test_endpoints_are_registered_by_kind_and_subresource() -> None:
    served = Catalog().find("", "v1", "pods")

    assert served is not None
    assert endpoint_name(served, "") == "Pod"
    assert endpoint_name(served, "eviction") == "Pod/eviction"
