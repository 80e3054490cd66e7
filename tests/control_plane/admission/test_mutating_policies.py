"""Mutating policies: their patches, parameters, conditions, reinvocation and failures."""

import pytest

from tests.control_plane.support.bench import (
    OPTIONS,
    changed,
    config_maps,
    deployment,
    deployments,
    made,
    new_backend,
    refused,
    send,
    served,
    thing,
    widgets,
)
from tests.control_plane.support.policy_asking import MATCH, RULE, stored
from tests.control_plane.support.webhook_server import (
    CONFIG_MAPS,
    config_map,
    configure_mutating,
    patch,
    serving,
    set_data,
)
from wharfinger.control_plane.access.users import ADMINISTRATOR
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.verbs.deletion import delete
from wharfinger.control_plane.verbs.options import DeleteOptions
from wharfinger.control_plane.verbs.updating import replace
from wharfinger.formats.json.value import JsonObject, JsonValue, find

GROUP = "admissionregistration.k8s.io"
LABEL = 'Object{metadata: Object.metadata{labels: {"team": "a"}}}'
MOVED = (
    '[JSONPatch{op: "test", path: "/data/x", value: "1"}, '
    'JSONPatch{op: "add", path: "/metadata/labels", value: Object.metadata.labels{}}, '
    'JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("a/b"), value: "2"}, '
    'JSONPatch{op: "move", from: "/data/x", path: "/data/y"}]'
)
ABSENT = 'Object{data: {"y": object.data.z}}'
ALL: JsonObject = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}


def policy(*mutations: str | tuple[str], name: JsonValue = "p", **spec: JsonValue) -> JsonObject:
    """Return a policy. A mutation is an apply configuration if it is a text, and a JSON patch if it is a tuple of one text."""
    written: list[JsonValue] = [
        {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": each}}
        if isinstance(each, str)
        else {"patchType": "JSONPatch", "jsonPatch": {"expression": each[0]}}
        for each in mutations
    ]
    return {
        "apiVersion": f"{GROUP}/v1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {"matchConstraints": MATCH, "reinvocationPolicy": "Never", "mutations": written, **spec},
    }  # fmt: skip


def bind(backend: Backend, obj: JsonObject, **spec: JsonValue) -> None:
    """Store a policy, and a binding with the same name."""
    stored(backend, "mutatingadmissionpolicies", obj)
    name = find(obj, "metadata", "name")
    binding: JsonObject = {
        "apiVersion": f"{GROUP}/v1", "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": name},
        "spec": {"policyName": name, **spec},
    }  # fmt: skip
    stored(backend, "mutatingadmissionpolicybindings", binding)


def mutated(*mutations: str | tuple[str], data: JsonObject | None = None, **spec: JsonValue) -> JsonObject:
    """Bind a policy with these mutations, create a ConfigMap, and return it."""
    backend = new_backend()
    bind(backend, policy(*mutations, **spec))
    maps = config_maps(backend)
    return made(backend, maps, thing(maps, data=data or {"x": "1"}))


def test_an_apply_configuration_is_merged() -> None:
    obj = mutated('Object{data: {"y": object.data.x + "2"}}', LABEL)
    assert (find(obj, "data"), find(obj, "metadata", "labels")) == ({"x": "1", "y": "12"}, {"team": "a"})
    entries = find(obj, "metadata", "managedFields")
    assert isinstance(entries, list)
    assert "f:y" not in str(entries), "nobody owns what a policy sets"


def test_json_patches_are_applied_in_order() -> None:
    obj = mutated((MOVED,))
    assert (find(obj, "data"), find(obj, "metadata", "labels")) == ({"y": "1"}, {"a/b": "2"})


def test_a_failed_test_of_a_patch_changes_nothing() -> None:
    obj = mutated(('[JSONPatch{op: "test", path: "/data/x", value: "9"}, JSONPatch{op: "remove", path: "/data/x"}]',))
    assert find(obj, "data") == {"x": "1"}


@pytest.mark.parametrize(
    ("mutation", "message"),
    [
        (ABSENT, f"policy 'p' with binding 'p' denied request: expression '{ABSENT}' resulted in error: no such key: z"),
        ("Object{data: Object.spec{}}",
         'type mismatch: unexpected type name "Object.spec", expected "Object.data", which matches field name path'),
        ("Object{spec: Object.spec{a: 1}}",
         "error applying patch: failed to convert patch object to typed object: .spec: field not declared in schema"),
        ("Object{data: {1: '2'}}", "map key 1 is of type int, not string"),
        (('[JSONPatch{op: "remove", path: "/data/none"}]',), "denied request: JSONPath: "),
        (('[JSONPatch{op: "add", path: "/data/y", value: type(1)}]',), "could not marshal to JSON"),
        (('[JSONPatch{op: "add", path: "/data/y", value: 1.0 / 0.0}]',), "the number inf could not marshal to JSON"),
    ],
)  # fmt: skip
def test_errors_in_mutations_follow_the_failure_policy(mutation: str | tuple[str], message: str) -> None:
    with refused(403, "Invalid", message):
        mutated(mutation)
    assert find(mutated(mutation, LABEL, failurePolicy="Ignore"), "metadata", "labels") == {"team": "a"}


def test_atomic_values_are_not_changed_by_an_apply_configuration() -> None:
    backend = new_backend()
    match: JsonObject = {**MATCH, "resourceRules": [ALL]}
    bind(
        backend,
        policy(
            "Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'a': 'b'}}}}", matchConstraints=match
        ),
    )
    apps = deployments(backend)
    with refused(
        403, "Invalid", "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.selector"
    ):
        made(backend, apps, deployment(apps))


def test_defaults_are_set_and_lists_are_merged_by_key() -> None:
    backend = new_backend()
    match: JsonObject = {**MATCH, "resourceRules": [ALL]}
    container = (
        "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec."
        'template.spec.containers{name: "side", image: "i"}]}}}}'
    )
    bind(
        backend,
        policy(
            container,
            matchConstraints=match,
            matchConditions=[{"name": "c", "expression": "object.kind == 'Deployment'"}],
        ),
    )
    apps = deployments(backend)
    found = find(made(backend, apps, deployment(apps)), "spec", "template", "spec", "containers")
    assert isinstance(found, list)
    assert len(found) == 2
    side = next(each for each in found if find(each, "name") == "side")
    assert find(side, "imagePullPolicy") == "Always"


def test_mutations_use_variables_parameters_and_conditions() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    for name, text in (("one", "1"), ("two", "2")):
        made(backend, maps, thing(maps, name, {"labels": {"param": "yes"}}, data={"add": text}))
    spec: JsonObject = {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "variables": [{"name": "key", "expression": "'p' + params.data.add"}],
        "matchConditions": [{"name": "c", "expression": "object.metadata.name == 'a'"}],
    }
    reference: JsonObject = {"selector": {"matchLabels": {"param": "yes"}}, "parameterNotFoundAction": "Deny"}
    bind(
        backend,
        policy("Object{data: {variables.key: string(has(object.data.p1)) + request.operation}}", **spec),
        paramRef=reference,
    )
    obj = made(backend, maps, thing(maps, data={"x": "1"}))
    assert find(obj, "data") == {"x": "1", "p1": "falseCREATE", "p2": "trueCREATE"}
    assert find(made(backend, maps, thing(maps, "b", data={"x": "1"})), "data") == {"x": "1"}
    again = replace(backend, maps, "default", "a", "", changed(obj, data={"x": "2"}), OPTIONS)
    assert find(again.obj, "data") == {"x": "2", "p1": "falseUPDATE", "p2": "trueUPDATE"}


@pytest.mark.parametrize("failure", ["Fail", "Ignore"])
def test_configuration_errors_are_handled_by_the_failure_policy(failure: str) -> None:
    for spec, binding, said in (
        (
            {"paramKind": {"apiVersion": "example.com/v1", "kind": "A"}},
            {},
            'policy "p" denied request: failed to configure policy',
        ),
        (
            {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}},
            {"paramRef": {"name": "none", "parameterNotFoundAction": "Deny"}},
            "policy 'p' with binding 'p' denied request: failed to configure binding: no params found",
        ),
        ({"matchConditions": [{"name": "c", "expression": "object.data.z == '1'"}]}, {}, "no such key: data"),
    ):
        backend = new_backend()
        bind(backend, policy(LABEL, failurePolicy=failure, **spec), **binding)  # type: ignore[arg-type]
        maps = config_maps(backend)
        if failure == "Ignore":
            assert find(made(backend, maps, thing(maps)), "metadata", "labels") is None
        else:
            reason = "Invalid" if "matchConditions" in spec else "Forbidden"
            with refused(403, reason, said):
                made(backend, maps, thing(maps))


def test_policies_are_evaluated_by_name_and_reinvoked_if_needed() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    count = 'Object{data: {"count": string(int(object.?data[?"count"].orValue("0")) + 1)}}'
    bind(backend, policy(count, name="b", reinvocationPolicy="IfNeeded"))
    bind(backend, policy('Object{data: {"late": object.data.count}}', name="c"))
    bind(backend, policy('Object{data: {"first": string("count" in object.data)}}', name="a"))
    obj = made(backend, maps, thing(maps, data={"x": "1"}))
    assert find(obj, "data") == {"x": "1", "first": "false", "count": "2", "late": "1"}


def test_custom_objects_are_mutated_but_policies_are_not() -> None:
    backend = new_backend()
    match: JsonObject = {**MATCH, "resourceRules": [ALL]}
    custom = widgets(backend)
    bind(backend, policy(LABEL, matchConstraints=match))
    assert find(made(backend, custom, thing(custom)), "metadata", "labels") == {"team": "a"}
    delete(backend, custom, "default", "a", DeleteOptions(user=ADMINISTRATOR))
    # Policies do not change policies, so that a wrong one can be repaired.
    bound = served(backend, GROUP, "v1", "mutatingadmissionpolicies")
    written = backend.get(bound, "", "p")
    assert written is not None
    assert find(written, "metadata", "labels") is None


async def test_policies_run_before_webhooks_and_again_after_their_changes() -> None:
    async with serving() as (hook, plane):
        binding: JsonObject = {
            "apiVersion": f"{GROUP}/v1", "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": "p"},
            "spec": {"policyName": "p"},
        }  # fmt: skip
        seen = policy('Object{data: {"seen": string(size(object.data))}}', reinvocationPolicy="IfNeeded")
        for plural, obj in (("mutatingadmissionpolicies", seen), ("mutatingadmissionpolicybindings", binding)):
            answer = await send(plane, "POST", f"/apis/{GROUP}/v1/{plural}", obj)
            assert answer.code == 201, answer.body
        await configure_mutating(hook, plane, "a")
        hook.judge = lambda _: patch(set_data("hook", "x"))
        answer = await send(plane, "POST", CONFIG_MAPS, config_map(x="1"))
        assert find(hook.seen[0], "object", "data") == {"x": "1", "seen": "1"}
        assert find(answer.body, "data") == {"x": "1", "hook": "x", "seen": "3"}


def test_resource_rules_select_mutated_kinds() -> None:
    backend = new_backend()
    bind(backend, policy(LABEL, matchConstraints={**MATCH, "resourceRules": [{**RULE, "resources": ["secrets"]}]}))
    maps = config_maps(backend)
    assert find(made(backend, maps, thing(maps)), "metadata", "labels") is None
