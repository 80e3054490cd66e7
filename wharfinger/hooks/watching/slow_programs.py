"""The record of programs that ran out of time repeatedly. Such programs are refused for a while, because each attempt costs a
worker. Pure.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, TypeAlias

LATE_IN_A_ROW: Final = 3
REFUSED_S: Final = 60.0
KEPT: Final = 1_024

OwnedProgram: TypeAlias = tuple[str, str]
"""A jq program, after the owner that requested its run."""


@dataclass(slots=True)
class _Late:
    times: int = 0
    until: float = 0.0


class SlowPrograms:
    """The programs that ran out of time, at most the KEPT latest ones. All times are of one clock, in seconds."""

    def __init__(self) -> None:
        self._late: OrderedDict[OwnedProgram, _Late] = OrderedDict()

    def refused(self, program: OwnedProgram, now: float) -> bool:
        """Return whether a program must not run now.

        A refused program may be tried again REFUSED_S after the last run in which it ran out of time.
        """
        known = self._late.get(program)
        return known is not None and now < known.until

    def late(self, program: OwnedProgram, now: float) -> None:
        """Record that a program ran out of time."""
        known = self._late.setdefault(program, _Late())
        self._late.move_to_end(program)
        known.times += 1
        if known.times >= LATE_IN_A_ROW:
            known.until = now + REFUSED_S
        if len(self._late) > KEPT:
            self._late.popitem(last=False)

    def in_time(self, program: OwnedProgram) -> None:
        """Record that a program ended in time, and forget its earlier runs that ran out of time."""
        self._late.pop(program, None)
