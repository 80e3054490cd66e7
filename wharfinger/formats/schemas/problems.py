"""The wording of problems with a value: one short sentence for each keyword of a schema.

A sentence never shows a list or an object. If the parameter ``shown`` is False, a sentence shows nothing of the checked value
but its type, so that secrets do not get into logs and statuses. Foreign text is cut.
"""

import difflib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, type_name
from wharfinger.formats.schemas.document import ValuePath, path_text
from wharfinger.formats.schemas.formats import FORMATS
from wharfinger.formats.schemas.problem import Problem

_LONGEST: Final = 80
_LISTED: Final = 12
_MATCHED: Final = 500
"""The maximum number of known names that are compared with an unknown name to find a similar one for the message."""

_TYPE_NAMES: Final = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding of a validator: a keyword of the schema, the keyword's value, and ``instance``, the value that violates it.

    ``path`` is the path of ``instance``. ``name`` is the name of a missing property (keyword ``required``) or of an unknown one.
    """

    path: ValuePath
    keyword: str
    expected: JsonValue
    instance: JsonValue
    schema: JsonObject
    name: str = ""


def problem_of(finding: Finding, *, shown: bool, patterns: dict[str, str]) -> Problem | None:
    """Return the finding in words; None if there is no sentence for its keyword.

    ``patterns`` maps each pattern to the form in which its author wrote it.
    """
    if finding.keyword == "required":
        return Problem(path_text((*finding.path, finding.name)), "is required")
    if finding.keyword == "additionalProperties":
        return _unknown(finding, shown=shown)
    say = _SENTENCES.get(finding.keyword)
    if say is None:
        return None
    return Problem(path_text(finding.path), say(finding, shown, patterns))


def types_sentence(names: Sequence[str], instance: JsonValue) -> str:
    """Return a sentence such as ``expected a string or an integer, found null``."""
    return f"expected {' or '.join(_TYPE_NAMES.get(name, name) for name in names)}, found {type_name(instance)}"


def _unknown(finding: Finding, *, shown: bool) -> Problem:
    declared = finding.schema.get("properties")
    known = list(declared) if isinstance(declared, dict) else []
    listed = ", ".join(_cut(name) for name in known[:_LISTED]) + (", …" if len(known) > _LISTED else "")
    rest = f"; known: {listed}" if known else "; none are known here"
    if not shown:
        return Problem(path_text(finding.path), f"has a member that is not a known setting{rest}")
    close = _closest(finding.name, known)
    hint = f"; did you mean {close}?" if close else ""
    return Problem(path_text((*finding.path, finding.name)), f"is not a known setting{rest}{hint}")


def _closest(name: str, known: Sequence[str]) -> str:
    if len(name) > _LONGEST:
        return ""
    candidates = {item.lower(): item for item in known[:_MATCHED] if len(item) <= _LONGEST}
    found = difflib.get_close_matches(name.lower(), candidates, 1)
    return candidates[found[0]] if found else ""


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _scalar(value: JsonValue) -> str:
    """Return a scalar as JSON, shortened. For a container or a very long integer, return the name of its type."""
    if isinstance(value, dict | list) or (isinstance(value, int) and value.bit_length() > _LONGEST):
        return type_name(value)
    return _cut(json.dumps(value, ensure_ascii=not (isinstance(value, str) and value.isprintable())))


def _found_text(finding: Finding, *, shown: bool, what: str = "found") -> str:
    if not shown or isinstance(finding.instance, dict | list):
        return ""
    return f", {what} {_scalar(finding.instance)}"


def _type(finding: Finding, shown: bool, patterns: dict[str, str]) -> str:  # noqa: ARG001, FBT001
    names = finding.expected if isinstance(finding.expected, list) else [finding.expected]
    return types_sentence([name for name in names if isinstance(name, str)], finding.instance)


def _enum(finding: Finding, shown: bool, patterns: dict[str, str]) -> str:  # noqa: ARG001, FBT001
    allowed = finding.expected if isinstance(finding.expected, list) else []
    listed = ", ".join(_scalar(item) for item in allowed[:_LISTED])
    more = f" or {len(allowed) - _LISTED} others" if len(allowed) > _LISTED else ""
    text = f"must be {listed}" if len(allowed) == 1 else f"must be one of {listed}{more}"
    close = ""
    if shown and isinstance(finding.instance, str):
        close = _closest(finding.instance, [item for item in allowed if isinstance(item, str)])
    return text + _found_text(finding, shown=shown) + (f"; did you mean {_scalar(close)}?" if close else "")


def _pattern(finding: Finding, shown: bool, patterns: dict[str, str]) -> str:  # noqa: FBT001
    pattern = finding.expected if isinstance(finding.expected, str) else ""
    return f"must match {_cut(patterns.get(pattern, pattern))}{_found_text(finding, shown=shown)}"


def _format(finding: Finding, shown: bool, patterns: dict[str, str]) -> str:  # noqa: ARG001, FBT001
    name = finding.expected if isinstance(finding.expected, str) else ""
    return f"must be {FORMATS.get(name, name)}{_found_text(finding, shown=shown)}"


def _bound(words: str) -> Callable[[Finding, bool, dict[str, str]], str]:
    def sentence(finding: Finding, shown: bool, patterns: dict[str, str]) -> str:  # noqa: ARG001, FBT001
        return f"must be {words} {_scalar(finding.expected)}{_found_text(finding, shown=shown)}"

    return sentence


def _count(words: str, things: str) -> Callable[[Finding, bool, dict[str, str]], str]:
    def sentence(finding: Finding, shown: bool, patterns: dict[str, str]) -> str:  # noqa: ARG001, FBT001
        limit = finding.expected
        noun = things.removesuffix("s") if limit == 1 else things
        size = len(finding.instance) if shown and isinstance(finding.instance, str | list | dict) else None
        return f"must have {words} {_scalar(limit)} {noun}" + ("" if size is None else f", has {size}")

    return sentence


def _fixed(words: str) -> Callable[[Finding, bool, dict[str, str]], str]:
    return lambda *_: words


_SENTENCES: Final[dict[str, Callable[[Finding, bool, dict[str, str]], str]]] = {
    "type": _type,
    "enum": _enum,
    "const": lambda finding, shown, _: f"must be {_scalar(finding.expected)}{_found_text(finding, shown=shown)}",
    "pattern": _pattern,
    "format": _format,
    "minimum": _bound("at least"),
    "maximum": _bound("at most"),
    "exclusiveMinimum": _bound("greater than"),
    "exclusiveMaximum": _bound("less than"),
    "multipleOf": _bound("a multiple of"),
    "minLength": _count("at least", "characters"),
    "maxLength": _count("at most", "characters"),
    "minItems": _count("at least", "items"),
    "maxItems": _count("at most", "items"),
    "minProperties": _count("at least", "members"),
    "maxProperties": _count("at most", "members"),
    "uniqueItems": _fixed("has equal items; each may occur only once"),
    "not": lambda finding, *_: "has a value that is not allowed here" if finding.expected else "is not allowed here",
    "items": _fixed("has more items than are allowed"),
    "falseSchema": _fixed("is not allowed here"),
}
