import pytest

from wharfinger.control_plane.discovery.openapi_data import document, raw_document, version_3_names
from wharfinger.formats.json.value import find_str


def test_each_group_version_has_a_document() -> None:
    names = version_3_names()

    assert {"api/v1", "apis/apps/v1", "apis/autoscaling/v2", "apis/apps", "version"} <= set(names)
    assert all(raw_document(f"v3/{name}") for name in names)


def test_a_document_is_parsed_once() -> None:
    assert find_str(document("v2"), "swagger") == "2.0"
    assert document("v2") is document("v2")
    assert raw_document("nosuch") is None
    with pytest.raises(LookupError):
        document("nosuch")
