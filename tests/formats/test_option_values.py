"""The argparse types of options such as ``--timeout``, and of paths."""

import argparse
from pathlib import Path

import pytest

from wharfinger.formats.option_values import path_option, time_option


@pytest.mark.parametrize(("text", "seconds"), [("90", 90.0), ("1h30m", 5400.0), ("0s", 0.0)])
def test_a_time_is_read_as_seconds(text: str, seconds: float) -> None:
    assert time_option(text) == seconds


def test_an_invalid_time_is_an_argument_error() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="duration '5 minutes': "):
        time_option("5 minutes")


@pytest.mark.parametrize("text", [".", "-", "a/b", "/x"])
def test_a_path_is_read_as_written(text: str) -> None:
    assert path_option(text) == Path(text)


def test_an_empty_path_is_an_argument_error() -> None:
    with pytest.raises(
        argparse.ArgumentTypeError, match="expected a path, found an empty text; check that the variable"
    ):
        path_option("")
