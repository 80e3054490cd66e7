"""A JqRunner with libjq in this process, for tests of well-behaved programs. The daemon runs libjq in workers."""

from dataclasses import dataclass, field

from wharfinger.formats.errors import ProgramError
from wharfinger.formats.jq.protocol import JqRefusal, JqRequest, JqResults, decode_answer
from wharfinger.formats.jq.worker import Programs, answer
from wharfinger.formats.json.value import JsonValue, canonical_json


class DiedError(ProgramError):
    transient = True


class LateError(ProgramError):
    transient = True
    late = True


@dataclass(slots=True)
class RealJq:
    """A runner of jq programs.

    ``asked`` lists the programs that were run, in order. A program in ``dying`` fails as if its worker had died, and a program
    in ``endless`` as if it had exceeded its time limit.
    """

    programs: Programs = field(default_factory=Programs)
    asked: list[str] = field(default_factory=list)
    dying: set[str] = field(default_factory=set)
    endless: set[str] = field(default_factory=set)

    async def check(self, program: str) -> None:
        self._answer(program, None)

    async def apply(self, program: str, value: JsonValue) -> JsonValue:
        self.asked.append(program)
        results = self._answer(program, canonical_json(value)).values
        return None if not results else results[0] if len(results) == 1 else list(results)

    def _answer(self, program: str, text: bytes | None) -> JqResults:
        if program in self.dying:
            raise DiedError(f"jq filter {program!r}: its worker died")
        if program in self.endless:
            raise LateError(f"jq filter {program!r}: it took longer than 5 s")
        # This is the answer of a worker, without the length of the frame.
        found = decode_answer(answer(self.programs, JqRequest(program, text)))
        if isinstance(found, JqRefusal):
            raise ProgramError(f"jq filter {program!r}: {found.message}")
        assert isinstance(found, JqResults)
        return found
