"""Filters whose programs are Python functions, for tests of code that uses filters. The jq filters have tests of their own."""

from collections.abc import Callable, Mapping

import trio

from wharfinger.formats.json.value import JsonValue, canonical_json, decode_json
from wharfinger.hooks.watching.filters import FilterError

Program = Callable[[JsonValue], JsonValue]


class PythonFilters:
    """Filters that call Python functions by name.

    If there is a ``gate``, every call waits until it is set. The next ``deaths`` calls fail as if their worker had died.
    """

    def __init__(self, programs: Mapping[str, Program]) -> None:
        self.programs = dict(programs)
        self.gate: trio.Event | None = None
        self.deaths = 0
        self.most_at_once = 0
        self.owners: list[str] = []
        self._running = 0

    def of(self, owner: str) -> "PythonFilters":
        """Record the owner, and return the same filters, because owners do not compete for workers here."""
        self.owners.append(owner)
        return self

    async def check(self, program: str) -> None:
        """Refuse a program that does not exist."""
        await trio.lowlevel.checkpoint()
        if program not in self.programs:
            raise FilterError(program, "no such program")

    async def apply_text(self, program: str, text: bytes) -> bytes:
        """Do the same as `apply`, for text."""
        return canonical_json(await self.apply(program, decode_json(text, max_bytes=len(text), what="an object")))

    async def apply(self, program: str, value: JsonValue) -> JsonValue:
        """Return the result of the function. If the function raises a ValueError, the filter fails."""
        self._running += 1
        self.most_at_once = max(self.most_at_once, self._running)
        try:
            await trio.lowlevel.checkpoint()
            if self.gate is not None:
                await self.gate.wait()
            if self.deaths:
                self.deaths -= 1
                raise FilterError(program, "its worker died", transient=True, at_once=True)
            try:
                return self.programs[program](value)
            except ValueError as error:
                raise FilterError(program, str(error)) from error
        finally:
            self._running -= 1
