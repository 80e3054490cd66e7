"""The output of a hook as log lines: a line buffer for each stream, and one bounded list for both.

Pipes deliver bytes in pieces of any size; a line ends with a newline (spec hook-protocol §1.3, "Hook stdout/stderr"), however
it was split on the way. Kept lines are trimmed at both ends, empty lines are left out, and over-long lines are cut and marked.
The callback ``on_line`` gets each line while the hook runs, trimmed only at its end. If there are too many lines, the last
lines are kept, because errors come last; in that case, the first line states the number of missing lines.
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
    """Return the end of the output for a message: at most MAX_REASON_CHARS.

    The returned text begins at the start of a line, or of a word in a longer line, because the code that hides secrets does not
    recognize a secret that was cut in two.
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
    """A buffer that joins the pieces of one stream to lines; it holds at most one line of MAX_LINE_CHARS."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        """Set the function that gets each complete line. The indentation of the line is kept."""
        self._on_line = on_line
        self._kept = bytearray()
        self._cut = False

    def feed(self, chunk: bytes) -> None:
        """Add the next bytes of the stream, and pass on each line that they complete."""
        *complete, rest = chunk.split(b"\n")
        for piece in complete:
            self._add(piece)
            self.end()
        self._add(rest)

    def end(self) -> None:
        """Complete the current line. This is also called at the end of the stream, where the newline may be missing."""
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
    """The lines of both streams of one run, in the order in which they were completed."""

    def __init__(
        self,
        max_chars: int,
        on_line: Callable[[str], None] | None = None,
        *,
        also_stdout: Callable[[str], None] | None = None,
        also_stderr: Callable[[str], None] | None = None,
    ) -> None:
        """Keep at most ``max_chars`` characters and MAX_LINES lines.

        ``on_line`` is called with every line as soon as it is complete, whether it is kept or not; ``also_stdout`` and
        ``also_stderr`` are called in the same way, but only with the lines of their stream.
        """
        self.stdout = LineBuffer(self._both(also_stdout))
        self.stderr = LineBuffer(self._both(also_stderr))
        self._max_chars = max_chars
        self._on_line = on_line
        self._lines: deque[str] = deque()
        self._chars = 0
        self._lost = 0

    def end(self) -> None:
        """Complete the last lines of both streams."""
        self.stdout.end()
        self.stderr.end()

    def note(self, line: str) -> None:
        """Add a line of the daemon after the lines of the hook."""
        self._take(line)

    def kept(self) -> tuple[str, ...]:
        """Return the kept lines, after a note about earlier lines if some of them were dropped."""
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
