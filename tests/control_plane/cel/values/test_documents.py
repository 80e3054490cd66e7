import pytest

from wharfinger.control_plane.cel.values.documents import DocumentMap, document_value
from wharfinger.control_plane.cel.values.operations import equal
from wharfinger.control_plane.cel.values.values import CelError, CelMap


def test_a_document_is_read_as_a_map() -> None:
    found = document_value({"a": [1, {"b": None}], "c": 2**64})

    assert isinstance(found, DocumentMap)
    assert (len(found), [*found.keys()]) == (2, ["a", "c"])
    assert (found.find("c"), found.find("d"), found.find(1)) == ((True, float(2**64)), (False, None), (False, None))
    assert equal(found, CelMap([("a", [1, CelMap([("b", None)])]), ("c", float(2**64))]))


def test_inserting_an_existing_key_is_an_error() -> None:
    made = DocumentMap({"a": 1}).inserted("b", 2)

    assert equal(made, CelMap([("a", 1), ("b", 2)]))
    with pytest.raises(CelError, match="key a already exists"):
        DocumentMap({"a": 1}).inserted("a", 2)
