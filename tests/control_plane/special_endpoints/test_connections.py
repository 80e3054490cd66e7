"""Connections to Pods, Services and nodes, such as ``exec`` and ``proxy``.

Policies and webhooks get the operation CONNECT, and the options of the request as the object.
"""

from pathlib import Path

import pytest

from tests.control_plane.support.bench import new_plane, send
from tests.control_plane.support.pod_commands import open_kubelet
from tests.control_plane.support.policy_asking import bind_policy
from tests.control_plane.support.webhook_server import allow, configure, configure_mutating, patch, serving
from wharfinger.cluster.api.errors import ApiError
from wharfinger.control_plane.service import ControlPlane
from wharfinger.control_plane.special_endpoints.connections import switched_on
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_str

PODS = "/api/v1/namespaces/default/pods"
RULE: JsonObject = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": ["*/*"]}
CASES: dict[str, tuple[str, str, JsonObject]] = {
    "exec": (
        f"{PODS}/p/exec?command=sh&command=-c&stdin=true&stdout&stderr=0&container=c",
        "PodExecOptions",
        {"stdin": True, "stdout": True, "container": "c", "command": ["sh", "-c"]},
    ),
    "exec without a command": (f"{PODS}/p/exec?tty=false", "PodExecOptions", {"command": None}),
    "attach": (f"{PODS}/p/attach?tty=1", "PodAttachOptions", {"tty": True}),
    "portforward": (f"{PODS}/p/portforward?ports=80,81&ports=82", "PodPortForwardOptions", {"ports": [80, 81, 82]}),
    "portforward without ports": (f"{PODS}/p/portforward?ports=x", "PodPortForwardOptions", {}),
    "pod proxy": (f"{PODS}/p/proxy/a/b", "PodProxyOptions", {"path": "/a/b"}),
    "service proxy": ("/api/v1/namespaces/default/services/s/proxy", "ServiceProxyOptions", {}),
    "node proxy": ("/api/v1/nodes/n/proxy/metrics", "NodeProxyOptions", {"path": "/metrics"}),
}


async def make_pod(plane: ControlPlane) -> None:
    spec: JsonObject = {"nodeName": "simulated", "containers": [{"name": name, "image": "i"} for name in ("c", "d")]}
    pod: JsonObject = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    account: JsonObject = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    assert (await send(plane, "POST", "/api/v1/namespaces/default/serviceaccounts", account)).code == 201
    assert (await send(plane, "POST", PODS, pod)).code == 201


@pytest.mark.parametrize("case", CASES)
async def test_a_webhook_refuses_a_connection_before_its_target_is_checked(case: str) -> None:
    path, kind, options = CASES[case]
    async with serving() as (hook, plane):
        await configure(hook, plane, rules=[RULE])
        hook.judge = lambda _: {"allowed": False, "status": {"message": "not today"}}
        answer = await send(plane, "GET", path)
        assert "denied the request: not today" in find_str(answer.body, "message")
        (seen,) = hook.seen
        assert find(seen, "object") == {"kind": kind, "apiVersion": "v1", **options}
        assert (find(seen, "operation"), find(seen, "oldObject"), find(seen, "options")) == ("CONNECT", None, None)
        assert find(seen, "kind") == find(seen, "requestKind") == {"group": "", "version": "v1", "kind": kind}
        target, _, rest = (
            path.partition("?")[0].removeprefix("/api/v1/").removeprefix("namespaces/default/").partition("/")
        )
        name, _, below = rest.partition("/")
        assert find(seen, "resource", "resource") == target
        assert (find(seen, "name"), find(seen, "subResource")) == (name, below.partition("/")[0])
        hook.judge = allow
        assert (await send(plane, "GET", path)).code == 404


async def test_a_policy_refuses_a_connection_by_its_options() -> None:
    plane = new_plane()
    await bind_policy(plane, "Validating", rule=RULE, validations=[{"expression": "object.command[0] != 'sh'"}])
    refused = await send(plane, "GET", f"{PODS}/p/exec?command=sh")
    assert refused.code == 422
    message = find_str(refused.body, "message")
    assert "pods \"p\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request" in message
    assert (await send(plane, "GET", f"{PODS}/p/exec?command=ls")).code == 404


async def test_a_connection_uses_the_options_changed_by_admission() -> None:
    change: JsonValue = {"op": "replace", "path": "/container", "value": "gone"}
    async with serving() as (hook, plane):
        await make_pod(plane)
        before = await send(plane, "GET", f"{PODS}/p/attach?container=c")
        assert "no kubelet" in find_str(before.body, "message")
        await configure_mutating(hook, plane, "a", rules=[RULE])
        hook.judge = lambda _: patch(change)
        after = await send(plane, "GET", f"{PODS}/p/attach?container=c")
        assert find_str(after.body, "message") == "container gone is not valid for pod p"


async def test_a_command_runs_with_the_arguments_changed_by_webhooks(tmp_path: Path) -> None:
    async with serving() as (hook, _), open_kubelet(tmp_path) as kubelet:
        await kubelet.start()
        await configure_mutating(hook, kubelet.plane, "a", rules=[RULE])
        await configure(hook, kubelet.plane, rules=[RULE])
        assert await kubelet.run("echo", "one") == (0, b"one\n", b"")
        change: JsonValue = {"op": "replace", "path": "/command/1", "value": "two"}
        hook.judge = lambda _: {"allowed": True} if len(hook.seen) % 2 == 0 else patch(change)
        assert await kubelet.run("echo", "one") == (0, b"two\n", b"")
        assert [find(each, "object", "command", 1) for each in hook.seen] == ["one", "one", "one", "two"]
        hook.judge = lambda _: {"allowed": False, "status": {"message": "not today"}}
        with pytest.raises(ApiError, match="not today"):
            await kubelet.run("echo", "one")


async def test_a_mutating_policy_changes_the_options() -> None:
    plane = new_plane()
    await make_pod(plane)
    expression = '[JSONPatch{op: "add", path: "/container", value: "d"}]'
    mutation: JsonObject = {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
    assert "must be specified" in find_str((await send(plane, "GET", f"{PODS}/p/exec?command=ls")).body, "message")
    await bind_policy(plane, "Mutating", rule=RULE, mutations=[mutation], reinvocationPolicy="Never")
    assert "no kubelet" in find_str((await send(plane, "GET", f"{PODS}/p/exec?command=ls")).body, "message")


async def test_label_selectors_never_match_connection_options() -> None:
    selector: JsonObject = {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}
    async with serving() as (hook, plane):
        await configure(hook, plane, rules=[RULE], objectSelector=selector)
        assert (await send(plane, "GET", f"{PODS}/p/exec?command=ls")).code == 404
        assert hook.seen == []


def test_only_false_zero_or_absence_disables_a_parameter() -> None:
    given = {"a": ("",), "b": ("TRUE",), "c": ("False",), "d": ("0",), "e": ()}
    assert [switched_on(given, name) for name in "abcdef"] == [True, True, False, False, False, False]
