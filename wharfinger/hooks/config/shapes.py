"""Types that describe the shape of a value, and the check that reports each difference from a shape in the words of the hook
contract. Pure.

Documents of hooks are small, and the wording of the problems is part of the contract (spec hook-protocol §1.4). Therefore
their schema is a table of the types in this module instead of an OpenAPI document. A problem begins with the path of the wrong
value, without list indexes. All problems of a document are reported together.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from wharfinger.formats.json.value import JsonObject, JsonValue

_MAX_SHOWN: Final = 60
INT64: Final = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Text:
    """A string. If ``choices`` has any items, the string is one of them. If ``filled`` is true, the string is not empty."""

    choices: tuple[str, ...] = ()
    filled: bool = False


@dataclass(frozen=True, slots=True)
class Flag:
    """A boolean."""


@dataclass(frozen=True, slots=True)
class Whole:
    """An integer; ``1.0`` is an integer, too."""

    within: range = INT64


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of ``least`` to ``most`` values, each of the shape ``item``."""

    item: "Shape"
    least: int = 0
    most: int = 10_000


@dataclass(frozen=True, slots=True)
class MapOf:
    """A mapping with any keys; each value has the shape ``item``."""

    item: "Shape"


@dataclass(frozen=True, slots=True)
class Record:
    """A mapping with the keys in ``fields``; other keys are forbidden unless ``free`` is true."""

    fields: "Mapping[str, Shape]"
    required: tuple[str, ...] = ()
    least: int = 0
    free: bool = False


@dataclass(frozen=True, slots=True)
class Forbidden:
    """A property that the contract defines but does not allow here; ``why`` is the reason, for messages."""

    why: str


Shape: TypeAlias = Text | Flag | Whole | ListOf | MapOf | Record | Forbidden


def problems(value: JsonValue, shape: Shape, path: str = "") -> Iterator[str]:
    """Yield the reasons why ``value`` does not have ``shape``, each with its dotted path."""
    match shape:
        case Text():
            yield from _text_problems(value, shape, path)
        case Flag():
            if not isinstance(value, bool):
                yield _mistyped(value, "boolean", path)
        case Whole(within=within):
            yield from _whole_problems(value, within, path)
        case ListOf():
            yield from _list_problems(value, shape, path)
        case MapOf(item=item):
            if not isinstance(value, dict):
                yield _mistyped(value, "object", path)
                return
            for key, inner in value.items():
                yield from problems(inner, item, _joined(path, key))
        case Record():
            if not isinstance(value, dict):
                yield _mistyped(value, "object", path)
                return
            yield from _record_problems(value, shape, path)
        case Forbidden(why=why):
            yield f"{path} is a forbidden property: {why}"
        case _:
            assert_never(shape)


def _text_problems(value: JsonValue, shape: Text, path: str) -> Iterator[str]:
    if not isinstance(value, str):
        yield _mistyped(value, "string", path)
    elif shape.filled and not value:
        yield f"{path} is required"
    elif shape.choices and value not in shape.choices:
        yield f"{path} should be one of [{' '.join(shape.choices)}]"


def _whole_problems(value: JsonValue, within: range, path: str) -> Iterator[str]:
    if whole(value) is None:
        yield _mistyped(value, "integer", path)
    elif whole(value) not in within:
        yield f"{path} should be from {within.start} to {within.stop - 1}"


def _list_problems(value: JsonValue, shape: ListOf, path: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield _mistyped(value, "array", path)
    elif len(value) < shape.least:
        yield f"{path} should have at least {shape.least} items"
    elif len(value) > shape.most:
        yield f"{path} should have at most {shape.most} items, has {len(value)}"
    else:
        for item in value:
            yield from problems(item, shape.item, path)


def _record_problems(value: JsonObject, shape: Record, path: str) -> Iterator[str]:
    for key, inner in value.items():
        known = shape.fields.get(key)
        if known is not None:
            yield from problems(inner, known, _joined(path, key))
        elif not shape.free:
            yield f"{_joined(path, key)} is a forbidden property"
    yield from (f"{_joined(path, key)} is required" for key in shape.required if key not in value)
    if len(value) < shape.least:
        yield f"{path or 'it'} should have at least {shape.least} properties"


def whole(value: JsonValue) -> int | None:
    """Return a whole number as an integer (``1.0`` as ``1``); None for any other value."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _mistyped(value: JsonValue, wanted: str, path: str) -> str:
    return f'{path or "it"} must be of type {wanted}: "{_type(value)}"'


def _type(value: JsonValue) -> str:
    """Return the OpenAPI name of a value's type. The type of an integer is returned as "number", too."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            assert_never(value)


def _joined(path: str, key: str) -> str:
    shown = key if len(key) <= _MAX_SHOWN else key[:_MAX_SHOWN] + "…"
    return f"{path}.{shown}" if path else shown
