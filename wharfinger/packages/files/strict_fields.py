"""Accessors for hand-written documents. `closed_object` refuses unknown keys, so that a misspelled key is not silently ignored.

The caller passes the path of the object that it reads (``where``). So a message has the whole path of a value, such as
``requirements.modules.anyOf[1].name``, which helps to find the line. The accessors of :mod:`wharfinger.formats.json.value` know
only the part of the path below this object. The accessors raise ShapeError; their caller, which reads the file, adds the name of
the file.
"""

import difflib
from collections.abc import Collection
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, type_name

_SHOWN: Final = 60
_LONGEST_GUESS: Final = 40
"""The length of the longest unknown key for which a message suggests a similar known key."""


def at(where: str, key: str | int) -> str:
    """Return the path of the value under ``key`` in the value at the path ``where``; "" is the path of the root."""
    if isinstance(key, int):
        return f"{where}[{key}]"
    shown = key if key.isprintable() and len(key) <= _SHOWN else repr(key[:_SHOWN])
    return f"{where}.{shown}" if where else shown


def closed_object(value: JsonValue, where: str, known: Collection[str]) -> JsonObject:
    """Return the value as an object with only ``known`` keys; null counts as an empty object."""
    found = open_object(value, where)
    for key in found:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1, cutoff=0.6) if len(key) <= _LONGEST_GUESS else []
            hint = f"did you mean {close[0]!r}?" if close else f"known keys: {', '.join(known)}"
            raise ShapeError(f"{at(where, key)}: unknown key; {hint}")
    return found


def open_object(value: JsonValue, where: str) -> JsonObject:
    """Return the value as an object with any keys; null counts as an empty object."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ShapeError(f"{where or 'document'}: expected an object, found {type_name(value)}")
    return value


def items(entry: JsonObject, key: str, where: str) -> list[JsonValue]:
    """Return the list under ``key``; empty if it is missing or null."""
    found = entry.get(key)
    if found is None:
        return []
    if not isinstance(found, list):
        raise ShapeError(f"{at(where, key)}: expected a list, found {type_name(found)}")
    return found


def text(entry: JsonObject, key: str, where: str) -> str:
    """Return the string under ``key``, without white space around it; "" if it is missing or null."""
    found = entry.get(key)
    if found is None:
        return ""
    if not isinstance(found, str):
        hint = "" if isinstance(found, dict | list) else "; put it in quotes"
        raise ShapeError(f"{at(where, key)}: expected a string, found {type_name(found)}{hint}")
    return found.strip()


def flag(entry: JsonObject, key: str, where: str) -> bool:
    """Return the boolean under ``key``; False if it is missing or null."""
    found = entry.get(key)
    if found is None:
        return False
    if not isinstance(found, bool):
        raise ShapeError(f"{at(where, key)}: expected true or false, found {type_name(found)}")
    return found


def number(entry: JsonObject, key: str, where: str, *, most: int) -> int | None:
    """Return the integer from 0 to ``most`` under ``key``; None if it is missing or null."""
    found = entry.get(key)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= most:
        raise ShapeError(f"{at(where, key)}: expected an integer from 0 to {most}")
    return found
