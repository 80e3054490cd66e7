"""Reviews are shown to webhooks, and not to policies."""

import pytest

from tests.control_plane.support.bench import new_plane, send
from tests.control_plane.support.webhook_server import allow, configure, configure_mutating, patch, serving
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
    """The path of a kind of review, and one."""
    group, plural, spec = REVIEWS[kind]
    body: JsonObject = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {}}
    return f"/apis/{group}/v1/{plural}", {**body, **({"spec": spec} if spec else {})}


@pytest.mark.parametrize("kind", REVIEWS)
async def test_webhooks_judge_each_kind_of_review(kind: str) -> None:
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
        # A review that is wrong in itself is refused before.
        if kind == "SubjectAccessReview":
            seen = len(hook.seen)
            assert (await send(plane, "POST", path, {**body, "spec": {"user": "a"}})).code == 422
            assert len(hook.seen) == seen


async def test_a_mutating_webhook_changes_the_question() -> None:
    async with serving() as (hook, plane):
        await configure_mutating(hook, plane, "a", rules=[RULE])
        hook.judge = lambda _: patch({"op": "replace", "path": "/spec/user", "value": "b"})
        path, body = review("SubjectAccessReview")
        answer = await send(plane, "POST", path, body)
        assert find(answer.body, "spec", "user") == "b"


async def test_policies_leave_reviews_alone() -> None:
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
