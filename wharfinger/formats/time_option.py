"""The values of options such as ``--timeout``, for argparse."""

import argparse

from wharfinger.formats.duration import parse_time_limit
from wharfinger.formats.errors import FormatError


def time_option(text: str) -> float:
    """Return the seconds that an option's value states, as `parse_time_limit` reads it. Raises ArgumentTypeError."""
    try:
        return parse_time_limit(text)
    except FormatError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
