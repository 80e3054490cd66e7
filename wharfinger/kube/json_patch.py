"""JSON Patch (RFC 6902) over JSON Pointers (RFC 6901). Pure: the document is not altered, and shares nothing with the result.

A patch is applied completely or not at all. Patches come from hooks and from clients, so their cost is bounded. The limits are
the number of operations (as in the kube-apiserver), the total size of copies (a list that is copied into itself twenty times
becomes a million lists), and the depth of the result, because other code relies on a bounded depth.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.pointers import pointer_of, pointer_steps
from wharfinger.formats.json.value import MAX_DEPTH, JsonObject, JsonValue, ShapeError, as_object, find_str

MAX_OPERATIONS: Final = 10_000
MAX_COPIED: Final = 3 * 1024 * 1024
"""The limit on the total size of the values that a patch copies or moves to a deeper place, roughly in characters of JSON. The
kube-apiserver has the same limit for copies.
"""

_SHOWN: Final = 200


class JsonPatchError(FormatError):
    """The patch has too many operations, the document is nested too deeply, or (JsonPatchFailedError) an operation failed."""


class JsonPatchFailedError(JsonPatchError):
    """An operation is not valid, or does not fit the document after the preceding operations.

    ``index`` is the operation's place in the patch, counted from 0; ``missing`` is True if the operation needs a value that
    does not exist.
    """

    def __init__(self, message: str, *, index: int, missing: bool) -> None:
        super().__init__(message)
        self.index = index
        self.missing = missing


class _Refused(Exception):  # noqa: N818 - never leaves this module
    """The reason why an operation cannot be done."""

    missing = False


class _Missing(_Refused):
    missing = True


def apply_json_patch(document: JsonValue, patch: Sequence[JsonValue]) -> JsonValue:
    """Return a new document with every operation done in order: add, remove, replace, move, copy, test.

    Any operation that cannot be done, including a ``remove`` of an absent value, raises a JsonPatchFailedError; its message
    names the operation and its pointer. Removing the root leaves null. Raises JsonPatchError for more than MAX_OPERATIONS, or
    for a document that is nested too deeply.
    """
    if len(patch) > MAX_OPERATIONS:
        raise JsonPatchError(f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(patch)}")
    work = _Work()
    try:
        work.root = work.copied(document, 0, free=True)
    except _Refused as error:
        raise JsonPatchError(f"the document to be patched has more than {MAX_DEPTH} nested levels") from error
    for index, item in enumerate(patch):
        try:
            work.operate(as_object(item, "an operation"))
        except (_Refused, ShapeError) as error:
            missing = isinstance(error, _Refused) and error.missing
            raise JsonPatchFailedError(
                f"{_operation_name(index, item)}: {error}", index=index, missing=missing
            ) from error
    return work.root


def list_index(step: str, most: int) -> int | None:
    """Return a step of a pointer as a list index of at most ``most``; None for other steps, such as ``-`` or ``01``."""
    if not step.isascii() or not step.isdigit() or len(step) > 9 or (len(step) > 1 and step.startswith("0")):
        return None
    return int(step) if int(step) <= most else None


def value_at(document: JsonValue, path: Sequence[str]) -> tuple[bool, JsonValue]:
    """Return whether there is a value at the path, and the value."""
    for step in path:
        if isinstance(document, dict) and step in document:
            document = document[step]
        elif isinstance(document, list) and (index := list_index(step, len(document) - 1)) is not None:
            document = document[index]
        else:
            return False, None
    return True, document


def _operation_name(index: int, item: JsonValue) -> str:
    """Return the name of an operation, as far as it can be read: ``operation 3 (remove /spec/a)``."""
    words = [item.get("op"), item.get("path")] if isinstance(item, dict) else []
    described = " ".join(word for word in words if isinstance(word, str) and word)
    return f"operation {index} ({described[:_SHOWN]})" if described else f"operation {index}"


@dataclass(slots=True)
class _Work:
    """The document being patched, which is not shared with other code, and the cost of copies so far."""

    root: JsonValue = None
    spent: int = 0

    def operate(self, operation: JsonObject) -> None:
        name, path = find_str(operation, "op"), _pointer(operation, "path")
        match name:
            case "add":
                self.add(path, self.copied(_value(operation), len(path), free=True))
            case "replace":
                self.replace(path, self.copied(_value(operation), len(path), free=True))
            case "remove":
                self.remove(path)
            case "move":
                self.move(_pointer(operation, "from"), path)
            case "copy":
                self.add(path, self.copied(_get(self.root, _pointer(operation, "from")), len(path), free=False))
            case "test":
                if not _equal(_get(self.root, path), _value(operation)):
                    raise _Refused("the value differs")
            case _:
                raise _Refused(
                    f"{name[:_SHOWN]!r} is not an operation; expected add, remove, replace, move, copy or test"
                )

    def add(self, path: tuple[str, ...], value: JsonValue) -> None:
        if not path:
            self.root = value
            return
        parent, step = _get(self.root, path[:-1]), path[-1]
        if isinstance(parent, dict):
            parent[step] = value
        elif isinstance(parent, list):
            parent.insert(_position(parent, step, path, end=True), value)
        else:
            raise _missing(path)

    def replace(self, path: tuple[str, ...], value: JsonValue) -> None:
        if not path:
            self.root = value
            return
        parent, step = _get(self.root, path[:-1]), path[-1]
        if isinstance(parent, dict) and step in parent:
            parent[step] = value
        elif isinstance(parent, list):
            parent[_position(parent, step, path, end=False)] = value
        else:
            raise _missing(path)

    def remove(self, path: tuple[str, ...]) -> JsonValue:
        if not path:
            found, self.root = self.root, None
            return found
        parent, step = _get(self.root, path[:-1]), path[-1]
        if isinstance(parent, dict) and step in parent:
            return parent.pop(step)
        if isinstance(parent, list):
            return parent.pop(_position(parent, step, path, end=False))
        raise _missing(path)

    def move(self, source: tuple[str, ...], path: tuple[str, ...]) -> None:
        if path[: len(source)] == source and len(path) > len(source):
            raise _Refused(f"{_text(source)} cannot be moved into itself")
        if len(path) > len(source):
            self.copied(_get(self.root, source), len(path), free=False)
        self.add(path, self.remove(source))

    def copied(self, value: JsonValue, depth: int, *, free: bool) -> JsonValue:
        """Return a deep copy of a value that will be ``depth`` levels below the root. With ``free``, its size is not counted.

        Raises _Refused if the copy is too deep, or if copies exceed their limit.
        """
        if depth > MAX_DEPTH or (depth == MAX_DEPTH and isinstance(value, dict | list)):
            raise _Refused(f"leads to more than {MAX_DEPTH} nested levels")
        if not free:
            self.spent += 8 + (len(value) if isinstance(value, str) else 0)
            if self.spent > MAX_COPIED:
                raise _Refused(f"copies add up to more than {MAX_COPIED} bytes")
        if isinstance(value, dict):
            if not free:
                self.spent += sum(map(len, value))
            return {name: self.copied(item, depth + 1, free=free) for name, item in value.items()}
        if isinstance(value, list):
            return [self.copied(item, depth + 1, free=free) for item in value]
        return value


def _value(operation: JsonObject) -> JsonValue:
    if "value" not in operation:
        raise _Refused("it has no value")
    return operation["value"]


def _pointer(operation: JsonObject, name: str) -> tuple[str, ...]:
    text = find_str(operation, name)
    if name not in operation:
        raise _Refused(f"it has no {name!r}")
    if text and not text.startswith("/"):
        raise _Refused(f"{name}: {text[:_SHOWN]!r} is not a JSON pointer; expected a leading /")
    if text.count("/") > MAX_DEPTH:
        raise _Refused(f"{name} is deeper than {MAX_DEPTH} levels")
    return pointer_steps(text)


def _equal(left: JsonValue, right: JsonValue) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(_equal(*pair) for pair in zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)
    return left == right


def _text(path: tuple[str, ...]) -> str:
    return pointer_of(path)[:_SHOWN]


def _missing(path: tuple[str, ...]) -> _Missing:
    return _Missing(f"path {_text(path)} does not exist")


def _position(items: list[JsonValue], step: str, path: tuple[str, ...], *, end: bool) -> int:
    if step == "-" and end:
        return len(items)
    position = list_index(step, len(items) if end else len(items) - 1)
    if position is None:
        raise _missing(path)
    return position


def _get(target: JsonValue, path: tuple[str, ...]) -> JsonValue:
    found, value = value_at(target, path)
    if not found:
        raise _missing(path)
    return value
