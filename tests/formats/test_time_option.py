"""The argparse type of options such as ``--timeout``."""

import argparse

import pytest

from wharfinger.formats.time_option import time_option


@pytest.mark.parametrize(("text", "seconds"), [("90", 90.0), ("1h30m", 5400.0), ("0s", 0.0)])
def test_a_time_is_read_as_seconds(text: str, seconds: float) -> None:
    assert time_option(text) == seconds


def test_an_invalid_time_is_an_argument_error() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="duration '5 minutes': "):
        time_option("5 minutes")
