"""The daemon's log: one line per message on stderr. The format is text (with or without colors) for people, or JSON for
programs.

A line about a package names the package. A line about work in a queue also names the task and the cause of the work. These
names come from context variables that a queue's worker sets, so no log call has to pass them.

In text, a traceback follows its message on further lines, and each of these lines begins with a mark. In JSON, the traceback is
the value of a key.

Additional fields of a message are given as ``extra={"fields": {...}}``: plain JSON values by name. In text they follow the
message; in JSON they are keys beside the message, and none of them replaces a standard key.

Messages, and names and values of fields, are escaped: a message is always one line, even if a registry, a chart or a hook puts
line breaks into it.
"""

import json
import logging
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, TextIO, cast

from wharfinger.formats.json.value import JsonValue
from wharfinger.queue.lane import current_cause, current_package, current_task

_COLOURS: Final = {logging.DEBUG: 36, logging.INFO: 32, logging.WARNING: 33, logging.ERROR: 31, logging.CRITICAL: 35}
_PLAIN: Final = re.compile(r"[^\s\"=\[\]{}]+")


class LogFormat(StrEnum):
    """The format of log records."""

    TEXT = "text"
    COLOUR = "colour"
    JSON = "json"


class _Formatter(logging.Formatter):
    def __init__(self, form: LogFormat) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        fields: dict[str, JsonValue] = {**_extra(record)}
        fields |= {"time": moment, "level": record.levelname.lower(), "logger": record.name, "msg": record.getMessage()}
        about = {"package": current_package(), "task": current_task(), "cause": current_cause()}
        fields |= {name: value for name, value in about.items() if value}
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        if trace:
            fields["traceback"] = trace
        if self._form is LogFormat.JSON:
            return _escaped_in_json(json.dumps(fields, ensure_ascii=False))
        said = "".join(f" {_shown(name)}={_shown(value)}" for name, value in _extra(record).items())
        level, message = f"{record.levelname:<7}", f"{fields['msg']}{said}"
        where = _escaped(_place(**about))
        lines = [_escaped(message), *(_escaped(f"    | {part}") for part in trace.splitlines())]
        if self._form is LogFormat.COLOUR:
            moment, level, where = _dim(moment), f"\x1b[{_COLOURS.get(record.levelno, 0)}m{level}\x1b[0m", _dim(where)
        lines[0] = f"{moment} {level} {lines[0]}{where}"
        return "\n".join(lines)


def _place(package: str, task: str, cause: str) -> str:
    """Return the subject of a line as text: `` [prod.shop: Render; update of prod.shop]``."""
    work = "; ".join(filter(None, (task, cause)))
    inside = ": ".join(filter(None, (package, work)))
    return f" [{inside}]" if inside else ""


def _dim(text: str) -> str:
    return f"\x1b[2m{text}\x1b[0m" if text else ""


def _extra(record: logging.LogRecord) -> Mapping[str, JsonValue]:
    """Return the additional fields of the record."""
    fields: object = getattr(record, "fields", None)
    return cast("Mapping[str, JsonValue]", fields) if isinstance(fields, Mapping) else {}


def _shown(value: JsonValue) -> str:
    """Return a field as text: a plain word as it is, anything else as JSON."""
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _escaped(line: str) -> str:
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in line)


def _escaped_in_json(line: str) -> str:
    """Escape the characters that JSON does not escape, although they may damage the output: line separators beyond ASCII, and
    control characters of terminals.
    """
    if line.isprintable():
        return line
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in line)


def set_up_logging(form: LogFormat, level: str, stream: TextIO | None = None) -> None:
    """Write records to ``stream`` (default: stderr): those of Wharfinger from ``level`` on, and those of other libraries from
    level WARNING on.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_Formatter(form))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("wharfinger").setLevel(level.upper())
