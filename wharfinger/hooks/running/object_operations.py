"""What a hook wants done to objects of the cluster, as it wrote it in KUBERNETES_PATCH_PATH (spec hook-protocol §3.1). Pure.

Documents come from :func:`~wharfinger.hooks.running.results.read_object_patches`, which has bounded them and knows each
operation's name; here each becomes an :data:`Operation`, checked as far as that is possible without a cluster. All of them are
read before any is applied, so that a typing error in the last document does not leave the first ones done.

Kept from the contract: unknown keys are ignored; ``object``, ``mergePatch`` and ``jsonPatch`` may be strings of YAML or JSON;
creations find their target in the object itself. Not kept: a ``jsonPatch`` may begin with an operation that has no value, such
as ``remove``; every operation of a ``jsonPatch`` is looked at, not just the first.
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
from wharfinger.hooks.running.results import OBJECT_PATCHES
from wharfinger.kube.resource import kind_of, name_of, namespace_of

_JSON_PATCH: Final = {
    "add": ("value",),
    "replace": ("value",),
    "test": ("value",),
    "remove": (),
    "move": ("from",),
    "copy": ("from",),
}
"""Operations of RFC 6902 and what each needs beside ``op`` and ``path``."""

_SUBRESOURCE: Final = re.compile(r"[a-z]{1,63}")


class IfThere(StrEnum):
    """What a creation does where the object exists."""

    FAIL = "Create"
    LEAVE = "CreateIfNotExists"
    REPLACE = "CreateOrUpdate"


@dataclass(frozen=True, slots=True)
class Target:
    """The object an operation is about. ``api_version`` "" is the preferred one; ``kind`` as a person would call it."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """``v1/ConfigMap/ns/name``, as failures are headed."""
        return f"{self.api_version}/{self.kind}/{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Create:
    """Create ``object``, wherever it says that it belongs."""

    target: Target
    object: JsonObject
    if_there: IfThere

    def __str__(self) -> str:
        """How a failure begins."""
        return f"Create object {self.target}"


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete; what is gone already is a success. ``wait``: until it is really gone."""

    target: Target
    propagation: Propagation
    wait: bool

    def __str__(self) -> str:
        """How a failure begins."""
        return f"Delete object {self.target}"


@dataclass(frozen=True, slots=True)
class JqPatch:
    """Replace the object by what a jq program makes of it."""

    target: Target
    program: str
    subresource: str
    ignore_missing: bool
    ignore_hook_error: bool

    def __str__(self) -> str:
        """How a failure begins."""
        return f"Filter object {self.target}"


@dataclass(frozen=True, slots=True)
class MergePatch:
    """RFC 7396."""

    target: Target
    patch: JsonObject
    subresource: str
    ignore_missing: bool
    ignore_hook_error: bool

    def __str__(self) -> str:
        """How a failure begins."""
        return f"Patch object {self.target}"


@dataclass(frozen=True, slots=True)
class JsonPatch:
    """RFC 6902."""

    target: Target
    patch: tuple[JsonValue, ...]
    subresource: str
    ignore_missing: bool
    ignore_hook_error: bool

    def __str__(self) -> str:
        """How a failure begins."""
        return f"Patch object {self.target}"


Operation: TypeAlias = Create | Delete | JqPatch | MergePatch | JsonPatch


def read_operations(documents: Iterable[JsonValue], *, hook: str) -> tuple[Operation, ...]:
    """The operations in ``documents``, in order. Raises HookError for the first that is none; nothing is to be applied then."""
    operations: list[Operation] = []
    for number, document in enumerate(documents, 1):
        try:
            operations.append(_operation(as_object(document, "the operation")))
        except FormatError as error:
            why = f"can't validate document: document {number}{_named(document)}: {error}"
            raise HookError(hook, why, file=OBJECT_PATCHES) from error
    return tuple(operations)


def despite_failure(operations: Iterable[Operation]) -> tuple[Operation, ...]:
    """Those that are applied although the hook failed: patches of ``status`` that say so (``ignoreHookError``)."""
    return tuple(
        operation
        for operation in operations
        if isinstance(operation, JqPatch | MergePatch | JsonPatch)
        and operation.ignore_hook_error
        and operation.subresource == "status"
    )


def _named(document: JsonValue) -> str:
    """`` (MergePatch Pod a)``: enough to find the document; not all of it, for what hooks write may be secret."""
    words = [document.get(key) for key in ("operation", "kind", "name")] if isinstance(document, dict) else []
    said = [word[:60] for word in words if isinstance(word, str)]
    return f" ({' '.join(said)})" if said else ""


def _operation(document: JsonObject) -> Operation:
    name = need_str(document, "operation")
    match name:
        case "Create" | "CreateIfNotExists" | "CreateOrUpdate":
            obj = _mapping(document, "object")
            return Create(_target_of(obj, IfThere(name)), obj, IfThere(name))
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
            raise FormatError(f"operation: {name[:60]!r} is none")


def _target(document: JsonObject) -> Target:
    namespace = find_str(document, "namespace")
    return Target(
        find_str(document, "apiVersion"),
        need_str(document, "kind"),
        namespace and need_namespace(namespace, "namespace"),
        need_object_name(need_str(document, "name"), "name"),
    )


def _target_of(obj: JsonObject, if_there: IfThere) -> Target:
    """What is to be created. Only where it must be new may the server think of a name."""
    api_version, kind = kind_of(obj)
    name, namespace = name_of(obj), namespace_of(obj)
    if namespace:
        need_namespace(namespace, "object.metadata.namespace")
    if name or if_there is not IfThere.FAIL:
        need_object_name(name, "object.metadata.name")
    return Target(api_version, kind, namespace, name or find_str(obj, "metadata", "generateName"))


def _options(document: JsonObject) -> tuple[str, bool, bool]:
    """``subresource``, ``ignoreMissingObject``, ``ignoreHookError``."""
    subresource = find_str(document, "subresource").strip("/")
    if subresource and not _SUBRESOURCE.fullmatch(subresource):
        raise FormatError(f"subresource: {subresource[:60]!r} is none, such as status")
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
    """A value given as it is, or as a string of YAML or JSON, whose aliases may not make much more of it than it is."""
    found = document.get(key)
    if found is None:
        raise FormatError(f"{key}: required")
    if not isinstance(found, str):
        return found
    limits = YamlLimits(max_nodes=1_000 + 2 * len(found), max_characters=10_000 + 2 * len(found))
    return read_yaml(found, what=key, limits=limits)
