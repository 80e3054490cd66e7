"""Defaults in custom resources."""

import pytest

from wharfinger.control_plane.custom import defaulting
from wharfinger.control_plane.custom.defaulting import defaulted
from wharfinger.formats.json.value import JsonObject, ShapeError

SCHEMA: JsonObject = {
    "properties": {
        "a": {"default": 1},
        "l": {"items": {"default": "d", "type": "string"}},
        "m": {"additionalProperties": {"properties": {"z": {"default": [1]}}}},
    }
}


def test_defaults_are_set() -> None:
    assert defaulted(SCHEMA, {"l": [None, "x"], "m": {"k": {}, "n": None}, "a": None}) == {
        "l": ["d", "x"],
        "m": {"k": {"z": [1]}},
        "a": 1,
    }


def test_defaults_that_are_too_large_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(defaulting, "_MAX_BYTES", 0)
    with pytest.raises(ShapeError, match=r"are larger than \d+ bytes in total"):
        defaulted(SCHEMA, {})
