"""Settings for the whole suite: Hypothesis profiles, and what the tests may use of the machine."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("sample", max_examples=60, deadline=None, derandomize=True, print_blob=True)
settings.register_profile(
    "full", max_examples=1000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("full" if os.environ.get("WHARFINGER_TEST_FULL") == "1" else "sample")
