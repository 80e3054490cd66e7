"""The limit on what one hook may log over all its runs: one token bucket for lines, and one for characters. Pure.

A failing run is retried without end, so limits for single runs do not limit the whole output. Once a bucket is empty, the hook's
lines are left out and counted until a part of both buckets is refilled. So the log contains groups of consecutive lines, with the
number of missing lines between the groups, instead of single lines at intervals. Times are in seconds of a monotonic clock.
"""

from dataclasses import dataclass, replace
from typing import Final

BURST_LINES: Final = 1_000
BURST_CHARS: Final = 1024 * 1024
LINES_PER_S: Final = 2.0
CHARS_PER_S: Final = 2048.0
OPEN_AGAIN: Final = 0.1
"""The fraction of both token buckets (for lines and for characters) that must be refilled before lines are logged again, once a
bucket was empty.
"""


@dataclass(frozen=True, slots=True)
class LogBudget:
    """The number of lines and characters that one hook may still log, at the time ``at``. ``left_out`` is the number of lines
    that were left out since the last report.
    """

    lines: float = BURST_LINES
    chars: float = BURST_CHARS
    at: float = 0.0
    closed: bool = False
    left_out: int = 0

    def admit(self, chars: int, now: float) -> "tuple[LogBudget, bool]":
        """Return the budget after one more line with this number of characters, and whether the line is logged."""
        budget = self._refilled(now)
        if budget.closed or budget.lines < 1 or budget.chars < chars:
            return replace(budget, closed=True, left_out=budget.left_out + 1), False
        return replace(budget, lines=budget.lines - 1, chars=budget.chars - chars), True

    def report(self) -> "tuple[LogBudget, int]":
        """Return the number of lines left out since the last report, for a report now, and the budget with this count reset."""
        return replace(self, left_out=0), self.left_out

    def _refilled(self, now: float) -> "LogBudget":
        passed = max(0.0, now - self.at)
        lines = min(float(BURST_LINES), self.lines + passed * LINES_PER_S)
        chars = min(float(BURST_CHARS), self.chars + passed * CHARS_PER_S)
        opens = lines >= OPEN_AGAIN * BURST_LINES and chars >= OPEN_AGAIN * BURST_CHARS
        return replace(self, lines=lines, chars=chars, at=max(self.at, now), closed=self.closed and not opens)
