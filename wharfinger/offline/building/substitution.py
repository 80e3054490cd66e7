"""The substitution of variables in built manifests, as requested by ``spec.postBuild`` of a Flux Kustomization.

Of the expressions that Flux documents, these are supported: ``${var}``, a default (``:-`` and ``:=`` for a variable that is
unset or empty, ``-`` and ``=`` for one that is unset), a part (``${var:position:length}``), replacements (``${var/old/new}``,
``${var//old/new}``), and the case (``^``, ``^^``, ``,``, ``,,``). ``$${`` is a literal ``${``. A variable that is not set is
empty. Substitution works on the text of a manifest, so a value can become a number.
"""

import re
from collections.abc import Mapping
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object, find_str
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.formats.yaml.writer import write_yaml

OPT_OUT: Final = "kustomize.toolkit.fluxcd.io/substitute"
MAX_DEPTH: Final = 10
"""The largest depth to which an expression may be nested in the default values of other expressions."""
MAX_TEXT: Final = 16 * 1024 * 1024
"""The largest number of characters that expressions may add to one manifest."""
_NAME: Final = re.compile(r"[_A-Za-z][_A-Za-z0-9]*")
_PART: Final = re.compile(r":\s*(-?\d+)(?::\s*(\d+))?\Z")
_CASES: Final = ("^^", ",,", "^", ",")


class SubstitutionError(FormatError):
    """An expression cannot be read or is not supported, or the values are too long."""


def substituted(obj: JsonObject, variables: Mapping[str, str]) -> JsonObject:
    """Return an object with its variables replaced; an object that opts out is returned unchanged. Raises FormatError."""
    if not variables or _opts_out(obj):
        return obj
    text = write_yaml(obj)
    if "${" not in text:
        return obj
    replaced = substitute(text, variables)
    if replaced == text:
        return obj
    return as_object(read_yaml(replaced, what="the manifest after substitution"), "the manifest")


def substitute(text: str, variables: Mapping[str, str], depth: int = 0) -> str:
    """Return a text with its expressions replaced. Raises SubstitutionError."""
    if depth > MAX_DEPTH:
        raise SubstitutionError(f"expressions are nested more than {MAX_DEPTH} deep")
    pieces: list[str] = []
    position = size = 0
    while (start := text.find("${", position)) >= 0:
        if start > 0 and text[start - 1] == "$":  # $${ is a literal
            pieces.append(text[position : start - 1] + "${")
            position = start + 2
            continue
        end = _end(text, start + 2)
        pieces += [text[position:start], _value(text[start + 2 : end], variables, depth)]
        position = end + 1
        size += len(pieces[-1])
        if size > MAX_TEXT:
            raise SubstitutionError(f"the values of variables have more than {MAX_TEXT} characters; use smaller ones")
    pieces.append(text[position:])
    return "".join(pieces)


def _end(text: str, start: int) -> int:
    """Return the position of the closing brace of the expression that begins at ``start``."""
    open_braces = 1
    for position in range(start, len(text)):
        if text.startswith("${", position):
            open_braces += 1
        elif text[position] == "}":
            open_braces -= 1
            if not open_braces:
                return position
    raise SubstitutionError(f"an expression has no end: ${{{text[start : start + 40]!r}")


def _value(expression: str, variables: Mapping[str, str], depth: int) -> str:
    match = _NAME.match(expression)
    if match is None:
        raise SubstitutionError(f"${{{expression[:80]}}} is not a valid variable; write $${{ for a literal ${{")
    value, rest = variables.get(match[0]), expression[match.end() :]
    if not rest:
        return value or ""
    for operator in (":-", ":=", "-", "="):
        if rest.startswith(operator):
            is_absent = not value if operator.startswith(":") else value is None
            return substitute(rest[len(operator) :], variables, depth + 1) if is_absent else value or ""
    if part := _PART.match(rest):
        return _cut(value or "", int(part[1]), part[2])
    if rest.startswith("/"):
        every = rest.startswith("//")
        old, _, new = rest[2 if every else 1 :].partition("/")
        return (value or "").replace(old, new, -1 if every else 1) if old else value or ""
    if rest in _CASES:
        return _cased(value or "", rest)
    raise SubstitutionError(f"${{{expression[:80]}}}: {rest[:10]!r} is not supported here")


def _cut(value: str, position: int, length: str | None) -> str:
    start = max(len(value) + position, 0) if position < 0 else position
    return value[start:] if length is None else value[start : start + int(length)]


def _cased(value: str, operator: str) -> str:
    change = str.upper if "^" in operator else str.lower
    return change(value) if len(operator) > 1 else change(value[:1]) + value[1:]


def _opts_out(obj: JsonObject) -> bool:
    return any(find_str(obj, "metadata", where, OPT_OUT) == "disabled" for where in ("labels", "annotations"))
