"""A writer of YAML that Kubernetes reads back as the value from which it was written.

The module is the inverse of ``reader``: ``read_yaml(write_yaml(v)) == v``. A string is quoted if Kubernetes would read its plain
form as something else (``y``, ``0777``, ``1e3``), and also if other YAML 1.1 readers would (dates and ``12:30:45``). Text of
several lines is written as a literal block if a reader gets exactly this text from the block. No aliases are written, and only
:func:`write_go_yaml` folds long texts. libyaml's emitter gets a stream of events, so deep nesting does not use the call stack.
"""

import io
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import yaml
from wharfinger.formats.json.value import MAX_DEPTH, JsonObject, JsonValue
from wharfinger.formats.yaml.reader import YamlError
from wharfinger.formats.yaml.scalars import Kind, Scalar, resolve

_WHAT: Final = "YAML to write"
_NO_FOLDING: Final = 2**31 - 1
_OTHER_READERS: Final = re.compile(
    r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"  # sexagesimal
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ].*)?"  # dates
    r"|[-+]?[0-9.][0-9_.]*(?:[eE][-+]?[0-9_]+)?"  # everything else that looks like a number
    r"|=|<<",
    re.ASCII | re.DOTALL,
)
_BLOCK: Final = re.compile(r"[!-~][ -~\u00a1-\u1fff]*(?:\n+[ -~\u00a1-\u1fff]+)*\n?")
"""The texts that a literal block reproduces exactly. They have no control characters, no unusual spaces, no indented first line,
and at most one line break at the end.
"""


def write_yaml(value: JsonValue) -> str:
    """Write one document in block style, keys in the value's own order, ending with a line break.

    Raises YamlError for values that Kubernetes' YAML cannot express: NaN and infinities, integers beyond 64 bits, lone
    surrogates, and nesting beyond MAX_DEPTH.
    """
    out = io.BytesIO()
    try:
        yaml.emit(_events(value), out, Dumper=yaml.CSafeDumper, allow_unicode=True, width=_NO_FOLDING, indent=2)
    except UnicodeEncodeError as error:
        raise YamlError(_WHAT, f"a lone surrogate in {str(error.object)[:40]!r}") from error
    # After a document that is only a plain scalar, libyaml writes the end marker.
    text = out.getvalue().decode()
    return text.removesuffix("...\n") if text.endswith("\n...\n") else text


def write_go_yaml(value: JsonValue) -> str:
    """Write one document as Go's yaml package does.

    Long texts are folded at 80 columns. A string whose plain form would be read as another type is in double quotes. Raises
    YamlError as write_yaml does.
    """
    out = io.BytesIO()
    try:
        yaml.emit(_events(value, _go_style), out, Dumper=yaml.CSafeDumper, allow_unicode=True, width=80, indent=2)
    except UnicodeEncodeError as error:
        raise YamlError(_WHAT, f"a lone surrogate in {str(error.object)[:40]!r}") from error
    text = out.getvalue().decode()
    return text.removesuffix("...\n") if text.endswith("\n...\n") else text


def write_yaml_all(documents: list[JsonValue]) -> str:
    """Write a stream of documents, each after a ``---``. Raises YamlError as write_yaml does."""
    return "".join(f"---\n{write_yaml(document)}" for document in documents)


@dataclass(frozen=True, slots=True)
class _End:
    event: yaml.Event


def _events(value: JsonValue, style: "Callable[[str], str | None] | None" = None) -> Iterator[yaml.Event]:
    yield yaml.StreamStartEvent(encoding="utf-8")
    yield yaml.DocumentStartEvent(explicit=False)
    depth = 0
    todo: list[JsonValue | _End] = [value]
    while todo:
        top = todo.pop()
        if isinstance(top, _End):
            depth -= 1
            yield top.event
        elif isinstance(top, dict | list):
            depth += 1
            if depth > MAX_DEPTH:
                raise YamlError(_WHAT, f"nested deeper than {MAX_DEPTH} levels")
            if isinstance(top, dict):
                yield yaml.MappingStartEvent(None, None, implicit=True, flow_style=not top)
                todo.append(_End(yaml.MappingEndEvent()))
                todo.extend(_flattened(top))
            else:
                yield yaml.SequenceStartEvent(None, None, implicit=True, flow_style=not top)
                todo.append(_End(yaml.SequenceEndEvent()))
                todo.extend(reversed(top))
        else:
            yield _scalar(top, style or _style)
    yield yaml.DocumentEndEvent(explicit=False)
    yield yaml.StreamEndEvent()


def _flattened(mapping: JsonObject) -> Iterator[JsonValue]:
    for key, item in reversed(mapping.items()):
        yield item
        yield key


def _scalar(value: Scalar, style_of: Callable[[str], str | None]) -> yaml.ScalarEvent:
    if not isinstance(value, str):
        return yaml.ScalarEvent(None, None, (True, False), _plain(value))
    style = style_of(value)
    return yaml.ScalarEvent(None, None, (style is None, True), value, style=style)


def _plain(value: Scalar) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not math.isfinite(value):
            raise YamlError(_WHAT, f"{value} has no JSON form")
        # A whole float is read back as an integer. All its digits are written, because its shortest form may be another integer.
        return str(int(value)) if value.is_integer() and abs(value) < 2.0**63 else repr(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise YamlError(_WHAT, "an integer beyond 64 bits")
    return str(value)


def _style(text: str) -> str | None:
    """Return the style of a text: None for plain, otherwise the quotation mark or ``|``. libyaml itself changes the style to
    double quotes if the text needs them.
    """
    if "\n" in text:
        return "|" if _BLOCK.fullmatch(text) else '"'
    found = resolve(text)
    if found.kind is not Kind.STR or _OTHER_READERS.fullmatch(text):
        return "'"
    return None


_BASE_60: Final = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?", re.ASCII)
_TIMESTAMP: Final = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:(?:[Tt]|[ ])[0-9:.]+(?: ?[-+Zz][0-9:]*)?)?", re.ASCII)


def _go_style(text: str) -> str | None:
    if "\n" in text:
        return "|"
    plain = resolve(text).kind is Kind.STR and not _BASE_60.fullmatch(text) and not _TIMESTAMP.fullmatch(text)
    return None if plain else '"'
