"""Readers of the files that a hook writes (spec hook-protocol §3). Pure: bytes in, documents or HookError out.

The files are foreign data, even if the package is trusted. The readers limit the size of the files and check the shape that the
contract prescribes. Their errors name the hook, the file and the wrong document. The readers apply nothing: the code that applies
an operation decides about its effect on an object or on values. An empty file contains no operations. A file with any fault is
refused as a whole, because the contract promises that no part of such a file is applied.
"""

from collections.abc import Callable
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, type_name
from wharfinger.formats.yaml.reader import read_yaml_all
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.watching.json_stream import MAX_DOCUMENTS, read_json_stream

OBJECT_PATCHES: Final = "KUBERNETES_PATCH_PATH"
METRICS: Final = "METRICS_PATH"
VALUES_PATCH: Final = "VALUES_JSON_PATCH_PATH"
CONFIG_VALUES_PATCH: Final = "CONFIG_VALUES_JSON_PATCH_PATH"

OBJECT_OPERATIONS: Final = frozenset(
    {
        "Create",
        "CreateIfNotExists",
        "CreateOrUpdate",
        "Delete",
        "DeleteInBackground",
        "DeleteNonCascading",
        "JQPatch",
        "JSONPatch",
        "MergePatch",
    }
)
VALUES_OPERATIONS: Final = frozenset({"add", "remove", "test", "move", "copy"})
"""The operations of RFC 6902 that the contract allows: all but ``replace``.

An ``add`` can do what a ``replace`` does. Unlike a ``replace``, it is one of the operations that stored patches consist of
(``values_patch.compacted``).
"""


def read_object_patches(data: bytes, *, hook: str) -> tuple[JsonValue, ...]:
    """Read KUBERNETES_PATCH_PATH (§3.1): operations as a stream of JSON objects, or as documents of YAML.

    JSON is tried first. If any part is not JSON, the complete file is read as YAML; if that fails, too, the error has both
    reasons. ``on``, ``no`` and ``y`` are text in this YAML, because existing hooks rely on that.
    """
    return tuple(_guarded(hook, OBJECT_PATCHES, lambda: _object_patches(data)))


def read_metrics(data: bytes, *, hook: str) -> tuple[JsonValue, ...]:
    """Read the content of the file METRICS_PATH (spec hook-protocol §3.2): operations as a stream of JSON objects."""

    def read() -> list[JsonValue]:
        documents = read_json_stream(data, what="metrics")
        for number, document in enumerate(documents, 1):
            _object(document, f"metrics: document {number}")
        return documents

    return tuple(_guarded(hook, METRICS, read))


def read_values_patch(data: bytes, *, hook: str, file: str) -> tuple[JsonValue, ...]:
    """Read VALUES_JSON_PATCH_PATH or CONFIG_VALUES_JSON_PATCH_PATH (§3.3), selected by ``file``.

    The file is a stream of JSON Patch operations (RFC 6902), of lists of such operations, or of both; the result is one list.
    """
    return tuple(_guarded(hook, file, lambda: _values_patch(data)))


def _guarded(hook: str, file: str, read: Callable[[], list[JsonValue]]) -> list[JsonValue]:
    try:
        return read()
    except FormatError as error:
        raise HookError(hook, str(error), file=file) from error


def _object_patches(data: bytes) -> list[JsonValue]:
    what = "object patches"
    try:
        documents = read_json_stream(data, what=what)
    except FormatError as error:
        what_yaml = f"{what} (read as YAML because it is not JSON: {error})"
        documents = read_yaml_all(data, what=what_yaml, max_documents=MAX_DOCUMENTS, old_booleans=False)
    for number, document in enumerate(documents, 1):
        where = f"{what}: can't validate document: document {number}"
        _known(_object(document, where), "operation", OBJECT_OPERATIONS, where)
    return documents


def _values_patch(data: bytes) -> list[JsonValue]:
    what = "values patch"
    operations: list[JsonValue] = []
    for document in read_json_stream(data, what=what):
        operations += document if isinstance(document, list) else [document]
        if len(operations) > MAX_DOCUMENTS:
            raise FormatError(f"{what}: more than {MAX_DOCUMENTS} operations")
    for number, operation in enumerate(operations, 1):
        _check_values_operation(_object(operation, f"{what}: operation {number}"), f"{what}: operation {number}")
    return operations


def _check_values_operation(operation: JsonObject, what: str) -> None:
    if operation.get("op") == "replace":
        raise FormatError(f"{what}: unsupported patch operation 'replace'; use 'add', which overwrites")
    kind = _known(operation, "op", VALUES_OPERATIONS, what)
    _pointer(operation, "path", what)
    if kind in {"move", "copy"}:
        _pointer(operation, "from", what)
    if kind in {"add", "test"} and "value" not in operation:
        raise FormatError(f"{what}: '{kind}' needs a value")


def _pointer(operation: JsonObject, key: str, what: str) -> None:
    pointer = operation.get(key)
    if not isinstance(pointer, str) or not pointer.startswith("/"):
        raise FormatError(f"{what}: {key} must be a JSON pointer like /global/a, is {_shown(pointer)}")


def _object(value: JsonValue, what: str) -> JsonObject:
    if not isinstance(value, dict):
        raise FormatError(f"{what}: expected an object, found {type_name(value)}")
    return value


def _known(document: JsonObject, key: str, known: frozenset[str], what: str) -> str:
    found = document.get(key)
    if not isinstance(found, str) or found not in known:
        raise FormatError(f"{what}: {key} must be one of {', '.join(sorted(known))}, is {_shown(found)}")
    return found


def _shown(value: JsonValue) -> str:
    """Return a short form of a foreign value for messages: a string is cut and quoted, None is "missing", and any other value is
    shown as its type.
    """
    if value is None:
        return "missing"
    return repr(value[:60]) if isinstance(value, str) else type_name(value)
