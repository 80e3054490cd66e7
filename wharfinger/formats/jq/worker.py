"""The program of a jq worker (``python -I -m wharfinger.formats.jq.worker``): it answers requests until its stdin ends.

jq runs in a separate process, because libjq holds the interpreter's lock, cannot be interrupted, and aborts the process when
memory runs out. A filter that loops, exhausts memory or crashes can end a worker, but never the daemon.
:mod:`wharfinger.hooks.watching.jq_pool` communicates with a worker, limits its time and replaces it.

Filters are written for gojq, the implementation that shell-operator uses as a library. In gojq, a filter gets one value and no
further inputs, has no environment and no modules, and cannot end the program. libjq has functions that do these things. So each
program is compiled with definitions in front of it, which replace these functions. The program is also put into parentheses:
there an ``import`` is a syntax error, so jq searches no file for it. jq itself turns each result into JSON text (``tojson``),
because the Python binding would round large integers. ``docs/jq.md`` lists the remaining differences.

The pool of workers limits the wall-clock time. The process itself limits the CPU time of one request, because a worker whose
daemon was killed must not loop forever. The process's address space is limited too. It cannot write files or core dumps, and its
environment is empty.
"""

import os
import sys
from collections import OrderedDict
from collections.abc import Iterable
from typing import BinaryIO, Final, Protocol

from wharfinger.formats.errors import FormatError
from wharfinger.formats.frames import LENGTH_BYTES, MAX_FRAME_BYTES, framed
from wharfinger.formats.jq.messages import without_values
from wharfinger.formats.jq.protocol import (
    JqProtocolError,
    JqRefusal,
    JqRequest,
    RefusalKind,
    decode_request,
    encode_refusal,
    encode_results,
    encode_text,
)
from wharfinger.formats.json.value import canonical_json, decode_json
from wharfinger.formats.worker_limits import allow_cpu_time, limit_process

CPU_S: Final = 30
"""The limit of CPU time for one request, in seconds. It is far above the pool's own time limit, because it is only for workers
whose daemon was killed.
"""
ANSWER_BYTES: Final = 16 * 1024 * 1024
"""The largest size of all results of one request, in bytes; larger results are refused without being sent."""
PROGRAMS_KEPT: Final = 256
MESSAGE_CHARACTERS: Final = 2000

_PRELUDE: Final = """
def input: error("input is not available in a filter");
def inputs: input;
def input_line_number: input;
def halt: error("halt is not available in a filter");
def modulemeta: error("modulemeta is not available in a filter");
def halt_error: halt;
def halt_error($status): halt;
def debug: .;
def debug(message): .;
def stderr: .;
def env: {};
def keys_unsorted: keys;
def to_entries: [keys[] as $key | {key: $key, value: .[$key]}];
{} as $ENV |
""".replace("\n", " ")
"""Definitions before each program. They are on one line, so that they move the lines of the program down by one line only."""


class CompiledProgram(Protocol):
    """A compiled program of the ``jq`` package, with the one method that this module uses."""

    def input_text(self, text: str) -> Iterable[str]:
        """Return the results of running the program on a JSON text."""
        ...


class Programs:
    """A cache of compiled programs; it keeps the most recently used ones."""

    def __init__(self) -> None:
        # The daemon imports this module only for its name, and must not load libjq.
        from jq import compile as compile_jq  # noqa: PLC0415

        self._compile = compile_jq
        self._kept: OrderedDict[str, CompiledProgram] = OrderedDict()

    def get(self, program: str) -> CompiledProgram:
        """Return the compiled program. Raises ValueError with jq's message."""
        found = self._kept.get(program)
        if found is None:
            found = self._kept[program] = self._compiled(program)
            if len(self._kept) > PROGRAMS_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(program)
        return found

    def _compiled(self, program: str) -> CompiledProgram:
        if "\0" in program:
            raise ValueError("a program cannot have NUL characters in it")
        try:
            compiled: CompiledProgram = self._compile(f"{_PRELUDE} (\n{program}\n) | tojson")
        except ValueError:
            if not any(word in program for word in ("import", "include", "module")):
                self._compile(program)  # raises an error whose message is about the original program
            raise
        self._compile(program)  # check it alone: `1) | (2` compiles only between parentheses
        return compiled


def answer(programs: Programs, request: JqRequest) -> bytes:
    """Return the payload that answers ``request``."""
    try:
        compiled = programs.get(request.program)
    except ValueError as error:
        return _refusal(RefusalKind.COMPILE, str(error))
    if request.text is None:
        return encode_results(())
    texts: list[str] = []
    size = 0
    try:
        for text in _results(compiled, _canonical(request.text) if request.whole else request.text):
            texts.append(text)
            size += len(text.encode()) + 1
            if size > ANSWER_BYTES:
                return _refusal(RefusalKind.SIZE, f"more than {ANSWER_BYTES} bytes of results")
        return encode_text(texts) if request.whole else encode_results(texts)
    except ValueError as error:
        return _refusal(RefusalKind.RUN, without_values(str(error)))
    except FormatError as error:
        return _refusal(RefusalKind.RUN, str(error))


def _canonical(text: bytes) -> bytes:
    """Return the text with sorted keys, because gojq iterates over objects in sorted order.

    Raises FormatError if the text is not JSON.
    """
    return canonical_json(decode_json(text, max_bytes=MAX_FRAME_BYTES, what="the object"))


def _results(compiled: CompiledProgram, text: bytes) -> Iterable[str]:
    return iter(compiled.input_text(text.decode()))


def _refusal(kind: RefusalKind, message: str) -> bytes:
    return encode_refusal(JqRefusal(kind, message.strip()[:MESSAGE_CHARACTERS] or "no reason given"))


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until the input ends. Raises JqProtocolError for an invalid request."""
    programs = Programs()
    while (payload := _read_frame(requests)) is not None:
        allow_cpu_time(CPU_S)
        answers.write(framed(answer(programs, decode_request(payload))))
        answers.flush()


def _read_frame(requests: BinaryIO) -> bytes | None:
    """Return the next payload; None if the input ends, even in the middle of a frame, because the daemon has ended then."""
    length = requests.read(LENGTH_BYTES)
    if len(length) < LENGTH_BYTES:
        return None
    expected = int.from_bytes(length, "big")
    if expected > MAX_FRAME_BYTES:
        raise JqProtocolError(
            f"jq: the daemon announced a request of {expected} bytes, over the limit of {MAX_FRAME_BYTES}"
        )
    payload = requests.read(expected)
    return payload if len(payload) == expected else None


def main() -> None:
    """Limit the process, then answer the requests on stdin."""
    limit_process()
    with open(os.dup(1), "wb") as answers:  # noqa: PTH123 - a descriptor
        os.dup2(2, 1)  # libjq's own output is not an answer
        serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
