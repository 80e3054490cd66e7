"""The fields of a ``Chart.yaml`` as Helm decodes them.

Helm reads the file into a typed document, and is lenient. A number or a boolean in place of a string becomes a string. Keys match
in any case; unknown keys are ignored. If a key occurs several times, the last value is used. All of this is accepted here, too,
but gives a warning, because it is usually a mistake. Documents after the first are ignored without a warning.

The result has Helm's types throughout, whatever the file had. Release records need these types: Helm cannot read a record whose
chart has a number as its version, and such a record even keeps Helm from listing other releases.
"""

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, NamedTuple, TypeAlias, assert_never

from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, as_object, type_name
from wharfinger.formats.yaml.reader import read_first_yaml
from wharfinger.formats.yaml.scalars import float_key

MAX_WARNINGS: Final = 20
_SHOWN: Final = 60
_UINT64: Final = 2**64
_INT64_MIN: Final = -(2**63)


class _Leaf(Enum):
    TEXT = auto()
    """A string; Helm removes unprintable characters from it."""
    RAW = auto()
    """A string that is kept unchanged."""
    FLAG = auto()
    ANY = auto()


class _List(NamedTuple):
    of: "_Shape"
    nulls: bool
    """True if items may be null. A null becomes an empty string; only in a list of ``ANY`` items, it stays null."""


class _Map(NamedTuple):
    of: "_Shape"


class _Struct:
    """An object of known fields; their names match in any case."""

    def __init__(self, fields: "Mapping[str, _Shape]") -> None:
        self.fields: Final = fields
        self.folded: Final = {name.lower(): name for name in fields}


_Shape: TypeAlias = "_Leaf | _List | _Map | _Struct"

_TEXTS: Final = _List(_Leaf.TEXT, nulls=True)
_MAINTAINER: Final = _Struct({"name": _Leaf.TEXT, "email": _Leaf.TEXT, "url": _Leaf.TEXT})
_DEPENDENCY: Final = _Struct(
    {
        "name": _Leaf.TEXT,
        "version": _Leaf.TEXT,
        "repository": _Leaf.TEXT,
        "condition": _Leaf.TEXT,
        "tags": _TEXTS,
        "enabled": _Leaf.FLAG,
        "import-values": _List(_Leaf.ANY, nulls=True),
        "alias": _Leaf.RAW,
    }
)
_CHART: Final = _Struct(
    {
        "name": _Leaf.TEXT,
        "home": _Leaf.TEXT,
        "sources": _TEXTS,
        "version": _Leaf.RAW,
        "description": _Leaf.TEXT,
        "keywords": _TEXTS,
        "maintainers": _List(_MAINTAINER, nulls=False),
        "icon": _Leaf.TEXT,
        "apiVersion": _Leaf.RAW,
        "condition": _Leaf.TEXT,
        "tags": _Leaf.TEXT,
        "appVersion": _Leaf.TEXT,
        "deprecated": _Leaf.FLAG,
        "annotations": _Map(_Leaf.RAW),
        "kubeVersion": _Leaf.TEXT,
        "dependencies": _List(_DEPENDENCY, nulls=False),
        "type": _Leaf.RAW,
    }
)


@dataclass(slots=True)
class _Warnings:
    """The warnings about accepted oddities in a ``Chart.yaml``, at most `MAX_WARNINGS`."""

    found: list[str] = field(default_factory=list)

    def add(self, message: str) -> None:
        if len(self.found) < MAX_WARNINGS:
            self.found.append(message)


def read_metadata(data: bytes, what: str) -> tuple[JsonObject, tuple[str, ...]]:
    """Decode the bytes of a ``Chart.yaml``, and warn of oddities; ``what`` names the file in errors.

    Raises FormatError if Helm could not decode them either, for example if they are not YAML, or have a list in place of a
    string.
    """
    document, repeats = read_first_yaml(data, what=what, exact_floats=True)
    warnings = _Warnings()
    for repeat in repeats:
        warnings.add(f"{repeat}; the last counts")
    return _struct(as_object(document, what), _CHART, "", warnings), tuple(warnings.found)


def _decoded(value: JsonValue, shape: _Shape, where: str, warnings: _Warnings) -> JsonValue:
    if isinstance(shape, _List):
        if not isinstance(value, list):
            raise ShapeError(f"{where}: expected a list, found {type_name(value)}")
        return [_item(each, shape, where, warnings) for each in value]
    if isinstance(shape, _Map):
        found = _object(value, where)
        return {
            key: "" if each is None else _decoded(each, shape.of, f"{where}.{_shown(key)}", warnings)
            for key, each in found.items()
        }
    if isinstance(shape, _Struct):
        return _struct(_object(value, where), shape, f"{where}.", warnings)
    match shape:
        case _Leaf.TEXT:
            return _sanitized(_text(value, where, warnings))
        case _Leaf.RAW:
            return _text(value, where, warnings)
        case _Leaf.FLAG:
            if not isinstance(value, bool):
                raise ShapeError(f"{where}: expected true or false, found {type_name(value)}")
            return value
        case _Leaf.ANY:
            _check_finite(value, where)
            return value
        case _:
            assert_never(shape)


def _item(value: JsonValue, shape: _List, where: str, warnings: _Warnings) -> JsonValue:
    if value is not None:
        return _decoded(value, shape.of, where, warnings)
    if not shape.nulls:
        raise ShapeError(f"{where}: expected an object, found null; remove the empty item")
    return None if shape.of is _Leaf.ANY else ""


def _struct(found: JsonObject, struct: _Struct, prefix: str, warnings: _Warnings) -> JsonObject:
    """Decode an object of known fields.

    If a field is spelled in several ways, the last key in sorted order wins, as in Helm; that is usually the exact spelling.
    """
    decoded: JsonObject = {}
    for key in sorted(found):
        known = struct.folded.get(key.lower())
        where = f"{prefix}{_shown(key)}"
        if known is None:
            close = difflib.get_close_matches(key, struct.fields, n=1, cutoff=0.8) if len(key) <= _SHOWN else []
            warnings.add(
                f"{where}: unknown key, which Helm ignores" + (f"; did you mean {close[0]!r}?" if close else "")
            )
            continue
        if known != key:
            warnings.add(f"{where}: read as {known!r}; correct the spelling")
        if found[key] is not None:
            decoded[known] = _decoded(found[key], struct.fields[known], where, warnings)
    return decoded


def _text(value: JsonValue, where: str, warnings: _Warnings) -> str:
    """Return a string as it is, and a number or a boolean as the string that Helm's decoder makes of it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, int) and _INT64_MIN <= value < _UINT64:
        text = str(value)
    elif isinstance(value, int | float):
        text = _float_text(float(value))
    else:
        raise ShapeError(f"{where}: expected a string, found {type_name(value)}")
    warnings.add(f"{where}: {type_name(value)} is read as the string {text!r}; put it in quotes")
    return text


def _float_text(value: float) -> str:
    """Format a float as Go prints a 32-bit float in the fewest digits: 1.0 is 1, and 1.10 is 1.1."""
    text = float_key(value)
    return {".inf": "+Inf", "-.inf": "-Inf", ".nan": "NaN"}.get(text, text)


def _sanitized(text: str) -> str:
    """Return the text as Helm shows it: white space becomes a space, and unprintable characters are removed."""
    if text.isprintable():
        return text
    spaced = "".join(" " if _is_space(each) else each for each in text)
    return "".join(filter(str.isprintable, spaced))


def _is_space(character: str) -> bool:
    return character.isspace() and not "\x1c" <= character <= "\x1f"


def _check_finite(value: JsonValue, where: str) -> None:
    """Raise ShapeError for a number that has no JSON form, anywhere in the value."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, float) and not math.isfinite(each):
            raise ShapeError(f"{where}: a number that is not finite")
        if isinstance(each, dict):
            pending.extend(each.values())
        elif isinstance(each, list):
            pending.extend(each)


def _object(value: JsonValue, where: str) -> JsonObject:
    if not isinstance(value, dict):
        raise ShapeError(f"{where}: expected an object, found {type_name(value)}")
    return value


def _shown(key: str) -> str:
    return key if key.isprintable() and len(key) <= _SHOWN else repr(key[:_SHOWN])
