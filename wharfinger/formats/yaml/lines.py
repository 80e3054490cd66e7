"""The line of each value in a YAML text, so that messages can name it.

:mod:`~wharfinger.formats.yaml.reader` decides what a document means. This module only finds places in the document, so it
refuses nothing: if a text is not YAML, the places up to the fault are known. A member is on the line of its key. Some values
have no line of their own: values that were merged in, values behind an alias, and values beyond the limits of depth or number.
The line of the nearest value around such a value is returned instead.

Messages name members in two ways: with the indexes of lists, and without them, as in the hook contract
(:meth:`Lines.matching`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import yaml
from wharfinger.formats.yaml.reader import DEFAULT_MAX_BYTES, has_too_many_directives

MAX_PLACES: Final = 100_000
"""The largest number of values of one YAML document for which the line is kept."""
MAX_LEVELS: Final = 100
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_NO_KEY: Final = "?"
"""The text that replaces a YAML key that is a list or a mapping, because a key in JSON can only be a string."""

Path: TypeAlias = tuple[str | int, ...]
"""The path of a value: the keys and indexes that lead to it from the root of the document."""


@dataclass(frozen=True, slots=True)
class Lines:
    """The line of each value in one document; lines count from 1."""

    places: Mapping[Path, int]
    first: int = 1

    def of(self, path: Path) -> int:
        """Return the line of the value, or of the nearest one around it."""
        while path:
            if path in self.places:
                return self.places[path]
            path = path[:-1]
        return self.first

    def matching(self, keys: tuple[str, ...]) -> Iterator[Path]:
        """Yield the path of every member that has these keys on its path. Indexes of lists on the path are ignored. The order
        is that of the text.
        """
        return (path for path in self.places if _keys(path) == keys and path and isinstance(path[-1], str))

    def named(self, text: str) -> int | None:
        """Return the line of the value with this path, in the form of messages: ``a.b[0].c`` or ``a.b.0.c``, without quotes.

        Returns None if no value has this path.
        """
        for path, line in self.places.items():
            if path and text in {_written(path, "[{}]"), _written(path, ".{}")}:
                return line
        return None


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end event has not been read yet."""

    path: Path
    is_mapping: bool
    count: int = 0
    key: str | None = None


@dataclass(slots=True)
class _Reader:
    """A reader of the parser's events of one YAML document; it records the line of each value."""

    places: dict[Path, int] = field(default_factory=dict)
    stack: list[_Open] = field(default_factory=list)
    first: int = 0
    is_empty: bool = True

    def feed(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.CollectionEndEvent):
            self.stack.pop()
            return
        line = 1 if event.start_mark is None else event.start_mark.line + 1
        self.first = self.first or line
        path = self._path(event, line)
        if isinstance(event, yaml.CollectionStartEvent):
            self.stack.append(_Open(path, isinstance(event, yaml.MappingStartEvent)))

    def _path(self, event: yaml.Event, line: int) -> Path:
        """Return the path of the node that begins here; for a key, return the path of its mapping."""
        if not self.stack:
            self.is_empty = isinstance(event, yaml.ScalarEvent) and event.implicit[0] and event.value in _NULLS
            return ()
        around = self.stack[-1]
        if len(around.path) >= MAX_LEVELS:
            return around.path
        if not around.is_mapping:
            path = (*around.path, around.count)
            around.count += 1
            self._place(path, line)
        elif around.key is None:
            around.key = event.value if isinstance(event, yaml.ScalarEvent) else _NO_KEY
            path = around.path
            self._place((*path, around.key), line)
        else:
            path = (*around.path, around.key)
            around.key = None
        return path

    def _place(self, path: Path, line: int) -> None:
        if len(self.places) < MAX_PLACES:
            self.places.setdefault(path, line)


def yaml_lines(data: bytes) -> tuple[Lines, ...]:
    """Return the places in each non-empty document of a text. These are the documents that `read_yaml_all` returns.

    Raises nothing. If the text is not YAML, the places before the fault are returned.
    """
    if has_too_many_directives(data):
        return ()
    found: list[Lines] = []
    reader = _Reader()
    try:
        for event in yaml.parse(data[:DEFAULT_MAX_BYTES].decode("utf-8", "replace"), Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.DocumentEndEvent):
                found += _lines(reader)
                reader = _Reader()
            elif isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
                reader.feed(event)
    except (yaml.YAMLError, UnicodeError):
        found += _lines(reader)
    return tuple(found)


def _lines(reader: _Reader) -> Iterator[Lines]:
    if not reader.is_empty:
        yield Lines(reader.places, reader.first)


def _keys(path: Path) -> tuple[str, ...]:
    return tuple(step for step in path if isinstance(step, str))


def _written(path: Path, index: str) -> str:
    text = ""
    for step in path:
        text += index.format(step) if isinstance(step, int) else f".{step}" if text else step
    return text
