"""The values patches of hooks: applied strictly after a run, stored as a short list, and applied again to other values.

There are three functions (spec hook-protocol §3.3), all pure:

`apply_values_patch` is strict: a hook that removes a missing value, or writes outside of its own section, gets an error.

`compacted` stores all changes so far as a list that does not grow with the number of runs. For each path only the last operation
is kept, and an operation on a parent replaces all operations below it. This rule holds for members of objects only. In a list,
``add`` inserts an item and ``remove`` shifts the items after it, so operations in one list are kept in their order. When they
become too many, they are replaced by one operation that sets the complete list. Objects and lists can be distinguished only by
the values that the patch was made for. ``test``, ``move`` and ``copy`` are replaced by their effect on these values, so no stored
operation depends on others that may be dropped.

`reapplied` is tolerant: because settings change, operations that no longer fit (such as one on a member of a missing object)
are skipped. The schema then checks the result.

Invariant: if patches a and b can be applied to ``values`` one after the other, ``reapplied(values, c)`` has the same result,
where c is both patches compacted into one.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.pointers import pointer_of, pointer_steps
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find_str, need_str, to_json, type_name
from wharfinger.kube.json_patch import apply_json_patch, list_index, value_at

MAX_STORED: Final = 10_000
MAX_IN_LIST: Final = 100
"""The largest number of operations on one list that are kept. If there are more, one operation that sets the whole list
replaces them.
"""

FLAG_SUFFIX: Final = "Enabled"
"""The suffix of the path ``/<moduleName>Enabled``. A global hook enables or disables a Module with a patch of this path."""
_FLAG_TEXTS: Final = ("true", "false")

_Path: TypeAlias = tuple[str, ...]


class ValuesPatchError(FormatError):
    """A values patch of a hook is refused; the message names the operation."""


def apply_values_patch(values: JsonObject, patch: Sequence[JsonValue], *, root: str, flags: bool = False) -> JsonObject:
    """Apply ``patch``. The patch may write only to ``/<root>`` and below. If ``flags`` is true, it may also write to
    ``/<moduleName>Enabled``.

    Raises ValuesPatchError.
    """
    for number, operation in enumerate(patch, 1):
        found = as_object(operation, f"values patch: operation {number}")
        if not (flags and _is_flag(found, number)):
            _check_place(found, number, root)
    try:
        patched = as_object(apply_json_patch(values, patch), "the values")
    except FormatError as error:
        raise ValuesPatchError(f"cannot apply values patch: {error}") from error
    if not isinstance(patched.get(root), dict):
        raise ValuesPatchError(
            f"cannot apply values patch: /{root} must stay an object, is {type_name(patched.get(root))}"
        )
    return patched


def _is_flag(operation: JsonObject, number: int) -> bool:
    """Return whether the operation sets or removes a flag of a Module. Raises ValuesPatchError for a wrong flag."""
    steps = pointer_steps(find_str(operation, "path"))
    if len(steps) != 1 or not steps[0].endswith(FLAG_SUFFIX) or steps[0] == FLAG_SUFFIX:
        return False
    if find_str(operation, "op") not in ("add", "remove", "test"):
        raise ValuesPatchError(f"values patch: operation {number}: {steps[0][:80]} can only be added or removed")
    if find_str(operation, "op") == "add" and not _is_flag_value(operation.get("value")):
        raise ValuesPatchError(f"values patch: operation {number}: {steps[0][:80]} must be true or false")
    return True


def _is_flag_value(value: JsonValue) -> bool:
    return isinstance(value, bool) or value in _FLAG_TEXTS


def _check_place(operation: JsonObject, number: int, root: str) -> None:
    names = ("path", "from") if operation.get("op") == "move" else ("path",)
    for name in names:
        place = find_str(operation, name)
        if pointer_steps(place)[:1] != (root,):
            raise ValuesPatchError(
                f"values patch: operation {number}: {name} {place[:80]!r} is not below /{root}, "
                "the only section that this hook may change"
            )


def compacted(stored: Sequence[JsonValue], new: Sequence[JsonValue], values: JsonObject) -> tuple[JsonValue, ...]:
    """Return the operations of ``stored`` and then ``new`` as one patch that is as short as possible. It has only ``add`` and
    ``remove`` operations, and an operation on a parent precedes those on its members.

    ``values`` are the values after ``stored``, to which ``new`` applies. Raises ValuesPatchError if ``new`` does not apply, or
    the result is too long.
    """
    document = to_json(values)
    kept = _Kept()
    for operation in stored:
        kept.add(_Entry.read(operation, document))
    for operation in new:
        for step in _resolved(as_object(operation, "operation"), document):
            entry = _Entry.read(step, document)
            if not _apply(document, entry):
                raise ValuesPatchError(
                    f"cannot compact the values patch: {entry.op} {entry.pointer[:80]} does not apply"
                )
            kept.add(entry)
    _shorten_lists(kept, document)
    entries = kept.entries()
    if len(entries) > MAX_STORED:
        raise ValuesPatchError(f"hooks have changed more than {MAX_STORED} values, which is the limit")
    return tuple(entry.as_operation() for entry in sorted(entries, key=_Entry.place))


def reapplied(values: JsonObject, stored: Sequence[JsonValue]) -> JsonObject:
    """Apply the result of `compacted` to ``values``; operations that do not fit any more are skipped.

    Raises ValuesPatchError for an invalid operation.
    """
    document = to_json(values)
    for operation in stored:
        _apply(document, _Entry.read(operation, document))
    return as_object(document, "the values")


@dataclass(frozen=True, slots=True)
class _Entry:
    """One ``add`` or ``remove`` operation of a stored patch. ``list_at`` is the path of the outermost list that contains the
    target of the operation; None if the target is not inside a list.
    """

    op: str
    pointer: str
    path: _Path
    value: JsonValue
    list_at: _Path | None

    @staticmethod
    def read(operation: JsonValue, document: JsonValue) -> "_Entry":
        found = as_object(operation, "stored patch: operation")
        op, pointer = find_str(found, "op"), need_str(found, "path")
        if op not in ("add", "remove") or not pointer.startswith("/"):
            raise ValuesPatchError(
                f"stored patch: expected add or remove at a JSON pointer, found {op!r} at {pointer[:80]!r}"
            )
        path = pointer_steps(pointer)
        return _Entry(op, pointer, path, found.get("value"), _list_at(document, path))

    def place(self) -> _Path:
        """Return the key by which operations are sorted. All operations inside of one list have the same key, because their
        order matters, and sorting keeps the order of equal keys.
        """
        return self.path if self.list_at is None else self.list_at

    def as_operation(self) -> JsonObject:
        operation: JsonObject = {"op": self.op, "path": self.pointer}
        return {**operation, "value": self.value} if self.op == "add" else operation


def _list_at(document: JsonValue, path: _Path) -> _Path | None:
    """Return the path of the first list that ``path`` leads through; None if it leads through no list. In a part of the path
    that the document does not have, a list is assumed before a step that could be an index.
    """
    for depth, step in enumerate(path):
        if isinstance(document, list):
            return path[:depth]
        if not isinstance(document, dict) or (depth < len(path) - 1 and step not in document):
            rest = range(depth, len(path))
            return next((path[:index] for index in rest if _may_be_index(path[index])), None)
        document = document.get(step)
    return None


def _may_be_index(step: str) -> bool:
    return step == "-" or (step.isascii() and step.isdigit())


def _resolved(operation: JsonObject, document: JsonValue) -> list[JsonObject]:
    """Return the effect of the operation on the current document, as ``add`` and ``remove`` operations."""
    pointer = find_str(operation, "path")
    match find_str(operation, "op"):
        case "test":
            return []
        case "copy" | "move" as op:
            source = find_str(operation, "from")
            found, value = value_at(document, pointer_steps(source))
            if not found:
                raise ValuesPatchError(f"cannot compact the values patch: {op}: the values have no {source[:80]}")
            add: JsonObject = {"op": "add", "path": pointer, "value": to_json(value)}
            return [add] if op == "copy" else [{"op": "remove", "path": source}, add]
        case _:
            return [operation]


def _shorten_lists(kept: "_Kept", document: JsonValue) -> None:
    """For each list that has more than MAX_IN_LIST operations, replace all of these operations by one that sets the complete
    list.
    """
    counts = Counter(entry.list_at for entry in kept.entries() if entry.list_at is not None)
    for place, count in counts.items():
        found, value = value_at(document, place)
        if count > MAX_IN_LIST and found:
            kept.add(_Entry("add", pointer_of(place), place, to_json(value), None))


class _Kept:
    """The entries in order, with an index by their own path and by every parent path."""

    def __init__(self) -> None:
        self._entries: dict[int, _Entry] = {}
        self._below: dict[_Path, set[int]] = {}
        self._last = 0

    def add(self, entry: _Entry) -> None:
        """Add an entry. If it is not in a list, it replaces the entries at its path and below."""
        if entry.list_at is None:
            for number in tuple(self._below.get(entry.path, ())):
                self._drop(number)
        self._last += 1
        self._entries[self._last] = entry
        for prefix in _prefixes(entry.path):
            self._below.setdefault(prefix, set()).add(self._last)

    def entries(self) -> tuple[_Entry, ...]:
        return tuple(self._entries.values())

    def _drop(self, number: int) -> None:
        for prefix in _prefixes(self._entries.pop(number).path):
            self._below[prefix].discard(number)


def _prefixes(path: _Path) -> list[_Path]:
    return [path[:length] for length in range(1, len(path) + 1)]


def _apply(document: JsonValue, entry: _Entry) -> bool:
    """Apply the operation to the document, in place. Return False if the operation does not fit the document, which is then
    unchanged.
    """
    found, holder = value_at(document, entry.path[:-1])
    last = entry.path[-1]
    if not found:
        return False
    if isinstance(holder, dict):
        if entry.op == "add":
            holder[last] = to_json(entry.value)
            return True
        there = last in holder
        holder.pop(last, None)
        return there
    if not isinstance(holder, list):
        return False
    if entry.op == "add":
        index = len(holder) if last == "-" else list_index(last, len(holder))
        if index is not None:
            holder.insert(index, to_json(entry.value))
        return index is not None
    index = list_index(last, len(holder) - 1)
    if index is not None:
        del holder[index]
    return index is not None
