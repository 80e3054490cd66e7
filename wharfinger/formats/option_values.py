"""Types of arguments for argparse: the time that an option such as ``--timeout`` gives, and a path."""

import argparse
from pathlib import Path

from wharfinger.formats.duration import parse_time_limit
from wharfinger.formats.errors import FormatError


def time_option(text: str) -> float:
    """Return the seconds that the value of an option stands for (see `parse_time_limit`). Raises ArgumentTypeError."""
    try:
        return parse_time_limit(text)
    except FormatError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def path_option(text: str) -> Path:
    """Return the path. Raises ArgumentTypeError for an empty text, which `Path` would read as the current folder."""
    if not text:
        raise argparse.ArgumentTypeError(
            "expected a path, found an empty text; check that the variable that contains the path is set"
        )
    return Path(text)
