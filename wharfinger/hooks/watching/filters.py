"""The seam to jq, for what a hook asks for (spec hook-protocol §4.4): ``jqFilter`` and ``JQPatch``.

Implementation: :mod:`wharfinger.hooks.watching.jq_pool`. What a filter may do is said in ``docs/jq.md``.
"""

from typing import Final, Protocol

from wharfinger.formats.errors import ProgramError
from wharfinger.formats.json.value import JsonValue

_SHOWN_CHARACTERS: Final = 120


class FilterError(ProgramError):
    """A filter gave no result. ``transient``: trying again without a change can help (its worker died, or ran out of time).

    ``at_once``: it can help right now, which is so only where the worker died. ``late``: it ran out of time.
    """

    def __init__(
        self, program: str, why: str, *, transient: bool = False, at_once: bool = False, late: bool = False
    ) -> None:
        shown = program if len(program) <= _SHOWN_CHARACTERS else program[:_SHOWN_CHARACTERS] + "..."
        super().__init__(f"jq filter {shown!r}: {why}")
        self.program = program
        self.why = why
        self.transient = transient
        self.at_once = at_once
        self.late = late


class Filters(Protocol):
    """Runs jq programs."""

    def of(self, owner: str) -> "Filters":
        """The same filters for what one owner (a package) asks: however much that is, it leaves room for others."""
        ...

    async def check(self, program: str) -> None:
        """Compile a program. Raises FilterError; an empty one is an error too."""
        ...

    async def apply(self, program: str, value: JsonValue) -> JsonValue:
        """Run a program on a value: no result is None, one is itself, many are a list. The value is not changed.

        Raises FilterError; the first error a program runs into makes all of it fail.
        """
        ...

    async def apply_text(self, program: str, text: bytes) -> bytes:
        """As `apply`, of a JSON text, giving canonical JSON text: what it is of is not parsed in this process.

        Raises FilterError, also for what is no JSON.
        """
        ...
