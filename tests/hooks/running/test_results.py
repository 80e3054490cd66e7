"""Result files of hooks, with valid and invalid contents. Reading invalid contents raises a HookError."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scale import scaled
from wharfinger.formats.json.value import JsonValue
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.results import (
    CONFIG_VALUES_PATCH,
    METRICS,
    OBJECT_OPERATIONS,
    OBJECT_PATCHES,
    VALUES_PATCH,
    read_metrics,
    read_object_patches,
    read_values_patch,
)
from wharfinger.hooks.watching.json_stream import MAX_BYTES, MAX_DOCUMENTS

Reader = Callable[[bytes], tuple[JsonValue, ...]]

READERS: dict[str, Reader] = {
    OBJECT_PATCHES: lambda data: read_object_patches(data, hook="h"),
    METRICS: lambda data: read_metrics(data, hook="h"),
    VALUES_PATCH: lambda data: read_values_patch(data, hook="h", file=VALUES_PATCH),
    CONFIG_VALUES_PATCH: lambda data: read_values_patch(data, hook="h", file=CONFIG_VALUES_PATCH),
}

DELETE: JsonValue = {"operation": "Delete", "kind": "pod", "namespace": "default", "name": "p"}
MERGE: JsonValue = {
    "operation": "MergePatch",
    "kind": "CronTab",
    "name": "x",
    "mergePatch": {"status": {"phase": "Done"}},
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@pytest.mark.parametrize("data", [b"", b"\n  \n"])
def test_empty_result_files_have_no_documents(reader: Reader, data: bytes) -> None:
    assert reader(data) == ()


@pytest.mark.parametrize("file", READERS)
def test_an_error_names_the_hook_and_the_file(file: str) -> None:
    with pytest.raises(HookError, match=f"hook h: {file}: ") as caught:
        READERS[file](b"{")
    assert (caught.value.hook, caught.value.file, caught.value.transient) == ("h", file, False)


# --- object patches ----------------------------------------------------------------------------------------------------------


DELETE_JSON = b'{"operation":"Delete","kind":"pod","namespace":"default","name":"p"}'
MERGE_JSON = b'{"operation":"MergePatch","kind":"CronTab","name":"x","mergePatch":{"status":{"phase":"Done"}}}'
BOTH_YAML = b"""---
---
{operation: Delete, kind: pod, namespace: default, name: p}
---
# nothing
---
operation: MergePatch
kind: CronTab
name: x
mergePatch: {status: {phase: Done}}
---
"""


@pytest.mark.parametrize(
    "data",
    [DELETE_JSON + MERGE_JSON, DELETE_JSON + b"\n---\n" + MERGE_JSON, BOTH_YAML],
    ids=["json stream", "json in yaml", "yaml"],
)
def test_object_patches_are_read_as_json_or_yaml(data: bytes) -> None:
    assert read_object_patches(data, hook="h") == (DELETE, MERGE)


@pytest.mark.parametrize("operation", sorted(OBJECT_OPERATIONS))
def test_every_operation_of_the_contract_is_known(operation: str) -> None:
    assert read_object_patches(f"operation: {operation}".encode(), hook="h") == ({"operation": operation},)


def test_unquoted_yaml_words_except_booleans_are_text() -> None:
    data = b"operation: MergePatch\nmergePatch: {data: {y: on, n: no}, spec: {paused: true}}\n"
    (patch,) = read_object_patches(data, hook="h")
    assert patch == {
        "operation": "MergePatch",
        "mergePatch": {"data": {"y": "on", "n": "no"}, "spec": {"paused": True}},
    }


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"operation: Replace", "document 1: operation must be one of Create, .*, is 'Replace'"),
        (b"operation: Delete\n---\nkind: pod", "document 2: operation must be one of .*, is missing"),
        (b"operation: 1", "document 1: operation must be one of .*, is an integer"),
        (b"operation: [Delete]", "document 1: operation must be one of .*, is a list"),
        (b"- operation: Delete", "document 1: expected an object, found a list"),
        (b'[{"operation": "Delete"}]', "document 1: expected an object, found a list"),
        (b"just a word", "document 1: expected an object, found a string"),
        (
            b'{"operation": "Delete"',
            "read as YAML because it is not JSON: .*the document that begins in line 1 does not end",
        ),
        (b"a: [", "object patches .read as YAML because it is not JSON: "),
        (b"{}" * (MAX_DOCUMENTS + 1), f"more than {MAX_DOCUMENTS} documents"),
        (b"--- {}\n" * (MAX_DOCUMENTS + 1), f"more than {MAX_DOCUMENTS} documents"),
        (b" " * (MAX_BYTES + 1), "limit"),
        (b"a: " + b"[" * 100_000, "KUBERNETES_PATCH_PATH"),
    ],
)
def test_invalid_object_patches_are_refused(data: bytes, why: str) -> None:
    with pytest.raises(HookError, match=why):
        read_object_patches(data, hook="h")


# --- metrics -----------------------------------------------------------------------------------------------------------------


def test_metrics_are_read_as_a_stream_of_objects() -> None:
    data = b'{"name":"a","action":"set","value":33}\n{"group":"g","action":"expire"}{"name":"b","add":1}'
    assert read_metrics(data, hook="h") == (
        {"name": "a", "action": "set", "value": 33},
        {"group": "g", "action": "expire"},
        {"name": "b", "add": 1},
    )


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"name":"a"}[]', "metrics: document 2: expected an object, found a list"),
        (b"name: a", "expected an object or a list"),
    ],
)
def test_invalid_metrics_are_refused(data: bytes, why: str) -> None:
    with pytest.raises(HookError, match=why):
        read_metrics(data, hook="h")


# --- values patches ----------------------------------------------------------------------------------------------------------


def test_values_patches_are_read_as_operations_and_lists() -> None:
    data = (
        b'{"op":"add","path":"/a","value":null}'
        b'[{"op":"remove","path":"/b"},{"op":"test","path":"/c","value":1}]\n[]'
        b'{"op":"move","from":"/d","path":"/e"}{"op":"copy","from":"/f","path":"/g"}'
    )
    assert read_values_patch(data, hook="h", file=VALUES_PATCH) == (
        {"op": "add", "path": "/a", "value": None},
        {"op": "remove", "path": "/b"},
        {"op": "test", "path": "/c", "value": 1},
        {"op": "move", "from": "/d", "path": "/e"},
        {"op": "copy", "from": "/f", "path": "/g"},
    )


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"op":"replace","path":"/a","value":1}', "operation 1: unsupported patch operation 'replace'; use 'add'"),
        (b'[{"op":"remove","path":"/a"},{"op":"merge"}]', "operation 2: op must be one of add, .*, is 'merge'"),
        (b'{"path":"/a"}', "operation 1: op must be one of .*, is missing"),
        (b'{"op":["add"],"path":"/a"}', "operation 1: op must be one of .*, is a list"),
        (b'{"op":"remove"}', "operation 1: path must be a JSON pointer like /global/a, is missing"),
        (b'{"op":"remove","path":"a"}', "operation 1: path must be a JSON pointer like /global/a, is 'a'"),
        (b'{"op":"remove","path":""}', "operation 1: path must be a JSON pointer"),
        (b'{"op":"remove","path":7}', "operation 1: path must be a JSON pointer like /global/a, is an integer"),
        (b'{"op":"move","path":"/a"}', "operation 1: from must be a JSON pointer like /global/a, is missing"),
        (
            b'{"op":"copy","path":"/a","from":{}}',
            "operation 1: from must be a JSON pointer like /global/a, is an object",
        ),
        (b'{"op":"add","path":"/a"}', "operation 1: 'add' needs a value"),
        (b'{"op":"test","path":"/a"}', "operation 1: 'test' needs a value"),
        (b'[[{"op":"remove","path":"/a"}]]', "operation 1: expected an object, found a list"),
        (b"[1]", "operation 1: expected an object, found an integer"),
        (b"[" + b"{}," * MAX_DOCUMENTS + b"{}]", f"more than {MAX_DOCUMENTS} operations"),
        (b"op: add", "expected an object or a list"),
    ],
)
def test_values_patches_that_the_contract_does_not_allow_are_refused(data: bytes, why: str) -> None:
    with pytest.raises(HookError, match=why):
        read_values_patch(data, hook="h", file=VALUES_PATCH)


# --- hostile -----------------------------------------------------------------------------------------------------------------

OBJECT_SEEDS = (
    b'{"operation":"CreateOrUpdate","object":{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"b"}}}\n',
    b"---\noperation: JQPatch\nkind: Deployment\nname: nginx\njqFilter: '.spec.replicas = 1'\n---\n",
    b"operation: MergePatch\nmergePatch: &a {status: {phase: Done}}\nagain: *a\n<<: *a\n",
)
METRIC_SEEDS = (b'{"name":"dur","action":"observe","value":0.3,"buckets":[0.1,0.5,1],"labels":{}}\n',)
VALUES_SEEDS = (
    b'[{"op":"add","path":"/global/a","value":{"b":["c"]}},{"op":"remove","path":"/x~1y/0"}]\n',
    b'{"op":"move","from":"/a","path":"/b"}{"op":"test","path":"/c","value":1e3}\n',
)
SEEDS = {
    OBJECT_PATCHES: OBJECT_SEEDS,
    METRICS: METRIC_SEEDS,
    VALUES_PATCH: VALUES_SEEDS,
    CONFIG_VALUES_PATCH: VALUES_SEEDS,
}
ALL_SEEDS = OBJECT_SEEDS + METRIC_SEEDS + VALUES_SEEDS
PIECES = (
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b'"',
        b"\\",
        b"\\u",
        b"\\ud800",
        b":",
        b",",
        b"- ",
        b"\n",
        b"\n---\n",
        b"\t",
        b" ",
        b"&a ",
        b"*a",
    ),
    *(
        b"<<: ",
        b"!!binary ",
        b"!!python/object:os.system ",
        b"? ",
        b"| ",
        b"> ",
        b"%YAML 1.1\n",
        b"#",
        b"'",
        b"\x00",
        b"\xff",
    ),
    *(
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
        b"NaN",
        b"-",
        b"1e999",
        b"9" * 40,
        b"null",
        b"~",
        b"true",
        b"{" * 300,
        b"[" * 300,
    ),
)


def mutated(source: random.Random, seeds: tuple[bytes, ...]) -> bytes:
    """Return a seed in which random parts are removed or replaced, or into which other texts are inserted."""
    data = bytearray(source.choice(seeds))
    for _ in range(source.choice((1, 1, 2, 5))):
        at = source.randrange(len(data) + 1)
        match source.randrange(5):
            case 0:
                data[at:at] = source.choice(PIECES)
            case 1:
                del data[at : at + source.randrange(1, 12)]
            case 2:
                data[at : at + 1] = bytes([source.randrange(256)])
            case 3:
                data[at:at] = source.choice(ALL_SEEDS)
            case _:
                data[at:at] = data[source.randrange(len(data) + 1) :][:40]
    return bytes(data)


@pytest.mark.parametrize("file", READERS)
def test_mutated_result_files_raise_only_hook_errors(file: str) -> None:
    source, refused, taken = random.Random(f"results of {file}"), 0, 0  # noqa: S311 - the same inputs every time
    for _ in range(scaled(100_000, 800)):
        try:
            READERS[file](mutated(source, SEEDS[file]))
        except HookError as error:
            assert str(error).startswith(f"hook h: {file}: ")
            refused += 1
        else:
            taken += 1
    assert min(refused, taken) > scaled(100_000, 800) // 100, "the mutations must reach both sides"


@pytest.mark.parametrize("file", READERS)
@given(data=st.binary(max_size=200))
def test_random_bytes_in_result_files_raise_only_hook_errors(file: str, data: bytes) -> None:
    try:
        READERS[file](data)
    except HookError:
        return


def test_empty_documents_count_against_the_document_limit() -> None:
    with pytest.raises(HookError, match=f"more than {MAX_DOCUMENTS} documents"):
        read_object_patches(b"---\n" * (MAX_DOCUMENTS + 1), hook="h")
    assert read_object_patches(b"---\n" * MAX_DOCUMENTS, hook="h") == ()
