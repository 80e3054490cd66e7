"""The protocol for jq programs of hooks (spec hook-protocol §4.4): ``jqFilter`` and ``JQPatch``.

Implementation: :mod:`wharfinger.hooks.watching.jq_pool`. ``docs/jq.md`` describes what a filter may do.
"""

from typing import Final, Protocol

from wharfinger.formats.errors import ProgramError
from wharfinger.formats.json.value import JsonValue

_SHOWN_CHARACTERS: Final = 120


class FilterError(ProgramError):
    """A filter gave no result.

    ``transient``: a retry without a change can help, because the worker died or the program ran out of time. ``at_once``: an
    immediate retry can help, because the worker died. ``late``: the program ran out of time.
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
    """A runner of jq programs."""

    def of(self, owner: str) -> "Filters":
        """Return filters for the requests of one owner (a package). The requests of one owner are made one after the other,
        so they occupy at most one worker.
        """
        ...

    async def check(self, program: str) -> None:
        """Compile a program. Raises FilterError, also for an empty program."""
        ...

    async def apply(self, program: str, value: JsonValue) -> JsonValue:
        """Run a program on a value, which is not changed. Return None for no result, a single result itself, several results as a
        list.

        Raises FilterError; the first error of a program makes the whole call fail.
        """
        ...

    async def apply_text(self, program: str, text: bytes) -> bytes:
        """Run a program on a JSON text and return canonical JSON text; this process does not parse the input.

        The number of results is handled as in `apply`. Raises FilterError, also if the input is not JSON.
        """
        ...
