"""The scale of tests with large figures: `make test-full` uses the full figures, and `make test` a sample."""

import os

FULL = os.environ.get("WHARFINGER_TEST_FULL") == "1"


def scaled(full: int, sample: int) -> int:
    """Return ``full`` in a run of `make test-full`, and otherwise ``sample``."""
    return full if FULL else sample
