"""Admission of reviews, evictions, bindings and token requests. Policies see all of them except reviews. Webhooks see all."""

import pytest

from tests.control_plane.support.bench import new_plane, send
from tests.control_plane.support.policy_asking import bind_policy
from tests.control_plane.support.webhook_server import allow, configure, configure_mutating, patch, serving
from wharfinger.control_plane.service import ControlPlane
from wharfinger.formats.json.value import JsonObject, find, find_str

ACCESS, IDENTITY = "authorization.k8s.io", "authentication.k8s.io"
PODS: JsonObject = {"verb": "get", "resource": "pods", "namespace": "default"}
REVIEWS: dict[str, tuple[str, str, JsonObject]] = {
    "SubjectAccessReview": (ACCESS, "subjectaccessreviews", {"user": "a", "resourceAttributes": PODS}),
    "SelfSubjectAccessReview": (ACCESS, "selfsubjectaccessreviews", {"resourceAttributes": PODS}),
    "LocalSubjectAccessReview": (
        ACCESS, "namespaces/default/localsubjectaccessreviews", {"user": "a", "resourceAttributes": PODS}
    ),
    "SelfSubjectRulesReview": (ACCESS, "selfsubjectrulesreviews", {"namespace": "default"}),
    "TokenReview": (IDENTITY, "tokenreviews", {"token": "unknown"}),
    "SelfSubjectReview": (IDENTITY, "selfsubjectreviews", {}),
}  # fmt: skip
RULE: JsonObject = {"apiGroups": [ACCESS, IDENTITY], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]}


def review(kind: str) -> tuple[str, JsonObject]:
    """Return the path to which reviews of this kind are posted, and an example of such a review."""
    group, plural, spec = REVIEWS[kind]
    body: JsonObject = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {}}
    return f"/apis/{group}/v1/{plural}", {**body, **({"spec": spec} if spec else {})}


@pytest.mark.parametrize("kind", REVIEWS)
async def test_webhooks_can_refuse_each_kind_of_review(kind: str) -> None:
    async with serving() as (hook, plane):
        await configure(hook, plane, rules=[RULE])
        path, body = review(kind)
        hook.judge = lambda _: {"allowed": False, "status": {"message": "not today"}}
        answer = await send(plane, "POST", path, body)
        assert "denied the request: not today" in find_str(answer.body, "message")
        assert (find(hook.seen[0], "kind", "kind"), find(hook.seen[0], "operation")) == (kind, "CREATE")
        assert find(hook.seen[0], "resource", "resource") == path.rpartition("/")[2]
        hook.judge = allow
        assert (await send(plane, "POST", path, body)).code == 201
        # An invalid review is refused before admission.
        if kind == "SubjectAccessReview":
            seen = len(hook.seen)
            assert (await send(plane, "POST", path, {**body, "spec": {"user": "a"}})).code == 422
            assert len(hook.seen) == seen


async def test_a_mutating_webhook_changes_the_spec_of_a_review() -> None:
    async with serving() as (hook, plane):
        await configure_mutating(hook, plane, "a", rules=[RULE])
        hook.judge = lambda _: patch({"op": "replace", "path": "/spec/user", "value": "b"})
        path, body = review("SubjectAccessReview")
        answer = await send(plane, "POST", path, body)
        assert find(answer.body, "spec", "user") == "b"


async def test_policies_do_not_apply_to_reviews() -> None:
    plane = new_plane()
    group = "/apis/admissionregistration.k8s.io/v1"
    rules: JsonObject = {"resourceRules": [RULE]}
    mutation: JsonObject = {
        "patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{a: 1}"}
    }  # fmt: skip
    policies: dict[str, JsonObject] = {
        "ValidatingAdmissionPolicy": {"validations": [{"expression": "false"}]},
        "MutatingAdmissionPolicy": {"reinvocationPolicy": "Never", "mutations": [mutation]},
    }
    for kind, more in policies.items():
        plural = kind.lower()[:-1] + "ies"
        spec: JsonObject = {"matchConstraints": rules, **more}
        made: JsonObject = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "p"}}
        answer = await send(plane, "POST", f"{group}/{plural}", {**made, "spec": spec})
        assert answer.code == 201, answer.body
        actions: JsonObject = {"validationActions": ["Deny"]} if kind.startswith("Validating") else {}
        binding: JsonObject = {**made, "kind": f"{kind}Binding", "spec": {"policyName": "p", **actions}}
        assert (await send(plane, "POST", f"{group}/{kind.lower()}bindings", binding)).code == 201
    for kind in REVIEWS:
        assert (await send(plane, "POST", *review(kind))).code == 201


NAMESPACED = "/api/v1/namespaces/default"
DELETING: JsonObject = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
BINDING: JsonObject = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"name": "n"}}
TOKEN: JsonObject = {"apiVersion": f"{IDENTITY}/v1", "kind": "TokenRequest", "metadata": {}, "spec": {}}
CREATES: dict[str, tuple[str, JsonObject, str, str]] = {
    "eviction": (f"{NAMESPACED}/pods/p/eviction", DELETING, "pods", "eviction"),
    "binding": (f"{NAMESPACED}/pods/p/binding", BINDING, "pods", "binding"),
    "older binding": (f"{NAMESPACED}/bindings", BINDING, "bindings", ""),
    "token": (f"{NAMESPACED}/serviceaccounts/a/token", TOKEN, "serviceaccounts", "token"),
}
OF_CREATES: JsonObject = {
    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
    "resources": ["bindings", "pods/*", "serviceaccounts/token"],
}  # fmt: skip


async def with_objects(plane: ControlPlane) -> None:
    """Create a service account, and a Pod that is not assigned to a node."""
    for name in ("default", "a"):
        account: JsonObject = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
        assert (await send(plane, "POST", f"{NAMESPACED}/serviceaccounts", account)).code == 201
    spec: JsonObject = {"containers": [{"name": "c", "image": "i"}]}
    pod: JsonObject = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    assert (await send(plane, "POST", f"{NAMESPACED}/pods", pod)).code == 201


@pytest.mark.parametrize("case", CREATES)
async def test_webhooks_can_refuse_creations_in_subresources(case: str) -> None:
    path, body, resource, subresource = CREATES[case]
    async with serving() as (hook, plane):
        await with_objects(plane)
        await configure(hook, plane, rules=[OF_CREATES])
        hook.judge = lambda _: {"allowed": False, "status": {"message": "not today"}}
        answer = await send(plane, "POST", path, body)
        assert "denied the request: not today" in find_str(answer.body, "message")
        group, _, version = find_str(body, "apiVersion").rpartition("/")
        (seen,) = hook.seen
        assert find(seen, "kind") == {"group": group, "version": version, "kind": find(body, "kind")}
        assert find(seen, "resource") == {"group": "", "version": "v1", "resource": resource}
        assert (find(seen, "subResource") or "", find(seen, "operation")) == (subresource, "CREATE")
        assert find(seen, "options", "kind") == "CreateOptions"
        assert find(seen, "object", "kind") == find(body, "kind")
        assert find(seen, "name") == ("a" if case == "token" else "p")
        hook.judge = allow
        assert (await send(plane, "POST", path, body)).code == 201


@pytest.mark.parametrize("case", CREATES)
async def test_policies_can_refuse_creations_in_subresources(case: str) -> None:
    path, body, resource, _ = CREATES[case]
    plane = new_plane()
    await with_objects(plane)
    expression = f"object.kind != '{body['kind']}'"
    await bind_policy(plane, "Validating", rule=OF_CREATES, validations=[{"expression": expression}])
    answer = await send(plane, "POST", path, body)
    assert answer.code == 422
    assert find_str(answer.body, "message").startswith(f'{resource} "{"a" if case == "token" else "p"}" is forbidden: ')


async def test_a_dry_run_needs_a_webhook_without_side_effects() -> None:
    async with serving() as (hook, plane):
        await with_objects(plane)
        await configure(hook, plane, rules=[OF_CREATES])
        assert (await send(plane, "POST", f"{NAMESPACED}/pods/p/eviction?dryRun=All", DELETING)).code == 201
        assert find(hook.seen[0], "dryRun") is True
        assert (await send(plane, "GET", f"{NAMESPACED}/pods/p")).code == 200


async def test_a_mutating_webhook_changes_bindings_and_token_requests() -> None:
    async with serving() as (hook, plane):
        await with_objects(plane)
        await configure_mutating(hook, plane, "a", rules=[OF_CREATES])
        hook.judge = lambda _: patch({"op": "replace", "path": "/target/name", "value": "other"})
        assert (await send(plane, "POST", *CREATES["binding"][:2])).code == 201
        assert find((await send(plane, "GET", f"{NAMESPACED}/pods/p")).body, "spec", "nodeName") == "other"
        hook.judge = lambda _: patch({"op": "replace", "path": "/spec/expirationSeconds", "value": 700})
        answer = await send(plane, "POST", *CREATES["token"][:2])
        assert find(answer.body, "spec", "expirationSeconds") == 700
        assert find(hook.seen[-1], "object", "spec") == {
            "audiences": None, "boundObjectRef": None, "expirationSeconds": 3600,
        }  # fmt: skip


async def test_a_mutating_policy_sets_a_precondition_of_an_eviction() -> None:
    plane = new_plane()
    await with_objects(plane)
    expression = (
        'Object{deleteOptions: Object.deleteOptions{preconditions: Object.deleteOptions.preconditions{uid: "x"}}}'
    )
    mutation: JsonObject = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    await bind_policy(plane, "Mutating", rule=OF_CREATES, mutations=[mutation], reinvocationPolicy="Never")
    answer = await send(plane, "POST", *CREATES["eviction"][:2])
    assert (answer.code, "the UID in the precondition (x)" in find_str(answer.body, "message")) == (409, True)
