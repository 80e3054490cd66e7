"""The output of a hook as records: a line of text, or the lines that form a JSON object (spec hook-protocol §1.3).

A hook may write an object in one line or over several. Lines are held back only as long as they can still become an object. This
is so if the first line begins like an object, each further line looks like a part of an object, and each string ends in its line,
as JSON requires. Each line that does not become part of an object is text, and does not affect the lines after it. Brackets are
counted, and the object is parsed once, when they are closed. So the cost is linear in the size of the output, and bounded.
"""

import re
from collections.abc import Callable
from typing import Final, Literal

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, canonical_json, decode_json
from wharfinger.hooks.running.log_lines import MAX_LINE_CHARS, TRUNCATED
from wharfinger.hooks.running.runner import Level, LogRecord

MAX_OBJECT_LINES: Final = 1_000
DEFAULT_MESSAGE: Final = "hook result"
PREFIX: Final = "hook_"
JSON_MARK: Final = "proxyJsonLog"
_OBJECT: Final = re.compile(r'\{\s*(?:["}]|\Z)')
_GOES_ON: Final = re.compile(r'["{}\[\],:\-0-9]|true\b|false\b|null\b')
# A whole string, else a bracket, else an unclosed quote. The quantifiers are possessive, so the search never
# backtracks into a string.
_TOKEN: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{}"]')
_LEVELS: Final[dict[str, Level]] = {
    "trace": "debug",
    "debug": "debug",
    "warn": "warning",
    "warning": "warning",
    "error": "error",
    "dpanic": "error",
    "panic": "error",
    "fatal": "error",
}


class RecordBuffer:
    """A buffer that makes log records from the lines of one stream. A JSON object may span several lines."""

    def __init__(self, stream: Literal["stdout", "stderr"], on_record: Callable[[LogRecord], None]) -> None:
        self._stream = stream
        self._on_record = on_record
        self._held: list[str] = []
        self._chars = 0
        self._depth = 0

    def line(self, line: str) -> None:
        """Add the next line, which is trimmed and not empty, and is cut and marked if it was too long."""
        cut = line.endswith(TRUNCATED) and len(line) == MAX_LINE_CHARS + len(TRUNCATED)
        if self._held and (cut or not _GOES_ON.match(line) or not self._fits(line)):
            self.end()
        if not self._held and not _OBJECT.match(line):
            self._text(line)
        elif cut:
            self._record({"hook": {"truncated": line}}, prefix="")
        else:
            self._hold(line)

    def end(self) -> None:
        """Emit the lines that were held back because they begin a JSON object: each becomes a record of text. Call this at the
        end of the stream.
        """
        held, self._held = self._held, []
        self._chars = self._depth = 0
        for line in held:
            self._text(line)

    def _fits(self, line: str) -> bool:
        return len(self._held) < MAX_OBJECT_LINES and self._chars + len(line) <= MAX_LINE_CHARS

    def _hold(self, line: str) -> None:
        self._held.append(line)
        self._chars += len(line)
        for token in _TOKEN.finditer(line):
            mark = token.group()
            if mark == '"':
                self.end()
                return
            self._depth += (mark in "[{") - (mark in "]}") if len(mark) == 1 else 0
        if self._depth <= 0:
            self._close()

    def _close(self) -> None:
        text = "\n".join(self._held)
        try:
            document = decode_json(text.encode(), max_bytes=4 * (MAX_LINE_CHARS + MAX_OBJECT_LINES), what="a log line")
        except FormatError:
            document = None
        if not isinstance(document, dict):
            self.end()
            return
        self._held = []
        self._chars = self._depth = 0
        self._record(document)

    def _text(self, line: str) -> None:
        self._on_record(LogRecord(self._stream, "info", line))

    def _record(self, document: JsonObject, *, prefix: str = PREFIX) -> None:
        level, message = document.get("level"), document.get("msg", DEFAULT_MESSAGE)
        fields: dict[str, JsonValue] = {
            f"{prefix}{key}": value for key, value in document.items() if key not in {"level", "msg", "time"}
        }
        fields[JSON_MARK] = True
        self._on_record(
            LogRecord(
                self._stream,
                _LEVELS.get(level.lower(), "info") if isinstance(level, str) else "info",
                message if isinstance(message, str) else canonical_json(message).decode(),
                fields,
            )
        )
