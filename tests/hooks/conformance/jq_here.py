"""A runner of jq filters in this process, because a mocked clock would not work with jq in worker processes."""

import trio

from tests.hooks.support.python_filters import PythonFilters
from wharfinger.formats.jq.protocol import JqRequest, JqResults, decode_answer
from wharfinger.formats.jq.worker import Programs, answer
from wharfinger.formats.json.value import JsonValue, canonical_json
from wharfinger.hooks.watching.filters import FilterError


class JqHere(PythonFilters):
    """The filters of hooks, run with the real jq."""

    def __init__(self) -> None:
        super().__init__({})
        self._kept = Programs()

    async def check(self, program: str) -> None:
        """Compile the program."""
        await trio.lowlevel.checkpoint()
        self._asked(program, JqRequest(program, None))

    async def apply(self, program: str, value: JsonValue) -> JsonValue:
        """Return the result of jq for this value."""
        await trio.lowlevel.checkpoint()
        results = self._asked(program, JqRequest(program, canonical_json(value))).values
        return list(results) if len(results) > 1 else next(iter(results), None)

    def _asked(self, program: str, request: JqRequest) -> JqResults:
        said = decode_answer(answer(self._kept, request))
        if not isinstance(said, JqResults):
            raise FilterError(program, str(said))
        return said
