"""The templates of ``-o jsonpath=...``, as in kubectl: text, paths in braces, ``{range}`` … ``{end}``, and quoted text.

For example, ``{range .items[*]}{.name}{"\\t"}{.state}{"\\n"}{end}`` prints one line for each item. A text without braces is one
path. Inside of a range, paths start at the item; a path with ``$`` at its beginning starts at the document. A missing field
prints nothing. Pure.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.json_path.path import JsonPathError, Step, evaluate, parse_json_path

_BRACES: Final = re.compile(r"""\{((?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^{}"'])*)\}""")
_RANGE: Final = re.compile(r"range\s+(?P<path>\S.*)", re.DOTALL)
_QUOTED: Final = re.compile(r"""(?P<quote>["'])(?P<text>(?:\\.|(?!(?P=quote))[^\\])*)(?P=quote)""", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r"}
_MOST_RANGES: Final = 8
"""The largest depth to which ranges can be nested."""


@dataclass(frozen=True, slots=True)
class Text:
    """Text that is printed as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class Path:
    """A path. If ``is_absolute`` is True, the path starts at the document even inside of a range."""

    steps: tuple[Step, ...]
    is_absolute: bool


@dataclass(frozen=True, slots=True)
class Range:
    """Parts that are printed once for each value at a path."""

    path: Path
    parts: "tuple[Part, ...]"


Part: TypeAlias = Text | Path | Range


def parse_template(text: str) -> tuple[Part, ...]:
    """Return the parts of a template. Raises JsonPathError."""
    if not text.strip():
        raise JsonPathError("the template is empty; write it as {.field}")
    if "{" not in text:
        return (_path(text),)
    tokens = list(_tokens(text))
    parts, rest = _parts(tokens, 0)
    if rest:
        raise JsonPathError("{end} without {range}")
    return parts


def render_template(parts: Sequence[Part], value: JsonValue) -> str:
    """Return the text of a template for a document. Several values of one path are separated by spaces."""
    return "".join(_rendered(parts, value, value))


def _rendered(parts: Sequence[Part], value: JsonValue, document: JsonValue) -> Iterator[str]:
    for part in parts:
        match part:
            case Text(text):
                yield text
            case Path():
                yield " ".join(_shown(found) for found in _values(part, value, document))
            case Range(path, inner):
                for item in _values(path, value, document):
                    yield from _rendered(inner, item, document)
            case _:
                assert_never(part)


def _values(path: Path, value: JsonValue, document: JsonValue) -> list[JsonValue]:
    return evaluate(path.steps, document if path.is_absolute else value)


def _shown(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _tokens(text: str) -> Iterator[Text | str]:
    """Yield text outside of braces as Text, and the content of braces. Raises JsonPathError."""
    at = 0
    for found in _BRACES.finditer(text):
        yield from _outside(text[at : found.start()])
        yield found[1].strip()
        at = found.end()
    yield from _outside(text[at:])


def _outside(text: str) -> Iterator[Text]:
    if "{" in text or "}" in text:
        raise JsonPathError(f"{text!r}: a brace or a quotation mark is not closed")
    if text:
        yield Text(text)


def _parts(pieces: list[Text | str], depth: int) -> tuple[tuple[Part, ...], bool]:
    """Remove the pieces of a range, up to its ``{end}``, from the list; remove all pieces if there is no ``{end}``.

    Returns the parts that the pieces stand for, and whether the ``{end}`` was found. Raises JsonPathError.
    """
    found: list[Part] = []
    while pieces:
        piece = pieces.pop(0)
        if isinstance(piece, Text):
            found.append(piece)
        elif piece == "end":
            return tuple(found), True
        elif (begun := _RANGE.fullmatch(piece)) is not None:
            if depth >= _MOST_RANGES:
                raise JsonPathError(f"more than {_MOST_RANGES} nested ranges")
            inner, is_ended = _parts(pieces, depth + 1)
            if not is_ended:
                raise JsonPathError(f"{{{piece}}} without {{end}}")
            found.append(Range(_path(begun["path"]), inner))
        elif piece[:1] in {'"', "'"}:
            found.append(Text(_unquoted(piece)))
        else:
            found.append(_path(piece))
    return tuple(found), False


def _path(text: str) -> Path:
    text = text.strip()
    rest = text[1:] if text[:1] in {"$", "@"} else text
    return Path(() if rest == "." else parse_json_path(rest), text.startswith("$"))


def _unquoted(piece: str) -> str:
    found = _QUOTED.fullmatch(piece)
    if found is None:
        raise JsonPathError(f"{piece}: only one quoted text fits into a pair of braces")
    return _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), found["text"])
