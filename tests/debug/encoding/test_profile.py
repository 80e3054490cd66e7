"""Profiles, encoded as documents and decoded again."""

import json

import pytest
import yaml

from tests.debug.profile.profiles import PROFILE
from wharfinger.debug.encoding.profile import PROFILE_FORMATS, profile_from_json, profile_text
from wharfinger.formats.json.value import ShapeError


def test_a_profile_survives_a_round_trip() -> None:
    assert profile_from_json(json.loads(profile_text(PROFILE, "json"))) == PROFILE
    assert profile_from_json(yaml.safe_load(profile_text(PROFILE, "yaml"))) == PROFILE


def test_each_format_has_its_own_form() -> None:
    texts = {output: profile_text(PROFILE, output) for output in PROFILE_FORMATS}
    assert len(set(texts.values())) == len(PROFILE_FORMATS)
    assert texts["text"].startswith("10.00 s, 900 samples")
    assert texts["collapsed"].startswith("main thread (waiting);run ")
    assert "speedscope" in json.loads(texts["speedscope"])["$schema"]


def test_an_unexpected_shape_is_reported_with_its_field() -> None:
    with pytest.raises(ShapeError, match="frames"):
        profile_from_json({"seconds": 1.0, "samples": 1, "threads": 1, "frames": 5, "stacks": []})
