"""A generous time limit of jq filters, for tests that measure no time. The limit includes the start of a worker, which is slow
on a busy machine.
"""

from typing import Final

from tests.programs import PATIENCE_S
from wharfinger.hooks.watching.jq_pool import JqLimits

PATIENT_FILTERS: Final = JqLimits(seconds=PATIENCE_S)
