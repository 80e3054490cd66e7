"""The operations on objects that a hook may request. Everything else is refused."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scale import scaled
from wharfinger.cluster.api.client import Propagation
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.object_operations import (
    Create,
    Delete,
    IfExists,
    JqPatch,
    JsonPatch,
    MergePatch,
    Operation,
    Target,
    despite_failure,
    read_operations,
)
from wharfinger.hooks.running.results import OBJECT_OPERATIONS, read_object_patches

CONFIG_MAP: JsonObject = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"namespace": "default", "name": "cm"},
    "data": {"a": "b"},
}
CM_TARGET = Target("v1", "ConfigMap", "default", "cm")
POD: JsonObject = {"kind": "pod", "namespace": "default", "name": "p"}
POD_TARGET = Target("", "pod", "default", "p")


def one(document: JsonObject) -> Operation:
    (operation,) = read_operations([document], hook="h")
    return operation


@pytest.mark.parametrize(
    ("name", "if_exists"),
    [("Create", IfExists.FAIL), ("CreateIfNotExists", IfExists.LEAVE), ("CreateOrUpdate", IfExists.REPLACE)],
)
def test_creations_take_their_target_from_the_object(name: str, if_exists: IfExists) -> None:
    expected = Create(CM_TARGET, CONFIG_MAP, if_exists)
    assert one({"operation": name, "object": CONFIG_MAP, "namespace": "ignored", "subresource": "status"}) == expected
    assert one({"operation": name, "object": json.dumps(CONFIG_MAP)}) == expected
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: default, name: cm}\ndata: {a: b}\n"
    assert one({"operation": name, "object": text}) == expected
    assert str(expected) == "Create object v1/ConfigMap/default/cm"


def test_generated_name_is_described_by_its_prefix() -> None:
    operation = one({"operation": "Create", "object": {"kind": "Job", "metadata": {"generateName": "j-"}}})
    assert str(operation) == "Create object /Job//j-"


@pytest.mark.parametrize(
    ("name", "propagation", "wait"),
    [
        ("Delete", Propagation.FOREGROUND, True),
        ("DeleteInBackground", Propagation.BACKGROUND, False),
        ("DeleteNonCascading", Propagation.ORPHAN, False),
    ],
)
def test_deletions_are_read(name: str, propagation: Propagation, wait: bool) -> None:
    operation = one({"operation": name, **POD, "apiVersion": "v1", "unknown": 1})
    assert operation == Delete(Target("v1", "pod", "default", "p"), propagation, wait)
    assert str(operation) == "Delete object v1/pod/default/p"


def test_patches_are_read_with_their_options() -> None:
    options: JsonObject = {"subresource": "/status", "ignoreMissingObject": True, "ignoreHookError": True}
    jq = one({"operation": "JQPatch", **POD, "jqFilter": ".a = 1", **options})
    assert jq == JqPatch(POD_TARGET, ".a = 1", "status", ignore_missing=True, ignore_hook_error=True)
    assert str(jq) == "Filter object /pod/default/p"
    merge = one({"operation": "MergePatch", **POD, "mergePatch": {"a": None}})
    assert merge == MergePatch(POD_TARGET, {"a": None}, "", ignore_missing=False, ignore_hook_error=False)
    assert one({"operation": "MergePatch", **POD, "mergePatch": "a: null"}) == merge
    remove: JsonObject = {"op": "remove", "path": "/a"}
    patch = one({"operation": "JSONPatch", **POD, "jsonPatch": [remove]})
    assert patch == JsonPatch(POD_TARGET, (remove,), "", ignore_missing=False, ignore_hook_error=False)
    assert one({"operation": "JSONPatch", **POD, "jsonPatch": '[{"op": "remove", "path": "/a"}]'}) == patch
    assert str(merge) == str(patch) == "Patch object /pod/default/p"


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "/a/-", "value": None},
        {"op": "replace", "path": "", "value": {}},
        {"op": "test", "path": "/a~1b", "value": 1},
        {"op": "move", "from": "/a", "path": "/b"},
        {"op": "copy", "from": "/a", "path": "/b", "value": "ignored"},
    ],
)
def test_all_operations_of_rfc_6902_are_read(operation: JsonObject) -> None:
    found = one({"operation": "JSONPatch", **POD, "jsonPatch": [operation]})
    assert isinstance(found, JsonPatch)
    assert found.patch == (operation,)


def test_only_marked_status_patches_apply_after_a_failed_hook() -> None:
    documents: list[JsonValue] = []
    for subresource in ("status", "/status", "scale", ""):
        for ignore in (True, False):
            options: JsonObject = {"subresource": subresource, "ignoreHookError": ignore}
            documents.append({"operation": "MergePatch", **POD, "mergePatch": {"n": len(documents)}, **options})
    documents.append({"operation": "Delete", **POD, "ignoreHookError": True})
    kept = despite_failure(read_operations(documents, hook="h"))
    assert [one.patch for one in kept if isinstance(one, MergePatch)] == [{"n": 0}, {"n": 2}]


def json_patch(*operations: JsonValue) -> JsonObject:
    return {"operation": "JSONPatch", **POD, "jsonPatch": list(operations)}


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ([], "the operation: expected an object, found a list"),
        ({}, "operation: required"),
        ({"operation": "Replace"}, r"\(Replace\): operation: expected one of Create, .*, found 'Replace'"),
        ({"operation": "Create"}, r"document 1 \(Create\): object: required"),
        ({"operation": "Create", "object": {}}, "object: at least one key is needed"),
        ({"operation": "Create", "object": "[]"}, "object: expected an object, found a list"),
        ({"operation": "Create", "object": "a: ["}, "object: line 2"),
        ({"operation": "Create", "object": "a: 1\n---\nb: 1"}, "object: line 2, column 1: found a second document"),
        ({"operation": "Create", "object": {"kind": 1}}, "kind: expected a string"),
        ({"operation": "Create", "object": {"metadata": {"name": []}}}, "metadata.name: expected a string"),
        ({"operation": "Delete", "name": "p"}, r"\(Delete p\): kind: required"),
        ({"operation": "Delete", "kind": "pod"}, r"\(Delete pod\): name: required"),
        ({"operation": "Delete", "kind": "pod", "name": 7}, "name: expected a string, found an integer"),
        ({"operation": "Delete", **POD, "namespace": ["x"]}, "namespace: expected a string"),
        ({"operation": "Delete", **POD, "apiVersion": 1}, "apiVersion: expected a string"),
        ({"operation": "JQPatch", **POD}, r"document 1 \(JQPatch pod p\): jqFilter: required"),
        ({"operation": "MergePatch", **POD}, "mergePatch: required"),
        ({"operation": "MergePatch", **POD, "mergePatch": {}}, "mergePatch: at least one key"),
        ({"operation": "MergePatch", **POD, "mergePatch": "null"}, "mergePatch: expected an object, found null"),
        (
            {"operation": "MergePatch", **POD, "mergePatch": {"a": 1}, "subresource": 1},
            "subresource: expected a string",
        ),
        (
            {"operation": "MergePatch", **POD, "mergePatch": {"a": 1}, "ignoreMissingObject": "yes"},
            "ignoreMissingObject: expected a boolean, found a string",
        ),
        ({"operation": "JSONPatch", **POD}, "jsonPatch: required"),
        (
            json_patch(),
            "jsonPatch: expected a list of operations, found an empty",
        ),
        (
            {"operation": "JSONPatch", **POD, "jsonPatch": "{}"},
            "jsonPatch: expected a list of operations, found an obj",
        ),
        (json_patch("x"), r"jsonPatch\[0\]: expected an object"),
        (
            json_patch({"path": "/a"}),
            r"jsonPatch\[0\].op: must be one of add, copy",
        ),
        (json_patch({"op": ["add"]}), r"jsonPatch\[0\].op: must be one of"),
        (
            {
                "operation": "JSONPatch",
                **POD,
                "jsonPatch": [{"op": "remove", "path": "/a"}, {"op": "add", "path": "/a"}],
            },
            r"jsonPatch\[1\].value: required for add",
        ),
        (json_patch({"op": "remove"}), r"\[0\].path: required for remove"),
        (
            json_patch({"op": "remove", "path": "a"}),
            r"\[0\].path: must be a JSON po",
        ),
        (
            json_patch({"op": "remove", "path": 1}),
            r"\[0\].path: must be a JSON po",
        ),
        (
            json_patch({"op": "move", "path": "/a"}),
            r"\[0\].from: required for move",
        ),
        (
            json_patch({"op": "copy", "path": "/a", "from": 3}),
            r"\[0\].from: must be a JSON pointer",
        ),
    ],
)
def test_invalid_operations_are_refused(document: JsonValue, why: str) -> None:
    with pytest.raises(HookError, match=why) as caught:
        read_operations([document], hook="h")
    assert str(caught.value).startswith("hook h: KUBERNETES_PATCH_PATH: can't validate document: document 1")
    assert not caught.value.transient


def test_one_invalid_document_refuses_all_and_is_numbered() -> None:
    good: JsonObject = {"operation": "Delete", **POD}
    with pytest.raises(HookError, match=r"document 2 \(Delete pod\): name: required"):
        read_operations([good, {"operation": "Delete", "kind": "pod"}, good], hook="h")


def test_errors_do_not_show_values_of_the_document() -> None:
    secret: JsonObject = {"kind": "Secret", "metadata": {"name": 5}, "stringData": {"password": "hunter2"}}
    with pytest.raises(HookError) as caught:
        read_operations([{"operation": "Create", "object": secret}], hook="h")
    assert "hunter2" not in str(caught.value)


def test_expanding_yaml_aliases_are_refused() -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 7)]
    with pytest.raises(HookError, match="object: "):
        read_operations([{"operation": "Create", "object": "\n".join(lines)}], hook="h")


# -- random input


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["apiVersion", "kind", "name", "namespace", "object", "jqFilter", "mergePatch", "jsonPatch", "subresource"]
)
DOCUMENTS = st.builds(
    lambda operation, rest: {"operation": operation, **rest},
    st.sampled_from(sorted(OBJECT_OPERATIONS)) | JSON,
    st.dictionaries(KEYS, JSON, max_size=6),
)


@given(st.lists(DOCUMENTS | JSON, max_size=4))
def test_any_document_is_an_operation_or_refused(documents: list[JsonValue]) -> None:
    try:
        operations = read_operations(documents, hook="h")
    except HookError:
        return
    assert len(operations) == len(documents)
    assert all(" object " in str(operation) for operation in operations)


SEEDS = (
    b'{"operation":"CreateOrUpdate","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}}',
    b"operation: Create\nobject: |\n  apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: &a a, namespace: *a}\n",
    b"operation: JQPatch\nkind: Deployment\nname: x\njqFilter: '.spec.replicas = 1'\nignoreMissingObject: true\n",
    b'{"operation":"JSONPatch","kind":"p","name":"x","jsonPatch":"[{op: remove, path: /a}]","subresource":"/status"}',
    b'{"operation":"MergePatch","kind":"p","name":"x","mergePatch":"{\\"a\\": null}"}---\noperation: Delete',
)


def mutated(draw: random.Random) -> bytes:
    data = bytearray(draw.choice(SEEDS))
    for _ in range(draw.randint(0, 4)):
        at, end = sorted(draw.randrange(len(data) + 1) for _ in range(2))
        match draw.randrange(4):
            case 0:
                del data[at : min(end, at + 12)]
            case 1:
                data[at:at] = bytes(draw.randrange(256) for _ in range(draw.randint(1, 3)))
            case 2:
                data[at:at] = draw.choice(SEEDS)[at : at + 40]
            case _:
                data[at:at] = draw.choice(
                    [b"[]", b"{}", b"null", b'"', b"1", b"\n---\n", b"&a ", b"*a", b": ", b"\\ud800"]
                )
    return bytes(data)


def test_mutated_patch_files_raise_only_the_declared_error() -> None:
    """Reading mutated bytes either gives operations or raises a HookError."""
    draw = random.Random(2024)  # noqa: S311 - the same inputs in every run
    taken = refused = 0
    for _ in range(scaled(100_000, 1_200)):
        try:
            operations = read_operations(read_object_patches(mutated(draw), hook="h"), hook="h")
        except HookError:
            refused += 1
        else:
            taken += bool(operations)
    assert taken > 150
    assert refused > 150


@pytest.mark.parametrize("name", ["?x=1", "a?dryRun=All", "../x", "a\nb", "a b"])
@pytest.mark.parametrize("key", ["name", "namespace", "subresource"])
def test_names_unsafe_in_url_paths_are_refused(key: str, name: str) -> None:
    with pytest.raises(HookError, match=f"{key}: .* is n"):
        one({"operation": "MergePatch", **POD, "mergePatch": {"a": 1}, key: name})


@pytest.mark.parametrize("key", ["name", "namespace"])
def test_names_of_created_objects_unsafe_in_url_paths_are_refused(key: str) -> None:
    metadata: JsonObject = {"name": "a", key: "../kube-system"}
    with pytest.raises(HookError, match=rf"object\.metadata\.{key}: "):
        one({"operation": "Create", "object": {"kind": "Job", "metadata": metadata}})


@pytest.mark.parametrize("name", ["CreateIfNotExists", "CreateOrUpdate"])
def test_create_or_update_and_create_if_not_exists_require_a_name(name: str) -> None:
    with pytest.raises(HookError, match=r"object\.metadata\.name: '' is not a valid name"):
        one({"operation": name, "object": {"kind": "Job", "metadata": {"generateName": "j-"}}})
