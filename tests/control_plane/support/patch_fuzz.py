"""Random patches of every type, valid and invalid, against objects of several kinds, and rules for the stored result.

One input is a few bytes that seed the choice of a kind and of some patches. Each input begins with a newly created object, so
its result does not depend on earlier inputs.
"""

import random
from collections.abc import Callable
from functools import cache
from typing import Final

from tests.control_plane.support.bench import (
    config_maps,
    deployment,
    deployments,
    made,
    new_backend,
    served,
    thing,
    widgets,
)
from wharfinger.control_plane.api.by_kind.validation import validate
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.kinds.type_shapes import ListTypes, Relation
from wharfinger.control_plane.merging.typed_fields import by_element
from wharfinger.control_plane.storage.interface import Key
from wharfinger.control_plane.verbs.options import WriteOptions
from wharfinger.control_plane.verbs.patching import BUILTIN_PATCHES, CUSTOM_PATCHES, PatchType, patch
from wharfinger.control_plane.wire.decoding import decoded
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, encode_json, find, find_list, find_object, find_str
from wharfinger.kube.field_sets import FieldPath, FieldSet

_MANAGERS: Final = ("one", "two", "three")
_WORDS: Final = (
    "a",
    "b",
    "x",
    "main",
    "80",
    "1",
    "http",
    "TCP",
    "Opaque",
    "1Gi",
    "eA==",
    "a.b/c",
    "2024-01-01T00:00:00Z",
)
_PARTS: Final = ("metadata", "labels", "annotations", "finalizers", "spec", "data", "status", "template", "name", "odd")


class RefusedPatchError(FormatError):
    """Every patch of an input was refused."""


def run(data: bytes) -> None:
    """Run one input. Raises RefusedPatchError if no patch was accepted, and AssertionError if the stored object breaks a rule."""
    rng = random.Random(data)  # noqa: S311 - repeatable on purpose
    backend, targets = _cluster()
    kind, first, key = rng.choice(targets)
    backend.put(key, first)
    taken = 0
    for _ in range(rng.randint(1, 4)):
        type_ = rng.choice(CUSTOM_PATCHES if kind.kind.custom else BUILTIN_PATCHES)
        options = WriteOptions(rng.choice(_MANAGERS), dry_run=rng.random() < 0.1, force=rng.random() < 0.5)
        subresource = "status" if kind.version.status and rng.random() < 0.2 else ""
        try:
            patch(backend, kind, "default", "a", subresource, type_, _patch(rng, kind, first, type_), options)
        except StatusError as error:
            assert error.code in {400, 403, 409, 413, 422, 500}, error
        else:
            taken += 1
        check(backend, kind)
    if not taken:
        raise RefusedPatchError("all of them")


@cache
def _cluster() -> tuple[Backend, list[tuple[Served, JsonObject, Key]]]:
    backend = new_backend()
    maps, apps, custom = config_maps(backend), deployments(backend), widgets(backend, subresources={"status": {}})
    secrets, services = served(backend, "", "v1", "secrets"), served(backend, "", "v1", "services")
    accounts = served(backend, "", "v1", "serviceaccounts")
    ports: JsonValue = [{"name": "http", "port": 80}, {"name": "b", "port": 81, "protocol": "UDP"}]
    objects = [
        (maps, thing(maps, data={"a": "1", "b": "2"}, metadata={"labels": {"a": "1"}, "finalizers": ["a.b/c"]})),
        (apps, deployment(apps)),
        (secrets, thing(secrets, stringData={"a": "1"})),
        (services, thing(services, spec={"ports": ports, "selector": {"a": "1"}})),
        (accounts, thing(accounts, secrets=[{"name": "a"}], imagePullSecrets=[{"name": "b"}])),
        (custom, thing(custom, spec={"size": 1})),
    ]
    found: list[tuple[Served, JsonObject, Key]] = []
    for kind, obj in objects:
        stored = made(backend, kind, obj)
        found.append((kind, stored, backend.key(kind, "default", "a")))
    return backend, found


def _patch(rng: random.Random, kind: Served, first: JsonObject, type_: PatchType) -> bytes:
    """Return the body of a random patch."""
    if rng.random() < 0.03:
        return rng.choice(
            [b"", b"[]", b"null", b"{", b'{"a":1,"a":2}', b"a: b: c", b'[{"op":"add","path":"","value":{}}]']
        )
    if type_ is PatchType.JSON:
        return encode_json([_operation(rng, first) for _ in range(rng.randint(1, 3))])
    body = _tree(rng, kind.version.lists, 0, strategic=type_ is PatchType.STRATEGIC)
    obj = body if isinstance(body, dict) else {}
    if type_ is PatchType.APPLY and rng.random() < 0.9:
        metadata = obj.get("metadata")
        named: JsonObject = {**(metadata if isinstance(metadata, dict) else {}), "name": "a"}
        named.pop("managedFields", None)
        obj = {**obj, "apiVersion": kind.api_version, "kind": kind.kind.kind, "metadata": named}
    return encode_json(obj)


def _operation(rng: random.Random, first: JsonObject) -> JsonObject:
    path = ""
    here: JsonValue = first
    while isinstance(here, dict | list) and here and rng.random() < 0.8:
        steps = list(here.items()) if isinstance(here, dict) else [(str(at), item) for at, item in enumerate(here)]
        step, here = rng.choice(steps)
        path += f"/{step.replace('~', '~0').replace('/', '~1')}"
    if rng.random() < 0.3:
        path += f"/{rng.choice([*_WORDS, '-', '-1', '0'])}"
    op = rng.choice(["add", "remove", "replace", "test", "move", "copy"])
    return {"op": op, "path": path, "from": rng.choice([path, "/metadata/labels", "/spec"]), "value": _value(rng, 2)}


def _tree(rng: random.Random, lists: ListTypes, depth: int, *, strategic: bool) -> JsonValue:
    """Return a random value that mostly fits the types in ``lists``."""
    if depth > 7 or rng.random() < 0.04:
        return _value(rng, 1)
    if lists.relation in {Relation.SCALAR, Relation.QUANTITY, Relation.UNKNOWN}:
        return rng.choice([_value(rng, 0), rng.choice(_WORDS), rng.randint(0, 90), rng.random() < 0.5])
    if lists.relation in {Relation.SET, Relation.KEYED, Relation.ATOMIC_LIST}:
        items = [_tree(rng, lists.item, depth + 1, strategic=strategic) for _ in range(rng.randint(0, 3))]
        for item in items:
            if isinstance(item, dict) and rng.random() < 0.9:
                item.update(
                    {
                        key: rng.choice(["a", "b", "main"]) if key == "name" else rng.choice([80, 81, "a"])
                        for key in lists.keys
                    }
                )
            if isinstance(item, dict) and strategic and rng.random() < 0.1:
                item["$patch"] = rng.choice(["delete", "replace", "merge"])
        return list(items)
    names = list(lists.fields) if lists.fields else list(_WORDS)
    chosen = rng.sample(names, min(len(names), rng.randint(0, 3)))
    if depth < 3:
        chosen += [name for name in _PARTS if name in lists.fields and rng.random() < 0.5]
    tree = {name: _tree(rng, lists.field(name), depth + 1, strategic=strategic) for name in chosen}
    if strategic and rng.random() < 0.1:
        field = rng.choice(names)
        extra: list[tuple[str, JsonValue]] = [
            ("$patch", rng.choice(["replace", "delete"])),
            ("$retainKeys", list(chosen)),
            (f"$setElementOrder/{field}", [{"name": "a"}, {"name": "main"}]),
            (f"$deleteFromPrimitiveList/{field}", ["a.b/c", "a"]),
        ]
        name, value = rng.choice(extra)
        tree[name] = value
    return tree


def _value(rng: random.Random, depth: int) -> JsonValue:
    plain: list[Callable[[], JsonValue]] = [
        lambda: None, lambda: rng.choice(_WORDS), lambda: rng.randint(-2, 2**33), lambda: 1.5, lambda: True, dict, list,
    ]  # fmt: skip
    if depth and rng.random() < 0.5:
        return {rng.choice([*_WORDS, *_PARTS]): _value(rng, depth - 1) for _ in range(2)}
    return rng.choice(plain)()


_DROPPED = "f:schedulingGroup"
"""A field behind a disabled feature: the server records its writer, and drops the field before it stores the object."""


def check(backend: Backend, kind: Served) -> None:
    """Check that the stored object is valid, that its fields have the right types, and that managers of updates own only
    existing fields.
    """
    stored = backend.get(kind, "default", "a")
    if stored is None:  # a patch removed the last finalizer of the deleted object
        return
    if not kind.kind.custom:
        assert decoded(stored, kind.version.lists).strict == ()
    wrong = [error for error in validate(kind.kind, stored) if error.field != "metadata.generateName"]
    assert wrong == []  # updates validate the rest of metadata, too
    assert find_str(stored, "metadata", "name") == "a"
    for entry in find_list(stored, "metadata", "managedFields"):
        fields = FieldSet.from_fields_v1(find_object(entry, "fieldsV1"))
        held = [path for path in fields.paths() if _DROPPED not in path]
        absent = [path for path in held if not holds(stored, path, kind.version.lists)]
        assert not absent or find(entry, "operation") == "Apply", (absent, stored)


def holds(value: JsonValue, path: FieldPath, lists: ListTypes) -> bool:
    """Return whether a document has a value at a field path."""
    for element in path:
        lists = lists.of(value)
        if element.startswith("f:"):
            if not isinstance(value, dict) or element[2:] not in value:
                return False
            value, lists = value[element[2:]], lists.field(element[2:])
        else:
            found = by_element(value, lists).get(element) if isinstance(value, list) else None
            if not found:
                return False
            value, lists = found[0], lists.item
    return True
