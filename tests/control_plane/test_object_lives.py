"""Tests of the helpers in object_lives that test_openapi_requests does not cover."""

import random

from tests.control_plane.support.object_lives import Lives, seeds


def test_the_recordings_contain_creates_of_many_kinds() -> None:
    taken = seeds()
    lives = Lives(random.Random(1), taken, {})  # noqa: S311 - repeatable on purpose

    assert len({seed.path for seed in taken}) > 50
    assert lives.drawn().method == "POST"
