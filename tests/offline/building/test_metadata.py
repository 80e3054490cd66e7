"""Common labels and annotations."""

from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.building.metadata import with_common_metadata


def test_common_metadata_wins_and_the_input_is_not_modified() -> None:
    obj: JsonObject = {"metadata": {"name": "a", "labels": {"x": "own", "y": "own"}}}
    (made,) = with_common_metadata((obj,), {"labels": {"x": "common"}, "annotations": {"z": "common"}})
    assert made == {"metadata": {"name": "a", "labels": {"x": "common", "y": "own"}, "annotations": {"z": "common"}}}
    assert obj == {"metadata": {"name": "a", "labels": {"x": "own", "y": "own"}}}
    assert with_common_metadata((obj,), {}) == (obj,)
