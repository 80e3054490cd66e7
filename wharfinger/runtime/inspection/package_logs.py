"""The last log lines of each package, in memory, which `wharfinger logs NAME` prints.

A handler of Python's logging keeps each record that is about a package and comes from one of Wharfinger's own loggers. Such
records are the daemon's messages about the package, and the output of the package's hooks. Lines are redacted before they are
kept: secrets that the package has at that moment, and texts that look like secrets, are masked. For an exception, only its type
and message are kept.

Everything is bounded: the length of a line, the lines and characters of one package, and the characters of all packages
together. A line that is too long is cut. If another limit is exceeded, the oldest lines are dropped. The limit for one package
is much lower than the limit for all packages, so a package that logs much displaces mainly its own lines.
"""

import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple, cast

from wharfinger.formats.json.value import JsonValue, canonical_json
from wharfinger.formats.redaction.redaction_text import TextRedactor
from wharfinger.queue.lane import current_package
from wharfinger.runtime.package_details import LogLineSnapshot, LogSnapshot

MAX_LINE_CHARS: Final = 4_000
MAX_LINES: Final = 1_000
MAX_PACKAGE_CHARS: Final = 256 * 1024
MAX_CHARS: Final = 16 * 1024 * 1024
MAX_COUNTS: Final = 10_000
CUT: Final = "…"
_OWN: Final = "wharfinger"
_HOOK: Final = "hook"
_HIDDEN_FIELDS: Final = frozenset({_HOOK, "proxyJsonLog"})
_OVERHEAD: Final = 200
"""The number of characters that are added to the size of each line, for the memory that it needs besides its text."""


class _Line(NamedTuple):
    number: int
    time: float
    level: str
    message: str
    hook: str

    @property
    def size(self) -> int:
        return len(self.message) + len(self.hook) + _OVERHEAD


@dataclass(slots=True)
class _Ring:
    lines: list[_Line] = field(default_factory=list)
    """The lines that are kept. This is a list and not a deque, because most packages have few lines, and an empty deque takes
    as much memory as a hundred entries.
    """
    size: int = 0
    dropped: int = 0
    """The number of lines that are not kept any more. Lines are numbered from 1, so this is also the line number of the
    newest dropped line.
    """

    @property
    def count(self) -> int:
        return self.dropped + len(self.lines)


class PackageLogs(logging.Handler):
    """The logging handler that keeps lines of packages. ``secrets_of`` returns the known secrets of a package; ``run``
    identifies this process.
    """

    def __init__(self, secrets_of: Callable[[str], tuple[str, ...]], run: str, max_chars: int = MAX_CHARS) -> None:
        super().__init__()
        self._secrets_of = secrets_of
        self._run = run
        self._max_chars = max_chars
        self._rings: OrderedDict[str, _Ring] = OrderedDict()
        self._order: deque[tuple[int, str]] = deque()
        self._chars = 0
        self._counts: OrderedDict[str, int] = OrderedDict()
        """The last line numbers of packages without kept lines, so that the numbers continue when such a package logs again."""
        self._is_at_work = False

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a log record, if it is about a package."""
        package = current_package()
        # A record that is logged during a redaction must not be kept, because its own redaction might log a record again,
        # without end.
        if not package or self._is_at_work or record.name.partition(".")[0] != _OWN:
            return
        self._is_at_work = True
        try:
            ring = self._rings.get(package) or _Ring(dropped=self._counts.get(package, 0))
            self._keep(package, ring, self._line(ring.count + 1, package, record))
        except Exception:  # noqa: BLE001 - a log line must never fail its caller; logging reports it on stderr
            self.handleError(record)
        finally:
            self._is_at_work = False

    def of(self, package: str, after: int = 0) -> LogSnapshot | None:
        """Return a package's kept lines whose numbers are above ``after``; None if nothing is kept about this package."""
        with self._locked():  # other threads may call `emit` meanwhile
            ring = self._rings.get(package)
            if ring is None:
                return None
            found, dropped = [line for line in ring.lines if line.number > after], ring.dropped
        lines = tuple(
            LogLineSnapshot(line.number, datetime.fromtimestamp(line.time, UTC), line.level, line.message, line.hook)
            for line in found
        )
        return LogSnapshot(package, lines, max(dropped - after, 0), self._run)

    def size(self) -> tuple[int, int]:
        """Return the number of kept lines, and their size in characters, which includes _OVERHEAD characters for each line."""
        with self._locked():
            return sum(len(ring.lines) for ring in self._rings.values()), self._chars

    def empty(self, package: str) -> LogSnapshot:
        """Return an empty log, for a package about which no line is kept."""
        return LogSnapshot(package, (), run=self._run)

    # -- internal

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the handler, which logging also holds during `emit`."""
        self.acquire()
        try:
            yield
        finally:
            self.release()

    def _line(self, number: int, package: str, record: logging.LogRecord) -> _Line:
        fields = _fields(record)
        hook = fields.get(_HOOK)
        more = {key: value for key, value in fields.items() if key not in _HIDDEN_FIELDS}
        text = record.getMessage()
        if more:
            text += f" {canonical_json(more).decode()}"
        if record.exc_info and record.exc_info[1] is not None:
            text += f" ({type(record.exc_info[1]).__name__}: {record.exc_info[1]})"
        # The line is redacted before it is cut, because a part of a secret would not be recognized.
        secrets, is_long = self._secrets_of(package), len(text) > 4 * MAX_LINE_CHARS
        text = TextRedactor(secrets).redact(text[: 4 * MAX_LINE_CHARS])
        if is_long:  # the cut text may end with a part of a secret
            text = text[: max(len(text) - max(map(len, secrets), default=0), 0)] + CUT
        if len(text) > MAX_LINE_CHARS:
            text = text[:MAX_LINE_CHARS] + CUT
        return _Line(number, record.created, record.levelname.lower(), text, hook if isinstance(hook, str) else "")

    def _keep(self, package: str, ring: _Ring, line: _Line) -> None:
        self._rings[package] = ring
        self._counts.pop(package, None)
        ring.lines.append(line)
        ring.size += line.size
        self._chars += line.size
        self._order.append((line.number, package))
        while len(ring.lines) > MAX_LINES or ring.size > MAX_PACKAGE_CHARS:
            self._drop(ring)
        while self._chars > self._max_chars:
            number, name = self._order.popleft()
            oldest = self._rings.get(name)
            if oldest is not None and oldest.lines and oldest.lines[0].number == number:
                self._drop(oldest)
                if not oldest.lines:
                    del self._rings[name]
                    self._counts[name] = oldest.dropped
                    while len(self._counts) > MAX_COUNTS:
                        self._counts.popitem(last=False)
        if len(self._order) > 2 * self._max_chars // _OVERHEAD:
            self._forget_order()

    def _drop(self, ring: _Ring) -> None:
        line = ring.lines.pop(0)
        ring.size -= line.size
        ring.dropped += 1
        self._chars -= line.size

    def _forget_order(self) -> None:
        """Remove the entries of dropped lines from ``_order``."""
        kept = {(line.number, name) for name, ring in self._rings.items() for line in ring.lines}
        self._order = deque(entry for entry in self._order if entry in kept)


def _fields(record: logging.LogRecord) -> Mapping[str, JsonValue]:
    fields: object = getattr(record, "fields", None)
    return cast("Mapping[str, JsonValue]", fields) if isinstance(fields, Mapping) else {}


@contextmanager
def open_package_logs(secrets_of: Callable[[str], tuple[str, ...]], run: str) -> Iterator[PackageLogs]:
    """Keep the lines of packages while the body of the ``with`` statement runs."""
    logs, root = PackageLogs(secrets_of, run), logging.getLogger()
    root.addHandler(logs)
    try:
        yield logs
    finally:
        root.removeHandler(logs)
