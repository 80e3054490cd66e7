"""The RE2 library: it compiles a pattern to a program, and finds the matches. No other module imports the library.

One search takes linear time in the length of the text, and bounded memory, whatever the pattern. Only finding all matches can
cost more, because each of the searches may read to the end of the text. So the number of bytes that these searches may read
together is bounded. Patterns are in RE2's own syntax here; :mod:`~wharfinger.kube.patterns` converts Go's patterns into it.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Protocol

import re2

USUAL_BYTES: Final = 8 * 1024 * 1024
"""The memory limit of a compiled program with its caches; 64 such programs are cached."""
LARGEST_BYTES: Final = 64 * 1024 * 1024
"""The memory limit for a pattern whose program does not fit into USUAL_BYTES; four programs with this limit are cached."""
MAX_SEEN: Final = 2**32
"""The limit on the bytes of text that all searches of one call of ``found`` read together, which takes several seconds."""


class TooLongError(ValueError):
    """The search for all matches in a text exceeds MAX_SEEN."""


class _Match(Protocol):
    def span(self) -> tuple[int, int]: ...


class _Program(Protocol):
    def search(self, text: bytes, pos: int = 0) -> _Match | None: ...


def compiles(pattern: str) -> bool:
    """Return whether RE2 can compile a pattern within the memory limit."""
    return _program(pattern) is not None


def matches(pattern: str, text: str) -> bool:
    """Return whether a pattern matches somewhere in a text; a pattern that does not compile matches every text."""
    program = _program(pattern)
    try:
        return program is None or next(_spans(program, _encoded(text)), None) is not None
    except TooLongError:  # all matches so far began inside a character
        return False


def found(pattern: str, text: str) -> Iterator[str]:
    """Yield the matches from left to right, without overlaps. An empty match directly after another match is left out.

    Raises TooLongError.
    """
    program = _program(pattern)
    data = _encoded(text)
    behind = -1
    for start, end in _spans(program, data) if program is not None else ():
        if end > start or start != behind:
            yield data[start:end].decode()
        behind = end


def _spans(program: _Program, data: bytes) -> Iterator[tuple[int, int]]:
    at = seen = 0
    while at <= len(data) and (match := program.search(data, at)) is not None:
        seen += len(data) - at
        if seen > MAX_SEEN:
            raise TooLongError(f"looking for all matches in {len(data)} bytes takes more than {MAX_SEEN} steps")
        start, end = match.span()
        within = start < len(data) and _continues(data[start])  # a match of `\B` may be inside a character
        if not within:
            yield start, end
        at = end if end > start else start + 1
        while at < len(data) and _continues(data[at]):
            at += 1


def _continues(byte: int) -> bool:
    """Return whether a byte of UTF-8 is not the first of its character."""
    return byte & 0xC0 == 0x80


def _encoded(text: str) -> bytes:
    return text.encode(errors="replace")


def _program(pattern: str) -> _Program | None:
    return _usual(pattern) or _large(pattern)


@lru_cache(maxsize=64)
def _usual(pattern: str) -> _Program | None:
    return _compiled(pattern, USUAL_BYTES)


@lru_cache(maxsize=4)
def _large(pattern: str) -> _Program | None:
    return _compiled(pattern, LARGEST_BYTES)


def _compiled(pattern: str, most_bytes: int) -> _Program | None:
    options = re2.Options()
    options.max_mem = most_bytes
    options.never_capture = True
    options.log_errors = False
    try:
        program: _Program = re2.compile(_encoded(pattern), options)
    except re2.error:
        return None
    re2.purge()  # the cache of re2 bounds the number of programs, but not their memory
    return program
