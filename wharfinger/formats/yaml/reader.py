"""YAML as Kubernetes reads it, for untrusted text.

The reference for a document's meaning is kubectl (``scalars`` handles scalars; ``tree`` handles mappings, merges and aliases).
This reader refuses some texts that kubectl accepts: a duplicate key, a tag that Kubernetes would ignore, a second document where
only one is expected, and text that is not UTF-8. The module ``scalars`` documents another intended difference, in large integers.

A document never reaches PyYAML's composer or constructor: there, 100 kB of ``[`` overflow the C stack, and 635 bytes of merge
keys take hours. libyaml's event stream does not recurse. The tree is built from these events one by one, and every limit
(depth, nodes and characters with aliases written out) is checked before an event is processed.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

import yaml
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import MAX_DEPTH, JsonValue
from wharfinger.formats.yaml.tree import Overflow, Refused, TreeBuilder, TreeLimits

DEFAULT_MAX_BYTES: Final = 4 * 1024 * 1024
MAX_DOCUMENTS: Final = 100_000
"""The largest number of documents in one stream, empty ones included: each takes some microseconds."""


@dataclass(frozen=True, slots=True)
class YamlLimits:
    """The limits for reading one text.

    ``max_bytes`` limits the size of the text. ``max_nodes`` (keys, values, lists and mappings) and ``max_characters`` limit the
    whole stream after each alias is replaced by its content, as in the resulting JSON.
    """

    max_bytes: int = DEFAULT_MAX_BYTES
    max_depth: int = MAX_DEPTH
    max_nodes: int = 1_000_000
    max_characters: int = 4 * DEFAULT_MAX_BYTES


DEFAULT_LIMITS: Final = YamlLimits()


class YamlError(FormatError):
    """The text is not YAML that Kubernetes would read, or is over a limit.

    ``line`` and ``column`` count from 1. They are None if the fault has no single place, for example if the text is too large.
    """

    def __init__(self, what: str, reason: str, line: int | None = None, column: int | None = None) -> None:
        place = "" if line is None else f" line {line}" + ("" if column is None else f", column {column}") + ":"
        super().__init__(f"{what}:{place} {reason}")
        self.line = line
        self.column = column


class YamlLimitError(YamlError):
    """The text exceeds a limit when its aliases are written out."""


def read_yaml(data: bytes | str, *, what: str, limits: YamlLimits = DEFAULT_LIMITS) -> JsonValue:
    """Read exactly one document; ``what`` names the document in errors.

    Empty documents (comments, a trailing ``---``) do not count. Returns None if all documents are empty. Raises YamlError.
    """
    found: JsonValue = None
    for number, (document, line) in enumerate(_documents(data, what, limits), 1):
        if number > MAX_DOCUMENTS:
            raise YamlError(what, f"more than {MAX_DOCUMENTS} documents", line, 1)
        if document is None:
            continue
        if found is not None:
            raise YamlError(what, "found a second document, expected one", line, 1)
        found = document
    return found


def read_first_yaml(
    data: bytes, *, what: str, limits: YamlLimits = DEFAULT_LIMITS, exact_floats: bool = False
) -> tuple[JsonValue, list[str]]:
    """Read the first document, whatever follows it. Return it with warnings about duplicate keys.

    If a key is repeated in a mapping, its last value counts. A warning has the form ``line 3: key "a" already set in map``. With
    ``exact_floats``, a float remains a float even if it is whole (``1.0``) or not finite, for a decoder that turns numbers into
    strings. Raises YamlError.
    """
    repeats: list[str] = []
    for document, _line in _documents(data, what, limits, repeats=repeats, exact_floats=exact_floats):
        return document, repeats
    return None, []


def read_yaml_all(
    data: bytes | str,
    *,
    what: str,
    limits: YamlLimits = DEFAULT_LIMITS,
    max_documents: int = MAX_DOCUMENTS,
    old_booleans: bool = True,
) -> list[JsonValue]:
    """Read a stream of at most ``max_documents``; empty ones are dropped. Raises YamlError.

    Without ``old_booleans``, the words ``y``, ``no``, ``on`` and the like are text, as in YAML 1.2. Everything else is as in
    Kubernetes.
    """
    found: list[JsonValue] = []
    for number, (document, line) in enumerate(_documents(data, what, limits, old_booleans=old_booleans), 1):
        if number > max_documents:
            raise YamlError(what, f"more than {max_documents} documents", line, 1)
        if document is not None:
            found.append(document)
    return found


def read_yaml_documents(
    data: bytes | str, *, what: str, limits: YamlLimits = DEFAULT_LIMITS
) -> list[tuple[JsonValue, int]]:
    """Read a stream as :func:`read_yaml_all` does, and return each document with the line on which it starts.

    A document that follows ``---`` starts on the line of that mark. Raises YamlError.
    """
    found: list[tuple[JsonValue, int]] = []
    for number, (document, line) in enumerate(_documents(data, what, limits), 1):
        if number > MAX_DOCUMENTS:
            raise YamlError(what, f"more than {MAX_DOCUMENTS} documents", line, 1)
        if document is not None:
            found.append((document, line))
    return found


def _documents(
    data: bytes | str,
    what: str,
    limits: YamlLimits,
    *,
    old_booleans: bool = True,
    repeats: list[str] | None = None,
    exact_floats: bool = False,
) -> Iterator[tuple[JsonValue, int]]:
    """Yield each document with its first line; duplicate keys are refused, or added to ``repeats`` if it is given."""
    raw = _utf8(data, what, limits)
    tree_limits = TreeLimits(limits.max_depth, limits.max_nodes, limits.max_characters)
    started_at = 1
    event: yaml.Event | None = None

    def note(key: str) -> None:
        if repeats is not None and len(repeats) < _MOST_REPEATS:
            line = _line_and_column(event.start_mark if event is not None else None)[0] or 1
            repeats.append(f"line {line}: key {json.dumps(key, ensure_ascii=False)} already set in map")

    builder = TreeBuilder(
        tree_limits, old_booleans=old_booleans, on_repeat=None if repeats is None else note, exact_floats=exact_floats
    )
    try:
        next_event = yaml.CSafeLoader(raw).get_event  # yaml.parse takes twice as long
        while not isinstance(event := next_event(), yaml.StreamEndEvent):
            if isinstance(event, _NODE_EVENTS):
                try:
                    builder.feed(event)
                except Overflow as error:
                    raise YamlLimitError(what, str(error), *_line_and_column(event.start_mark)) from error
                except Refused as error:
                    raise YamlError(what, str(error), *_line_and_column(event.start_mark)) from error
            elif isinstance(event, yaml.DocumentStartEvent):
                started_at = _line_and_column(event.start_mark)[0] or 1
            elif isinstance(event, yaml.DocumentEndEvent):
                yield builder.finish(), started_at
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(what, error) from error
    except yaml.reader.ReaderError as error:
        line, column = _place(raw, error.position)
        raise YamlError(what, str(error.reason), line, column) from error
    except UnicodeDecodeError as error:  # a tag's %-escapes may spell invalid UTF-8
        raise YamlError(what, f"a tag is not UTF-8: {error.reason}") from error


_NODE_EVENTS: Final = (yaml.NodeEvent, yaml.CollectionEndEvent)
_MOST_REPEATS: Final = 100
_MOST_TAG_DIRECTIVES: Final = 64
_TAG_DIRECTIVE: Final = re.compile(rb"^%TAG\b", re.MULTILINE)


def has_too_many_directives(raw: bytes) -> bool:
    """Return whether a text has too many %TAG directives.

    libyaml compares each directive with all earlier ones, so many directives would take a long time.
    """
    return raw.count(b"%TAG") > _MOST_TAG_DIRECTIVES and len(_TAG_DIRECTIVE.findall(raw)) > _MOST_TAG_DIRECTIVES


def _utf8(data: bytes | str, what: str, limits: YamlLimits) -> bytes:
    """Return the text as UTF-8 bytes, within the limit, without a byte order mark."""
    if len(data) > limits.max_bytes:
        raise YamlError(what, f"{len(data)} bytes is over the limit of {limits.max_bytes}")
    try:
        if isinstance(data, str):
            raw = data.encode()
        else:
            data.decode()
            raw = data
    except UnicodeDecodeError as error:
        line, column = _place(error.object, error.start)
        raise YamlError(what, f"not UTF-8: {error.reason}", line, column) from error
    except UnicodeEncodeError as error:
        raise YamlError(what, f"a lone surrogate at character {error.start}") from error
    if len(raw) > limits.max_bytes:
        raise YamlError(what, f"{len(raw)} bytes is over the limit of {limits.max_bytes}")
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    if has_too_many_directives(raw):
        raise YamlError(what, f"more than {_MOST_TAG_DIRECTIVES} %TAG directives")
    return raw


def _syntax_error(what: str, error: yaml.MarkedYAMLError) -> YamlError:
    reason = ", ".join(part for part in (error.context, error.problem) if part) or "not YAML"
    return YamlError(what, reason, *_line_and_column(error.problem_mark or error.context_mark))


class _Place(Protocol):
    line: int
    column: int


def _line_and_column(mark: _Place | None) -> tuple[int | None, int | None]:
    """Return the line and the column of a mark, counted from 1, although PyYAML counts from 0; (None, None) without a mark."""
    return (None, None) if mark is None else (mark.line + 1, mark.column + 1)


def _place(raw: bytes, offset: int) -> tuple[int, int]:
    before = raw[:offset]
    line_start = before.rfind(b"\n") + 1
    return before.count(b"\n") + 1, len(before[line_start:].decode("utf-8", "replace")) + 1
