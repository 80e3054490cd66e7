"""The object operations that a hook wrote to KUBERNETES_PATCH_PATH (spec hook-protocol §3.1). Pure.

Documents come from :func:`~wharfinger.hooks.running.results.read_object_patches`, which limits their size and checks each
operation's name. Here each document becomes an :data:`Operation`, checked as far as that is possible without a cluster. All
documents are read before any operation is applied, so a mistake in the last document means that no operation is applied.

As in the contract, unknown keys are ignored. ``object``, ``mergePatch`` and ``jsonPatch`` may be strings of YAML or JSON. A
creation takes its target from the object itself.

Two rules differ from the contract. A ``jsonPatch`` may begin with an operation that has no value, such as ``remove``. Every
operation of a ``jsonPatch`` is checked, not just the first.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from wharfinger.cluster.api.client import Propagation
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find_str, need_str, type_name
from wharfinger.formats.yaml.reader import YamlLimits, read_yaml
from wharfinger.hooks.config.object_names import need_namespace, need_object_name
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.results import OBJECT_OPERATIONS, OBJECT_PATCHES
from wharfinger.kube.resource import kind_of, name_of, namespace_of

_JSON_PATCH: Final = {
    "add": ("value",),
    "replace": ("value",),
    "test": ("value",),
    "remove": (),
    "move": ("from",),
    "copy": ("from",),
}
"""The operations of RFC 6902, each with the fields that it needs in addition to ``op`` and ``path``."""

_SUBRESOURCE: Final = re.compile(r"[a-z]{1,63}")


class IfExists(StrEnum):
    """The action of a creation if the object exists already."""

    FAIL = "Create"
    LEAVE = "CreateIfNotExists"
    REPLACE = "CreateOrUpdate"


@dataclass(frozen=True, slots=True)
class Target:
    """The object of an operation. An empty ``api_version`` means the preferred version. ``kind`` is the kind of the object, or
    another name that kubectl accepts for its resource type.
    """

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """Return the object's name for failure messages, such as ``v1/ConfigMap/ns/name``."""
        return f"{self.api_version}/{self.kind}/{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Create:
    """An operation that creates ``object``, with the namespace and the name that the object contains."""

    target: Target
    object: JsonObject
    if_exists: IfExists

    def __str__(self) -> str:
        """Return the text with which an error message about this operation begins."""
        return f"Create object {self.target}"


@dataclass(frozen=True, slots=True)
class Delete:
    """An operation that deletes an object; a missing object is a success. With ``wait``, the operation ends when the object is
    gone.
    """

    target: Target
    propagation: Propagation
    wait: bool

    def __str__(self) -> str:
        """Return the text with which an error message about this operation begins."""
        return f"Delete object {self.target}"


@dataclass(frozen=True, slots=True)
class JqPatch:
    """An operation that replaces the object by the result of a jq program."""

    target: Target
    program: str
    subresource: str
    ignore_missing: bool
    ignore_hook_error: bool

    def __str__(self) -> str:
        """Return the text with which an error message about this operation begins."""
        return f"Filter object {self.target}"


@dataclass(frozen=True, slots=True)
class MergePatch:
    """An operation that applies a merge patch (RFC 7396)."""

    target: Target
    patch: JsonObject
    subresource: str
    ignore_missing: bool
    ignore_hook_error: bool

    def __str__(self) -> str:
        """Return the text with which an error message about this operation begins."""
        return f"Patch object {self.target}"


@dataclass(frozen=True, slots=True)
class JsonPatch:
    """An operation that applies a JSON patch (RFC 6902)."""

    target: Target
    patch: tuple[JsonValue, ...]
    subresource: str
    ignore_missing: bool
    ignore_hook_error: bool

    def __str__(self) -> str:
        """Return the text with which an error message about this operation begins."""
        return f"Patch object {self.target}"


Operation: TypeAlias = Create | Delete | JqPatch | MergePatch | JsonPatch


def read_operations(documents: Iterable[JsonValue], *, hook: str) -> tuple[Operation, ...]:
    """Read the operations in ``documents``, in order. Raises HookError for the first wrong document; in that case, no operation
    may be applied.
    """
    operations: list[Operation] = []
    for number, document in enumerate(documents, 1):
        try:
            operations.append(_operation(as_object(document, "the operation")))
        except FormatError as error:
            why = f"can't validate document: document {number}{_named(document)}: {error}"
            raise HookError(hook, why, file=OBJECT_PATCHES) from error
    return tuple(operations)


def despite_failure(operations: Iterable[Operation]) -> tuple[Operation, ...]:
    """Return the operations to apply although the hook failed: patches of the subresource ``status`` with ``ignoreHookError``."""
    return tuple(
        operation
        for operation in operations
        if isinstance(operation, JqPatch | MergePatch | JsonPatch)
        and operation.ignore_hook_error
        and operation.subresource == "status"
    )


def _named(document: JsonValue) -> str:
    """Return the operation, kind and name of the document, such as `` (MergePatch Pod a)``; "" if it has none of them.

    The rest of the document is not quoted, because hooks may write secrets into it.
    """
    words = [document.get(key) for key in ("operation", "kind", "name")] if isinstance(document, dict) else []
    said = [word[:60] for word in words if isinstance(word, str)]
    return f" ({' '.join(said)})" if said else ""


def _operation(document: JsonObject) -> Operation:
    name = need_str(document, "operation")
    match name:
        case "Create" | "CreateIfNotExists" | "CreateOrUpdate":
            obj = _mapping(document, "object")
            return Create(_target_of(obj, IfExists(name)), obj, IfExists(name))
        case "Delete":
            return Delete(_target(document), Propagation.FOREGROUND, wait=True)
        case "DeleteInBackground":
            return Delete(_target(document), Propagation.BACKGROUND, wait=False)
        case "DeleteNonCascading":
            return Delete(_target(document), Propagation.ORPHAN, wait=False)
        case "JQPatch":
            return JqPatch(_target(document), need_str(document, "jqFilter"), *_options(document))
        case "MergePatch":
            return MergePatch(_target(document), _mapping(document, "mergePatch"), *_options(document))
        case "JSONPatch":
            return JsonPatch(_target(document), _json_patch(document), *_options(document))
        case _:
            raise FormatError(f"operation: expected one of {', '.join(sorted(OBJECT_OPERATIONS))}, found {name[:60]!r}")


def _target(document: JsonObject) -> Target:
    namespace = find_str(document, "namespace")
    return Target(
        find_str(document, "apiVersion"),
        need_str(document, "kind"),
        namespace and need_namespace(namespace, "namespace"),
        need_object_name(need_str(document, "name"), "name"),
    )


def _target_of(obj: JsonObject, if_exists: IfExists) -> Target:
    """Return the target of a creation. The name may be left to the server only if the object must be new (``IfExists.FAIL``)."""
    api_version, kind = kind_of(obj)
    name, namespace = name_of(obj), namespace_of(obj)
    if namespace:
        need_namespace(namespace, "object.metadata.namespace")
    if name or if_exists is not IfExists.FAIL:
        need_object_name(name, "object.metadata.name")
    return Target(api_version, kind, namespace, name or find_str(obj, "metadata", "generateName"))


def _options(document: JsonObject) -> tuple[str, bool, bool]:
    """Return the options of an operation: ``subresource``, ``ignoreMissingObject`` and ``ignoreHookError``."""
    subresource = find_str(document, "subresource").strip("/")
    if subresource and not _SUBRESOURCE.fullmatch(subresource):
        raise FormatError(f"subresource: {subresource[:60]!r} is not a subresource such as status")
    return subresource, _flag(document, "ignoreMissingObject"), _flag(document, "ignoreHookError")


def _flag(document: JsonObject, key: str) -> bool:
    value = document.get(key)
    if not isinstance(value, bool | None):
        raise FormatError(f"{key}: expected a boolean, found {type_name(value)}")
    return value is True


def _mapping(document: JsonObject, key: str) -> JsonObject:
    found = as_object(_written(document, key), key)
    if not found:
        raise FormatError(f"{key}: at least one key is needed")
    return found


def _json_patch(document: JsonObject) -> tuple[JsonValue, ...]:
    found = _written(document, "jsonPatch")
    if not isinstance(found, list) or not found:
        kind = "an empty list" if isinstance(found, list) else type_name(found)
        raise FormatError(f"jsonPatch: expected a list of operations, found {kind}")
    for number, item in enumerate(found):
        _check_patch(as_object(item, f"jsonPatch[{number}]"), f"jsonPatch[{number}]")
    return tuple(found)


def _check_patch(operation: JsonObject, what: str) -> None:
    name = operation.get("op")
    if not isinstance(name, str) or name not in _JSON_PATCH:
        raise FormatError(f"{what}.op: must be one of {', '.join(sorted(_JSON_PATCH))}")
    for key in ("path", *_JSON_PATCH[name]):
        if key not in operation:
            raise FormatError(f"{what}.{key}: required for {name}")
        pointer = operation[key]
        if key != "value" and not (isinstance(pointer, str) and (not pointer or pointer.startswith("/"))):
            raise FormatError(f"{what}.{key}: must be a JSON pointer such as /spec/replicas")


def _written(document: JsonObject, key: str) -> JsonValue:
    """Return a value that is given directly or as a string of YAML or JSON.

    YAML aliases may expand the value only up to a limit.
    """
    found = document.get(key)
    if found is None:
        raise FormatError(f"{key}: required")
    if not isinstance(found, str):
        return found
    limits = YamlLimits(max_nodes=1_000 + 2 * len(found), max_characters=10_000 + 2 * len(found))
    return read_yaml(found, what=key, limits=limits)
