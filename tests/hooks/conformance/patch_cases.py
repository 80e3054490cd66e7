"""Documents for KUBERNETES_PATCH_PATH and the resulting clusters (spec hook-protocol §3.1): rows for case 8.

Each row starts with these objects in ``default``: the ConfigMaps ``a`` (``v: "1"``, ``w: "1"``, with a label) and ``owned``
(owned by ``a``), and the Widget ``one`` (``spec.size`` is 1; the kind has a status subresource).
"""

from dataclasses import dataclass, field
from textwrap import dedent

from wharfinger.formats.json.value import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class PatchCase:
    """A document with operations on objects, and its expected result.

    ``data`` has the expected data of each ConfigMap that the operations change, or None if they delete it. ``widget`` has the
    expected fields of the Widget. ``failures`` are the beginnings of the messages of the expected failures, in order.
    """

    text: str
    data: dict[str, JsonObject | None] = field(default_factory=dict)
    widget: JsonObject | None = None
    failures: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()


BEFORE: JsonObject = {"v": "1", "w": "1"}


def configmap(name: str, operation: str, data: str = "{v: '2'}") -> str:
    metadata = f"{{namespace: default, name: {name}}}"
    return f"operation: {operation}\nobject: {{apiVersion: v1, kind: ConfigMap, metadata: {metadata}, data: {data}}}\n"


def yaml(text: str) -> str:
    return dedent(text).lstrip()


CREATIONS: dict[str, PatchCase] = {
    "Create creates a missing object": PatchCase(configmap("new", "Create"), {"new": {"v": "2"}}),
    "Create of JSON": PatchCase(
        '{"operation":"Create","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"new"},'
        '"data":{"k":"<&>"}}}',
        {"new": {"k": "<&>"}},
    ),
    "Create of a string of YAML": PatchCase(
        yaml("""
        operation: Create
        object: |
          apiVersion: v1
          kind: ConfigMap
          metadata: {namespace: default, name: new}
          data: {k: text}
        """),
        {"new": {"k": "text"}},
    ),
    "Create of a string of JSON": PatchCase(
        '{"operation":"Create","object":"{\\"apiVersion\\":\\"v1\\",\\"kind\\":\\"ConfigMap\\",'
        '\\"metadata\\":{\\"namespace\\":\\"default\\",\\"name\\":\\"new\\"},\\"data\\":{\\"k\\":\\"json\\"}}"}',
        {"new": {"k": "json"}},
    ),
    "Create of an existing object": PatchCase(
        configmap("a", "Create"), failures=("Create object v1/ConfigMap/default/a: ",)
    ),
    "Create in a missing namespace": PatchCase(
        "operation: Create\nobject: {apiVersion: v1, kind: ConfigMap, metadata: {namespace: nowhere, name: a}}\n",
        failures=("Create object v1/ConfigMap/nowhere/a: ",),
    ),
    "Create of a cluster-scoped object": PatchCase(
        "operation: Create\nobject: {apiVersion: v1, kind: Namespace, metadata: {name: made}}\n", namespaces=("made",)
    ),
    "the object's namespace counts, not the operation's": PatchCase(
        configmap("new", "Create") + "namespace: kube-system\nname: other\nkind: Secret\nsubresource: status\n",
        {"new": {"v": "2"}},
    ),
    "CreateIfNotExists creates a missing object": PatchCase(configmap("new", "CreateIfNotExists"), {"new": {"v": "2"}}),
    "CreateIfNotExists leaves an existing object unchanged": PatchCase(
        configmap("a", "CreateIfNotExists"), {"a": BEFORE}
    ),
    "CreateOrUpdate creates a missing object": PatchCase(configmap("new", "CreateOrUpdate"), {"new": {"v": "2"}}),
    "CreateOrUpdate replaces an existing object": PatchCase(configmap("a", "CreateOrUpdate"), {"a": {"v": "2"}}),
    "CreateOrUpdate of a custom resource": PatchCase(
        yaml("""
        operation: CreateOrUpdate
        object:
          apiVersion: example.test/v1
          kind: Widget
          metadata: {name: one, namespace: default}
          spec: {size: 5}
        """),
        widget={"spec": {"size": 5}},
    ),
    "several documents of YAML": PatchCase(
        f"---\n{configmap('new', 'Create')}---\n# nothing\n---\n{configmap('a', 'CreateOrUpdate')}---\n",
        {"new": {"v": "2"}, "a": {"v": "2"}},
    ),
    "several documents of JSON without separators": PatchCase(
        '{"operation":"Delete","kind":"cm","namespace":"default","name":"a"}'
        '{"operation":"Delete","kind":"cm","namespace":"default","name":"missing"}',
        {"a": None, "owned": None},
    ),
    "JSON and YAML in one file": PatchCase(
        '{"operation":"Delete","kind":"cm","namespace":"default","name":"owned"}\n---\n' + configmap("new", "Create"),
        {"new": {"v": "2"}, "owned": None},
    ),
    "words of YAML are text": PatchCase(
        configmap("new", "Create", "{y: on, off: no}"), {"new": {"y": "on", "off": "no"}}
    ),
}

DELETIONS: dict[str, PatchCase] = {
    **{
        f"{operation} of what exists": PatchCase(
            f"{{operation: {operation}, apiVersion: v1, kind: ConfigMap, namespace: default, name: owned}}",
            {"owned": None},
        )
        for operation in ("Delete", "DeleteInBackground", "DeleteNonCascading")
    },
    **{
        f"{operation} of what is missing": PatchCase(
            f"{{operation: {operation}, kind: ConfigMap, namespace: default, name: missing}}"
        )
        for operation in ("Delete", "DeleteInBackground", "DeleteNonCascading")
    },
    "Delete also deletes dependents": PatchCase(
        "{operation: Delete, kind: ConfigMap, namespace: default, name: a}", {"a": None, "owned": None}
    ),
    "DeleteInBackground also deletes dependents": PatchCase(
        "{operation: DeleteInBackground, kind: ConfigMap, namespace: default, name: a}", {"a": None, "owned": None}
    ),
    "DeleteNonCascading leaves dependents": PatchCase(
        "{operation: DeleteNonCascading, kind: ConfigMap, namespace: default, name: a}",
        {"a": None, "owned": {"v": "1"}},
    ),
    "the kind may be plural, short and in any case": PatchCase(
        "{operation: Delete, kind: CONFIGMAPS, namespace: default, name: owned}\n---\n"
        "{operation: Delete, kind: cM, namespace: default, name: a}\n",
        {"a": None, "owned": None},
    ),
    "an unknown kind": PatchCase(
        "{operation: Delete, kind: gizmo, namespace: default, name: a}", failures=("Delete object /gizmo/default/a: ",)
    ),
    "a namespaced kind without a namespace": PatchCase(
        "{operation: Delete, kind: ConfigMap, name: a}", failures=("Delete object /ConfigMap//a: ",)
    ),
    "subresource of a deletion is ignored": PatchCase(
        "{operation: Delete, kind: ConfigMap, namespace: default, name: owned, subresource: status}", {"owned": None}
    ),
}


def of_a(operation: str, rest: str) -> str:
    return f"operation: {operation}\nkind: ConfigMap\nnamespace: default\nname: a\n{rest}\n"


def of_widget(operation: str, rest: str) -> str:
    return f"operation: {operation}\napiVersion: example.test/v1\nkind: Widget\nnamespace: default\nname: one\n{rest}\n"


def of_missing(operation: str, rest: str) -> str:
    return of_a(operation, rest).replace("name: a", "name: missing")


JQ, MERGE, JSON = (
    "jqFilter: '.data.v = \"2\"'",
    "mergePatch: {data: {v: '2'}}",
    "jsonPatch: [{op: remove, path: /data/v}]",
)
ALL = {"JQPatch": JQ, "MergePatch": MERGE, "JSONPatch": JSON}
STATUS = {
    "JQPatch": "jqFilter: '.status.phase = \"Done\" | .spec.size = 9'",
    "MergePatch": "mergePatch: {status: {phase: Done}, spec: {size: 9}}",
    "JSONPatch": "jsonPatch: [{op: add, path: /status, value: {phase: Done}}, {op: replace, path: /spec/size, value: 9}]",
}
DONE: JsonObject = {"status": {"phase": "Done"}, "spec": {"size": 1}}

PATCHES: dict[str, PatchCase] = {
    "JQPatch": PatchCase(of_a("JQPatch", JQ), {"a": {"v": "2", "w": "1"}}),
    "JQPatch that deletes a field": PatchCase(of_a("JQPatch", "jqFilter: del(.data.v)"), {"a": {"w": "1"}}),
    "JQPatch that changes nothing": PatchCase(of_a("JQPatch", "jqFilter: ."), {"a": BEFORE}),
    "JQPatch that fails": PatchCase(
        of_a("JQPatch", "jqFilter: .data.v + 1"), failures=("Filter object /ConfigMap/default/a: ",)
    ),
    "JQPatch with an invalid program": PatchCase(
        of_a("JQPatch", "jqFilter: '.data |'"), failures=("Filter object /ConfigMap/default/a: ",)
    ),
    "MergePatch of a mapping": PatchCase(of_a("MergePatch", MERGE), {"a": {"v": "2", "w": "1"}}),
    "MergePatch of a string": PatchCase(
        of_a("MergePatch", "mergePatch: |\n  data:\n    v: '2'"), {"a": {"v": "2", "w": "1"}}
    ),
    "MergePatch deletes null fields": PatchCase(of_a("MergePatch", "mergePatch: {data: {v: null}}"), {"a": {"w": "1"}}),
    "JSONPatch": PatchCase(
        of_a("JSONPatch", "jsonPatch: [{op: add, path: /data/k, value: x}, {op: remove, path: /data/v}]"),
        {"a": {"k": "x", "w": "1"}},
    ),
    "JSONPatch of a string": PatchCase(
        of_a("JSONPatch", 'jsonPatch: \'[{"op":"replace","path":"/data/v","value":"2"}]\''),
        {"a": {"v": "2", "w": "1"}},
    ),
    "JSONPatch that begins with an operation without a value": PatchCase(of_a("JSONPatch", JSON), {"a": {"w": "1"}}),
    "JSONPatch whose test fails": PatchCase(
        of_a("JSONPatch", "jsonPatch: [{op: test, path: /data/v, value: '9'}, {op: remove, path: /data/v}]"),
        failures=("Patch object /ConfigMap/default/a: ",),
    ),
    **{
        f"{operation} of a subresource": PatchCase(
            of_widget(operation, f"{patch}\nsubresource: {'/status' if operation == 'MergePatch' else 'status'}"),
            widget=DONE,
        )
        for operation, patch in STATUS.items()
    },
    "MergePatch without a subresource leaves the status": PatchCase(
        of_widget("MergePatch", STATUS["MergePatch"]), widget={"status": None, "spec": {"size": 9}}
    ),
    **{
        f"{operation} of what is missing": PatchCase(
            of_missing(operation, patch),
            failures=(f"{'Filter' if operation == 'JQPatch' else 'Patch'} object /ConfigMap/default/missing: ",),
        )
        for operation, patch in ALL.items()
    },
    **{
        f"{operation} of what may be missing": PatchCase(of_missing(operation, f"{patch}\nignoreMissingObject: true"))
        for operation, patch in ALL.items()
    },
    "unknown keys": PatchCase(of_a("MergePatch", f"{MERGE}\nretries: 5"), {"a": {"v": "2", "w": "1"}}),
}

TOGETHER: dict[str, PatchCase] = {
    "a failed operation does not prevent others": PatchCase(
        "---\n".join(
            [of_missing("MergePatch", MERGE), configmap("new", "Create"), configmap("a", "Create"), of_a("JQPatch", JQ)]
        ),
        {"new": {"v": "2"}, "a": {"v": "2", "w": "1"}},
        failures=("Patch object /ConfigMap/default/missing: ", "Create object v1/ConfigMap/default/a: "),
    ),
    "an empty file": PatchCase(""),
    "a file of comments": PatchCase("---\n# nothing to do\n---\n"),
}

WRONG: dict[str, tuple[JsonValue, str]] = {
    "no operation": ({"kind": "ConfigMap"}, "operation must be one of"),
    "an unknown operation": ({"operation": "Replace"}, "operation must be one of"),
    "an operation in small letters": ({"operation": "create"}, "operation must be one of"),
    "a key in small letters": (
        {"operation": "JQPatch", "kind": "cm", "name": "a", "jqfilter": "."},
        "jqFilter: required",
    ),
    "Create without an object": ({"operation": "Create"}, "object: required"),
    "Create of an empty object": ({"operation": "Create", "object": {}}, "object: at least one key"),
    "Create of a list": ({"operation": "Create", "object": [1]}, "object: expected an object"),
    "Delete without a kind": ({"operation": "Delete", "name": "a"}, "kind: required"),
    "Delete without a name": ({"operation": "Delete", "kind": "cm"}, "name: required"),
    "MergePatch without a patch": ({"operation": "MergePatch", "kind": "cm", "name": "a"}, "mergePatch: required"),
    "JSONPatch of nothing": (
        {"operation": "JSONPatch", "kind": "cm", "name": "a", "jsonPatch": []},
        "found an empty list",
    ),
    "JSONPatch without a path": (
        {"operation": "JSONPatch", "kind": "cm", "name": "a", "jsonPatch": [{"op": "remove"}]},
        "path: required",
    ),
    "a list": ([{"operation": "Delete"}], "expected an object"),
    "a text": ("Delete", "expected an object"),
}
"""Invalid documents with the expected message; no operation of their file is applied."""
