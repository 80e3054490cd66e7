"""The choice of a default class, such as a StorageClass, if there are several."""

import pytest

from wharfinger.control_plane.api.common.default_class import STORAGE_MARKS, default_class
from wharfinger.formats.json.value import JsonObject


def storage_class(name: str, created: str, mark: str = "", value: str = "true") -> JsonObject:
    return {"metadata": {"name": name, "creationTimestamp": created, "annotations": {mark: value} if mark else {}}}


MARK, BETA = STORAGE_MARKS
PLAIN = storage_class("plain", "2026-03-01T00:00:00Z")
NO_MARK = storage_class("no", "2026-03-01T00:00:00Z", MARK, "false")
OLD = storage_class("old", "2026-01-01T00:00:00Z", MARK)
NEW = storage_class("new", "2026-02-01T00:00:00Z", BETA)
SAME = storage_class("also-new", "2026-02-01T00:00:00Z", MARK)


@pytest.mark.parametrize(
    ("classes", "name"),
    [([], ""), ([PLAIN, NO_MARK], ""), ([PLAIN, OLD], "old"), ([NEW, OLD], "new"), ([NEW, SAME, OLD], "also-new")],
)
def test_the_newest_default_class_is_chosen_then_the_first_by_name(classes: list[JsonObject], name: str) -> None:
    assert default_class(classes, STORAGE_MARKS) == name
