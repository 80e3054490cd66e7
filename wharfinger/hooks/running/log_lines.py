"""What a hook prints, as log lines: a real line buffer for each stream, one bounded list for both.

Pipes deliver bytes in pieces of any size; a line is what ends with a newline (spec hook-protocol §1.3, "Hook stdout/stderr"),
however it was cut on the way. Lines are trimmed (only at their end for whoever follows a run), empty ones left out, over-long
ones cut and marked. Of too many lines the last are kept, because errors come last, and the first line then says how many are
missing.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

MAX_LINE_CHARS: Final = 10_000
MAX_LINES: Final = 5_000
TRUNCATED: Final = ":truncated"
MAX_REASON_CHARS: Final = 1024
_UTF8_MAX: Final = 4


def last_words(stderr: bytes) -> str:
    """The end of what was written, for a message: at most MAX_REASON_CHARS.

    It begins with a line, or within a longer one with a word: of a secret cut in two nobody would know any more that it is one.
    """
    said = stderr.decode(errors="replace").strip()
    if len(said) <= MAX_REASON_CHARS:
        return said
    shown = said[-MAX_REASON_CHARS - 1 :]
    for begin in ("\n", " "):
        _, found, rest = shown.partition(begin)
        if found:
            return rest.strip()
    return f"a word of over {MAX_REASON_CHARS} characters"


class LineBuffer:
    """Puts the lines of one stream together; holds at most one line of MAX_LINE_CHARS."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        """``on_line`` is given each line once it is complete, its indentation kept."""
        self._on_line = on_line
        self._kept = bytearray()
        self._cut = False

    def feed(self, chunk: bytes) -> None:
        """More bytes of the stream."""
        *complete, rest = chunk.split(b"\n")
        for piece in complete:
            self._add(piece)
            self.end()
        self._add(rest)

    def end(self) -> None:
        """The line is complete; at the end of the stream also without a newline."""
        text = self._kept.decode(errors="replace")
        cut = self._cut or len(text) > MAX_LINE_CHARS
        self._kept, self._cut = bytearray(), False
        if line := text[:MAX_LINE_CHARS].rstrip():
            self._on_line(line + TRUNCATED if cut else line)

    def _add(self, piece: bytes) -> None:
        room = MAX_LINE_CHARS * _UTF8_MAX - len(self._kept)
        self._kept += piece[:room]
        self._cut = self._cut or len(piece) > room


class LogLines:
    """Both streams of one run, in the order in which their lines were completed."""

    def __init__(
        self,
        max_chars: int,
        on_line: Callable[[str], None] | None = None,
        *,
        also_stdout: Callable[[str], None] | None = None,
        also_stderr: Callable[[str], None] | None = None,
    ) -> None:
        """Keep at most ``max_chars`` characters and MAX_LINES lines; ``on_line`` is told every line as it comes, kept or not.

        ``also_stdout`` and ``also_stderr`` are told those of one stream.
        """
        self.stdout = LineBuffer(self._both(also_stdout))
        self.stderr = LineBuffer(self._both(also_stderr))
        self._max_chars = max_chars
        self._on_line = on_line
        self._lines: deque[str] = deque()
        self._chars = 0
        self._lost = 0

    def end(self) -> None:
        """Both streams have ended."""
        self.stdout.end()
        self.stderr.end()

    def note(self, line: str) -> None:
        """A line of ours, after those of the hook."""
        self._take(line)

    def kept(self) -> tuple[str, ...]:
        """The lines that were kept."""
        lost = (f"({self._lost} earlier lines are left out)",) if self._lost else ()
        return (*lost, *self._lines)

    def _both(self, also: Callable[[str], None] | None) -> Callable[[str], None]:
        if also is None:
            return self._take

        def take(line: str) -> None:
            self._take(line)
            also(line.strip())

        return take

    def _take(self, line: str) -> None:
        if self._on_line is not None:
            self._on_line(line)
        line = line.strip()
        self._lines.append(line)
        self._chars += len(line) + 1
        while len(self._lines) > 1 and (self._chars > self._max_chars or len(self._lines) > MAX_LINES):
            self._chars -= len(self._lines.popleft()) + 1
            self._lost += 1
