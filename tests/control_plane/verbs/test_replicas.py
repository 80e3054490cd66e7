"""Writes of the ``scale`` subresource. Webhooks and policies get a Scale. If they change it, the object is changed."""

import pytest

from tests.control_plane.support.bench import deployment, deployments, made, send
from tests.control_plane.support.policy_asking import bind_policy
from tests.control_plane.support.webhook_server import configure_mutating, patch, serving
from wharfinger.control_plane.service import ControlPlane
from wharfinger.control_plane.verbs.replicas import field_of, with_number
from wharfinger.formats.json.value import JsonObject, find, find_str

DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/a"
SCALE: JsonObject = {
    "apiVersion": "autoscaling/v1",
    "kind": "Scale",
    "metadata": {"name": "a"},
    "spec": {"replicas": 4},
}
RULE: JsonObject = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["*/scale"]}
CEILING = "Object{spec: Object.spec{replicas: object.spec.replicas > 3 ? 3 : object.spec.replicas}}"


def make_deployment(plane: ControlPlane) -> None:
    kind = deployments(plane.backend)
    made(plane.backend, kind, deployment(kind, metadata={"labels": {"team": "a"}}))


async def replicas(plane: ControlPlane) -> object:
    return find((await send(plane, "GET", DEPLOYMENT)).body, "spec", "replicas")


@pytest.mark.parametrize("expression", [CEILING, '[JSONPatch{op: "replace", path: "/spec/replicas", value: 3}]'])
async def test_a_mutating_policy_changes_a_scale(expression: str) -> None:
    async with serving() as (_, plane):
        make_deployment(plane)
        patches = expression.startswith("[")
        field = "jsonPatch" if patches else "applyConfiguration"
        mutation: JsonObject = {
            "patchType": "JSONPatch" if patches else "ApplyConfiguration", field: {"expression": expression}
        }  # fmt: skip
        await bind_policy(plane, "Mutating", rule=RULE, mutations=[mutation], reinvocationPolicy="IfNeeded")
        answer = await send(plane, "PUT", f"{DEPLOYMENT}/scale", SCALE)
        assert (answer.code, find(answer.body, "spec", "replicas"), await replicas(plane)) == (200, 3, 3)


async def test_a_mutating_webhook_changes_a_scale() -> None:
    async with serving() as (hook, plane):
        make_deployment(plane)
        await configure_mutating(hook, plane, "a", rules=[RULE])
        hook.judge = lambda _: patch({"op": "replace", "path": "/spec/replicas", "value": 2})
        body: JsonObject = {"spec": {"replicas": 4}}
        merge = "application/merge-patch+json"
        answer = await send(plane, "PATCH", f"{DEPLOYMENT}/scale", body, content_type=merge)
        assert (answer.code, await replicas(plane)) == (200, 2)
        (seen,) = hook.seen
        assert find(seen, "kind") == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
        assert (find(seen, "object", "spec", "replicas"), find(seen, "oldObject", "spec", "replicas")) == (4, 1)
        hook.judge = lambda _: patch({"op": "replace", "path": "/spec/replicas", "value": -1})
        answer = await send(plane, "PUT", f"{DEPLOYMENT}/scale", SCALE)
        assert answer.code == 422
        assert find_str(answer.body, "message").startswith('Scale.autoscaling "a" is invalid: spec.replicas')


async def test_a_scale_has_no_labels() -> None:
    async with serving() as (hook, plane):
        make_deployment(plane)
        await configure_mutating(hook, plane, "a", rules=[RULE], objectSelector={"matchLabels": {"team": "a"}})
        assert (await send(plane, "PUT", f"{DEPLOYMENT}/scale", SCALE)).code == 200
        assert hook.seen == []


def test_a_number_is_set_at_a_path() -> None:
    assert with_number({"spec": {"a": 1}}, field_of(".spec.size"), 3) == {"spec": {"a": 1, "size": 3}}
    assert with_number({}, field_of(".spec.size"), 3) == {"spec": {"size": 3}}
