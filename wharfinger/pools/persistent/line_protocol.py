"""The lines between this process and a program that serves many runs of a hook: a JSON object requests each run, and another
reports its end. Pure.

A run, on the program's stdin::

    {"run": 7, "environment": {"BINDING_CONTEXT_PATH": "/…/binding-context.json", …}}

Its end, on the program's stdout, when all files of the run are written::

    {"run": 7, "status": 0}
    {"run": 7, "status": 1, "message": "the reason of the failure"}

docs/pools.md describes this protocol for the authors of hooks.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wharfinger.formats.json.value import JsonError, decode_json

MAX_ANSWER_BYTES: Final = 64 * 1024
"""The largest number of bytes of an answer, including its newline. A program with a longer answer is ended."""
MAX_STATUS: Final = 255
_SHOWN: Final = 200


class AnswerError(Exception):
    """A line that a program has printed is not a valid answer to the run that the program was given."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of a run: a status from 0 to 255, and a message about it."""

    status: int
    message: str = ""


def run_line(run: int, variables: Mapping[str, str]) -> bytes:
    """Return the line that requests a run, with the environment variables that are specific to this run."""
    return json.dumps({"run": run, "environment": dict(variables)}).encode() + b"\n"


def read_answer(line: bytes, run: int) -> Answer:
    """Return the answer to a run. ``line`` comes without its newline. Raises AnswerError."""
    expected = f'expected {{"run": {run}, "status": 0}}'
    try:
        found = decode_json(line, max_bytes=MAX_ANSWER_BYTES, what="the answer")
    except JsonError as error:
        raise AnswerError(f"{expected}, found {_short(line)}; print everything else to stderr") from error
    if not isinstance(found, dict):
        raise AnswerError(f"{expected}, found {_short(line)}; print everything else to stderr")
    number, status, message = found.get("run"), found.get("status"), found.get("message", "")
    if type(number) is not int or number != run:
        raise AnswerError(f"{expected}, found the run {number!r}; answer each run once, with its number")
    if type(status) is not int or not 0 <= status <= MAX_STATUS:
        raise AnswerError(f"{expected}, found the status {status!r}; use a number from 0 to {MAX_STATUS}")
    if not isinstance(message, str):
        raise AnswerError(f"{expected}, found a message that is not a text; use a string")
    return Answer(status, message)


def _short(line: bytes) -> str:
    text = line[:_SHOWN].decode(errors="replace")
    return repr(text) + ("…" if len(line) > _SHOWN else "")
