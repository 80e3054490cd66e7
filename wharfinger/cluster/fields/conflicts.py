"""Parsing of apply conflicts: the fields of an object that other managers hold, and these managers.

The API server reports conflicts as text (apimachinery, ``getConflictMessage``): ``conflict with "ann" using v1: .data.v``,
or, if there are several, a line ``conflicts with "ann":`` and a line ``- .data.v`` for each field. A path is written without
escaping (``.metadata.annotations.example.test/a``), so it cannot be split without more information. Therefore the path is
resolved against an object that has the field: each step selects the member whose name the remaining text begins with.

Pure. The text comes from a server, so it is not trusted: text that is not understood is not treated as a path, and a conflict
without paths is not resolved.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from wharfinger.cluster.api.errors import ConflictError
from wharfinger.formats.json.value import JsonError, JsonObject, JsonValue, decode_json
from wharfinger.formats.listing import listed
from wharfinger.kube.resource import ObjectKey

MAX_CONFLICTS: Final = 1000
NAMED: Final = 5
"""The number of fields named in an error."""
_MANAGER: Final = re.compile(r'conflicts? with ("(?:[^"\\]|\\.)*")(?: with subresource "[^"]*")?(?: using [^\s:]+)?')
_ONE: Final = re.compile(r"(?: at \S+)?: (\..*)", re.DOTALL)
_LATER: Final = re.compile(r"^- (\..*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FieldConflict:
    """One field and its holder: ``FieldConflict("ann", ".data.v")``; the field is "" if it is not known."""

    manager: str
    field: str


class FieldConflictError(ConflictError):
    """Other managers own the fields to be changed, and this manager has never owned them. The error is permanent: it remains
    until the other managers give up the fields, or the change leaves them out.
    """

    def __init__(self, key: ObjectKey, conflicts: tuple[FieldConflict, ...]) -> None:
        by: dict[str, list[str]] = {}
        for conflict in conflicts:
            by.setdefault(conflict.manager, []).append(conflict.field or "a field")
        told = "; ".join(
            f"{listed(fields, NAMED)} {'belongs' if len(fields) == 1 else 'belong'} to {manager!r}"
            for manager, fields in sorted(by.items())
        )
        super().__init__(
            409,
            "Conflict",
            f"{key}: {told}; remove the field from the chart, stop the other manager from setting it, or name it in "
            "spec.drift.ignore",
        )
        self.transient = False
        self.conflicts = conflicts


def read_conflicts(message: str) -> tuple[FieldConflict, ...]:
    """Return the conflicts in a message; () if the message is not about conflicts."""
    found: list[FieldConflict] = []
    heads = list(_MANAGER.finditer(message))
    ends = [*(head.start() for head in heads[1:]), len(message)]
    for head, end in zip(heads, ends, strict=False):
        rest = message[head.end() : end]
        manager = _unquoted(head[1])
        one = _ONE.match(rest)
        fields = [one[1].strip()] if one is not None else _LATER.findall(rest)
        found += [FieldConflict(manager, field) for field in fields or [""]]
        if len(found) >= MAX_CONFLICTS:
            break
    return tuple(found[:MAX_CONFLICTS])


def has_field(obj: JsonValue, path: str) -> bool:
    """Return whether an object has a value for the field."""
    return next(_places(obj, path, ()), None) is not None


def without_fields(obj: JsonObject, paths: Iterable[str]) -> JsonObject:
    """Return a copy of the object without the fields at ``paths``. An item of a list is removed only if its own path is
    given.
    """
    places = [place for path in paths for place in _places(obj, path, ()) if place]
    result: JsonValue = obj
    # Later items first: removing an item from a list moves the items after it.
    for place in sorted(set(places), key=_order, reverse=True):
        result = _without(result, place)
    return result if isinstance(result, dict) else obj


Place = tuple[str | int, ...]


def _places(value: JsonValue, path: str, above: Place) -> Iterator[Place]:
    if not path:
        yield above
    elif path[0] == "." and isinstance(value, dict):
        for name, inner in value.items():
            rest = path[1 + len(name) :]
            if path.startswith(name, 1) and rest[:1] in {"", ".", "["}:
                yield from _places(inner, rest, (*above, name))
    elif path[0] == "[" and isinstance(value, list):
        for number, item in enumerate(value):
            for end in _ends(path):
                if _is(item, number, path[1:end]):
                    yield from _places(item, path[end + 1 :], (*above, number))


def _ends(path: str) -> Iterator[int]:
    """Yield the positions at which the bracket at the beginning of a path may close; a key may itself contain "]"."""
    at = path.find("]")
    while at != -1:
        if path[at + 1 : at + 2] in {"", ".", "["}:
            yield at
        at = path.find("]", at + 1)


def _is(item: JsonValue, number: int, element: str) -> bool:
    """Return whether a path's element names this item: ``name="a",port=80``, ``="a"`` (a set's value) or ``0`` (an index)."""
    if element.isascii() and element.isdigit():
        return int(element) == number
    if element.startswith("="):
        return _parsed(element[1:]) == (item,)
    if not isinstance(item, dict):
        return False
    rest = element
    while rest:
        name, equals, text = rest.partition("=")
        value = next((found for end in _commas(text) if (found := _parsed(text[:end])) is not None), None)
        if not equals or value is None or item.get(name, _DEFAULTS.get(name)) != value[0]:
            return False
        end = next(end for end in _commas(text) if _parsed(text[:end]) is not None)
        rest = text[end + 1 :]
    return bool(element)


_DEFAULTS: Final[dict[str, JsonValue]] = {"protocol": "TCP"}
"""The values that the API server assumes for keys of list items, such as ``protocol``, if the manifest leaves them out."""


def _commas(text: str) -> Iterator[int]:
    at = text.find(",")
    while at != -1:
        yield at
        at = text.find(",", at + 1)
    yield len(text)


def _parsed(text: str) -> tuple[JsonValue] | None:
    try:
        return (decode_json(text, max_bytes=100_000, what="a key of a list"),)
    except JsonError:
        return None


def _without(value: JsonValue, place: Place) -> JsonValue:
    if isinstance(value, dict) and isinstance(place[0], str):
        if len(place) == 1:
            return {name: inner for name, inner in value.items() if name != place[0]}
        return {name: _without(inner, place[1:]) if name == place[0] else inner for name, inner in value.items()}
    if isinstance(value, list) and isinstance(place[0], int):
        if len(place) == 1:
            return [item for number, item in enumerate(value) if number != place[0]]
        return [_without(item, place[1:]) if number == place[0] else item for number, item in enumerate(value)]
    return value


def _order(place: Place) -> tuple[tuple[int, int, str], ...]:
    return tuple((0, part, "") if isinstance(part, int) else (1, 0, part) for part in place)


def _unquoted(text: str) -> str:
    value = _parsed(text)
    return value[0] if value is not None and isinstance(value[0], str) else text.strip('"')
