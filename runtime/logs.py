"""The daemon's log: one line a record on stderr, text for people or JSON for machines, each with the package it is about.

A traceback follows its record, each line of it marked.

The package comes from a context variable that a queue's worker binds, so no call has to pass it along. Values of fields are
escaped: a log line is one line, whatever a registry or a chart puts into a message.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from enum import StrEnum
from typing import TextIO

from wharfinger.queue.service import current_package


class LogFormat(StrEnum):
    """How records are written."""

    TEXT = "text"
    JSON = "json"


class _Formatter(logging.Formatter):
    def __init__(self, form: LogFormat) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        fields = {"time": moment, "level": record.levelname.lower(), "logger": record.name, "msg": record.getMessage()}
        if package := current_package():
            fields["package"] = package
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        if self._form is LogFormat.JSON:
            return json.dumps(fields, ensure_ascii=False)
        trace = fields.get("traceback")
        package = f" [{fields['package']}]" if "package" in fields else ""
        line = f"{moment} {record.levelname:<7} {fields['msg']}{package}"
        lines = [line, *(f"    | {part}" for part in (trace or "").splitlines())]
        return "\n".join(_escaped(part) for part in lines)


def _escaped(line: str) -> str:
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in line)


def set_up_logging(form: LogFormat, level: str, stream: TextIO | None = None) -> None:
    """Send Wharfinger's records to ``stream`` (default: stderr); other libraries' from warnings on."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_Formatter(form))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("wharfinger").setLevel(level.upper())
