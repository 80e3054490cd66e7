"""Functions of text. Positions are counted in characters."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Final, cast

from wharfinger.control_plane.cel.library.formatting import formatted
from wharfinger.control_plane.cel.values import operations
from wharfinger.control_plane.cel.values.values import CelError, Implementation, Value
from wharfinger.control_plane.wire.field_errors import quoted
from wharfinger.kube.patterns import found, matches, pattern_problem
from wharfinger.kube.re2_library import TooLongError

_SPACES: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


def texts(*values: Value) -> tuple[str, ...]:
    """Return values that must be text. Raises CelError."""
    if not all(isinstance(value, str) for value in values):
        raise CelError(operations.NO_OVERLOAD)
    return cast("tuple[str, ...]", values)


def whole(value: Value) -> int:
    """Return the value if it is an int. Raises CelError for any other value."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise CelError(operations.NO_OVERLOAD)
    return int(value)


def _matches(text: Value, pattern: Value) -> Value:
    one, other = texts(text, pattern)
    problem = pattern_problem(other)
    if problem:
        raise CelError(problem)
    return matches(other, one)


def _find(text: Value, pattern: Value) -> Value:
    return next(_all_found(text, pattern), "")


def _find_all(text: Value, pattern: Value, most: Value = -1) -> Value:
    limit = whole(most)
    return list(islice(_all_found(text, pattern), limit if limit >= 0 else None))


def _all_found(text: Value, pattern: Value) -> Iterator[Value]:
    one, other = texts(text, pattern)
    problem = pattern_problem(other)
    if problem:
        raise CelError(f"Illegal regex: {problem}")
    return _bounded(found(other, one))


def _bounded(matching: Iterator[str]) -> Iterator[Value]:
    try:
        yield from matching
    except TooLongError as error:
        raise CelError(str(error)) from error


def _char_at(text: Value, place: Value) -> Value:
    (one,), index = texts(text), whole(place)
    if not 0 <= index <= len(one):
        raise CelError(f"index out of range: {index}")
    return one[index : index + 1]


def _replace(text: Value, old: Value, new: Value, count: Value = -1) -> Value:
    one, before, after = texts(text, old, new)
    return one.replace(before, after, whole(count))


def _split(text: Value, by: Value, count: Value = -1) -> Value:
    (one, between), most = texts(text, by), whole(count)
    if most == 0:
        return []
    if not between:
        parts = list(one)
        return [*parts[: most - 1], "".join(parts[most - 1 :])] if 0 < most < len(parts) else parts
    return one.split(between, most - 1 if most > 0 else -1)


def _substring(text: Value, start: Value, end: Value = None) -> Value:
    (one,), first = texts(text), whole(start)
    last = len(one) if end is None else whole(end)
    if end is not None and first > last:
        raise CelError(f"invalid substring range. start: {first}, end: {last}")
    if not 0 <= first <= len(one):
        raise CelError(f"index out of range: {first}")
    if not 0 <= last <= len(one):
        raise CelError(f"index out of range: {last}")
    return one[first:last]


def _case(fold: Callable[[str], str]) -> Callable[[Value], Value]:
    def run(text: Value) -> Value:
        (one,) = texts(text)
        return "".join(fold(char) if char.isascii() else char for char in one)

    return run


def _joined(items: Value, between: Value = "") -> Value:
    found = operations.as_items(items)
    if found is None:
        raise CelError(operations.NO_OVERLOAD)
    parts = list(found)
    wrong = next((part for part in parts if not isinstance(part, str)), None)
    if wrong is not None:
        raise CelError(f"join: invalid input: {wrong}")
    return texts(between)[0].join(texts(*parts))


def index_of(text: str, wanted: str, start: int = 0) -> int:
    """Return the first position of ``wanted`` in ``text``, at ``start`` or after, or -1."""
    if not wanted:
        return start
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    return text.find(wanted, start)


def last_index_of(text: str, wanted: str, start: int | None = None) -> int:
    """Return the last position of ``wanted`` in ``text``, at ``start`` or before, or -1."""
    if start is None:
        return len(text) if not wanted else text.rfind(wanted)
    if not wanted:
        return start
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    return text.rfind(wanted, 0, start + len(wanted))


TEXTS: Final[Mapping[str, Implementation]] = {
    "contains": lambda text, part: texts(text, part)[1] in texts(text, part)[0],
    "startsWith": lambda text, part: texts(text, part)[0].startswith(texts(part)[0]),
    "endsWith": lambda text, part: texts(text, part)[0].endswith(texts(part)[0]),
    "matches": _matches,
    "find": _find,
    "findAll": _find_all,
    "charAt": _char_at,
    "lowerAscii": _case(str.lower),
    "upperAscii": _case(str.upper),
    "replace": _replace,
    "split": _split,
    "substring": _substring,
    "trim": lambda text: texts(text)[0].strip(_SPACES),
    "join": _joined,
    "strings.quote": lambda text: quoted(texts(text)[0]),
    "format": formatted,
}
