"""The part of an issue's large figure that a run does: all of it in `make test-full`, a sample in `make test`."""

import os

FULL = os.environ.get("WHARFINGER_TEST_FULL") == "1"


def scaled(full: int, sample: int) -> int:
    """``full`` under `make test-full`, else ``sample``."""
    return full if FULL else sample
