"""JSONPath in CustomResourceDefinitions (printer columns, scale paths, selectable fields) and on the command line.

The module supports what definitions use (client-go's ``util/jsonpath`` without templates): fields (with ``\\.`` for a dot in a
name), ``['field']``, ``[0]``, ``[-1]``, ``[*]`` and filters ``[?(@.type=="Ready")]`` with ``==`` and ``!=``.
"""

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonValue, find


class JsonPathError(FormatError):
    """The path cannot be parsed."""


@dataclass(frozen=True, slots=True)
class Field:
    """The step ``.name``: the member with this name."""

    name: str


@dataclass(frozen=True, slots=True)
class Index:
    """The step ``[0]``: the item at this position; a negative position counts from the end."""

    position: int


@dataclass(frozen=True, slots=True)
class Every:
    """The step ``[*]``: all items of a list, or all values of an object."""


@dataclass(frozen=True, slots=True)
class Filter:
    """The step ``[?(@.a.b=="x")]``: the items whose field at ``path`` equals ``value`` or, if ``equal`` is False, does not
    equal it.
    """

    path: tuple[str, ...]
    equal: bool
    value: str


Step: TypeAlias = Field | Index | Every | Filter

_STEP: Final = re.compile(
    r"""\.(?P<field>(?:\\.|[^.\[\]\\])+)
    |\[(?P<index>-?[0-9]{1,18})\]
    |\[(?P<every>\*)\]
    |\[(?P<quote>['"])(?P<quoted>.*?)(?P=quote)\]
    |\[\?\(\s*@(?P<path>(?:\.[^.\s=!]+)+)\s*(?P<operator>==|!=)\s*(?P<mark>['"]?)(?P<value>.*?)(?P=mark)\s*\)\]""",
    re.VERBOSE,
)


def parse_json_path(text: str) -> tuple[Step, ...]:
    """Return the steps of a path such as ``.status.conditions[?(@.type=="Ready")].status``. Raises JsonPathError."""
    steps: list[Step] = []
    position = 0
    while position < len(text):
        found = _STEP.match(text, position)
        if found is None:
            raise JsonPathError(f"{text!r}: cannot be read from character {position} on; write it as .field[0].field")
        steps.append(_step(found))
        position = found.end()
    return tuple(steps)


def _step(found: re.Match[str]) -> Step:
    if found["field"] is not None:
        name = re.sub(r"\\(.)", r"\1", found["field"])
        return Every() if name == "*" else Field(name)
    if found["index"] is not None:
        return Index(int(found["index"]))
    if found["every"] is not None:
        return Every()
    if found["quoted"] is not None:
        return Field(found["quoted"])
    return Filter(tuple(found["path"].removeprefix(".").split(".")), found["operator"] == "==", found["value"])


def evaluate(steps: tuple[Step, ...], value: JsonValue) -> list[JsonValue]:
    """Return all values at the path; a missing field has no values."""
    values = [value]
    for step in steps:
        values = [reached for item in values for reached in _reach(step, item)]
    return values


def _reach(step: Step, value: JsonValue) -> list[JsonValue]:
    match step:
        case Field(name):
            return [value[name]] if isinstance(value, dict) and name in value else []
        case Index(position):
            return [value[position]] if isinstance(value, list) and -len(value) <= position < len(value) else []
        case Every():
            return list(value) if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
        case Filter(path, equal, wanted):
            items = value if isinstance(value, list) else []
            return [item for item in items if (_plain(find(item, *path)) == wanted) == equal]


def _plain(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
