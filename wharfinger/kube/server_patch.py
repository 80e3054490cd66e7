"""JSON patches and merge patches of objects, applied in the same way as by the library of the kube-apiserver.

JSON patches here are laxer than RFC 6902, which :mod:`wharfinger.kube.json_patch` follows: a ``replace`` of an absent member
adds the member, an operation without a value has the value null, a test of an absent member against null succeeds, and negative
indexes count from the end. Errors quote the text of a patched object, so the order of members is the library's, too: the
members of every object on the path of an operation, or in a tested value, are sorted. All other objects keep the order of their
members.

Source: evanphx/json-patch v4.
"""

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.pointers import pointer_steps
from wharfinger.formats.json.value import MAX_DEPTH, JsonObject, JsonValue, encode_json

MAX_OPERATIONS: Final = 10_000
MAX_COPIED: Final = 3 * 1024 * 1024
_INDEX: Final = re.compile(r"[+-]?[0-9]{1,9}")


class OperationError(FormatError):
    """An operation of a patch cannot be done. The message is that of the API server's library."""


def json_patched(document: JsonObject, operations: Sequence[JsonObject]) -> JsonValue:
    """Return the document with all operations done, as a new value. Raises OperationError."""
    work = _Work(_copy(document, 0))
    for operation in operations:
        work.operate(operation)
    return work.copy(work.root) if work.moved else work.in_order()


def merge_patched(document: JsonObject, patch: JsonObject) -> JsonObject:
    """Return the document with a merge patch applied, as a new value; the members of all objects that it merges are sorted."""
    merged = {name: value for name, value in document.items() if patch.get(name, 0) is not None}
    for name, value in patch.items():
        before = merged.get(name)
        if value is None:
            continue
        if isinstance(before, dict) and isinstance(value, dict):
            merged[name] = merge_patched(before, value)
        else:
            merged[name] = value if isinstance(before, dict) and not isinstance(value, dict) else _without_nulls(value)
    return dict(sorted(merged.items()))


def _without_nulls(value: JsonValue) -> JsonValue:
    """Return a new value without null members, at any depth; nulls in lists are kept."""
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in sorted(value.items()) if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


@dataclass(slots=True)
class _Work:
    """The document being patched, which nothing else refers to.

    The cost of an operation depends on the size of the values that it handles, not on that of the whole document.
    """

    root: JsonValue
    copied: int = 0
    walked: dict[int, JsonObject] = field(default_factory=dict)
    """The objects that lie on the path of an operation, by their ``id``. When all operations are done, the members of these
    objects are sorted.
    """
    moved: bool = False
    """True if a value was copied or moved, so the document may now be nested too deeply."""

    def copy(self, value: JsonValue) -> JsonValue:
        """Return a copy of the value. In objects that lie on the path of an operation, the members are sorted.

        Raises OperationError if the value is nested too deeply.
        """
        return _copy(value, 0, self.walked)

    def in_order(self) -> JsonValue:
        """Return the document, after sorting the members of each object through which the path of an operation led."""
        for obj in self.walked.values():
            members = sorted(obj.items())
            obj.clear()
            obj.update(members)
        return self.root

    def operate(self, operation: JsonObject) -> None:
        match operation.get("op"):
            case "add":
                value = _copy(operation.get("value"), 0)
                self.add(_pointer(operation, "path"), value, _depth(value))
            case "remove":
                self.remove(_pointer(operation, "path"))
            case "replace":
                self.replace(_pointer(operation, "path"), operation)
            case "move":
                source = _pointer(operation, "from")
                value = self.get(source)
                self.remove(source)
                self.moved = True
                self.add(_pointer(operation, "path"), value)
            case "copy":
                value = self.get(_pointer(operation, "from"))
                self.holder(_pointer(operation, "path"))  # walk through the target before the copy is made
                self.copied += len(encode_json(value))
                if self.copied > MAX_COPIED:
                    raise OperationError(f"copies add up to more than {MAX_COPIED} bytes")
                self.moved = True
                self.add(_pointer(operation, "path"), self.copy(value))
            case "test":
                self.test(_pointer(operation, "path"), operation.get("value"))
            case other:
                raise OperationError(f"Unexpected kind: {other}")

    def holder(self, path: str) -> tuple[JsonObject | list[JsonValue], str]:
        """Return the container of the value at a path, and the last step of the path.

        Remember the objects on the path, because their members are sorted at the end.
        """
        steps = path.split("/")
        if len(steps) < 2 or len(steps) > MAX_DEPTH:
            raise OperationError(f"doc is missing path: {path[:200]}")
        *way, last = pointer_steps(path)
        here = self.root
        for step in way:
            self._walk(here)
            here = _inside(here, step)
        if not isinstance(here, dict | list):
            raise OperationError(f"doc is missing path: {path[:200]}")
        self._walk(here)
        return here, last

    def _walk(self, here: JsonValue) -> None:
        if isinstance(here, dict):
            self.walked[id(here)] = here

    def _walk_all(self, here: JsonValue) -> None:
        """Remember a value that a ``test`` operation read, and all objects in it. When the patch is done, the members of these
        objects are sorted, like the members of the objects on the path of an operation.
        """
        self._walk(here)
        for inner in here.values() if isinstance(here, dict) else here if isinstance(here, list) else ():
            self._walk_all(inner)

    def get(self, path: str) -> JsonValue:
        holder, step = self.holder(path)
        return holder.get(step) if isinstance(holder, dict) else _inside(holder, step)

    def add(self, path: str, value: JsonValue, depth: int = 0) -> None:
        holder, step = self.holder(path)
        _check_depth(path, depth)
        if isinstance(holder, dict):
            holder[step] = value
        else:
            holder.insert(_index(step, len(holder) + 1, end=True), value)

    def replace(self, path: str, operation: JsonObject) -> None:
        value = _copy(operation.get("value"), 0)
        if not path:
            if not isinstance(value, dict | list):
                raise OperationError("replace operation value must be object or array")
            self.root = value
            return
        holder, step = self.holder(path)
        _check_depth(path, _depth(value))
        if isinstance(holder, dict):
            holder[step] = value
        else:
            holder[_index(step, len(holder))] = value

    def remove(self, path: str) -> None:
        holder, step = self.holder(path)
        if isinstance(holder, list):
            holder.pop(_index(step, len(holder)))
        elif step in holder:
            del holder[step]
        else:
            raise OperationError(f"Unable to remove nonexistent key: {step}")

    def test(self, path: str, value: JsonValue) -> None:
        found = self.get(path) if path else self.root
        if not _equal(found, value):
            raise OperationError(f"testing value {path[:200]} failed")
        self._walk_all(found)


def _inside(here: JsonValue, step: str) -> JsonValue:
    if isinstance(here, dict):
        return here.get(step)
    if isinstance(here, list):
        return here[_index(step, len(here))]
    raise OperationError(f"doc is missing path: {step[:200]}")


def _index(step: str, size: int, *, end: bool = False) -> int:
    """Return the list index that a step means in a list of ``size`` items; a negative step counts from the end."""
    if step == "-" and end:
        return size - 1
    if not _INDEX.fullmatch(step):
        raise OperationError(f"value was not a proper array index: '{step[:200]}'")
    index = int(step)
    if not -size <= index < size:
        raise OperationError(f"Unable to access invalid index: {index}")
    return index % size


def _pointer(operation: JsonObject, name: str) -> str:
    path = operation.get(name)
    if not isinstance(path, str):
        raise OperationError(f"operation missing {name} field")
    return path


def _check_depth(path: str, depth: int) -> None:
    if path.count("/") + depth > MAX_DEPTH:
        raise OperationError("nested too deep")


def _depth(value: JsonValue) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


def _copy(value: JsonValue, depth: int, walked: Container[int] = ()) -> JsonValue:
    if depth > MAX_DEPTH:
        raise OperationError("nested too deep")
    if isinstance(value, dict):
        members = sorted(value.items()) if id(value) in walked else value.items()
        return {name: _copy(item, depth + 1, walked) for name, item in members}
    return [_copy(item, depth + 1, walked) for item in value] if isinstance(value, list) else value


def _equal(left: JsonValue, right: JsonValue) -> bool:
    """Return whether values are equal; an integer never equals a float: 1 is not 1.0."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(_equal(*pair) for pair in zip(left, right, strict=True))
    return type(left) is type(right) and left == right
