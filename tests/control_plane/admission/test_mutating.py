"""Mutating webhooks over real TLS: their order, their patches, and repeated calls."""

import pytest

from tests.control_plane.support.bench import send
from tests.control_plane.support.webhook_server import (
    CONFIG_MAPS,
    allow,
    config_map,
    configure,
    configure_mutating,
    patch,
    serving,
    set_data,
)
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_str


async def test_mutating_webhooks_run_in_order_before_validating_ones() -> None:
    async with serving() as (hook, plane):
        await configure_mutating(hook, plane, "a", "b")
        await configure(hook, plane)

        def judge(request: JsonObject) -> JsonObject:
            seen = find(request, "object", "data")
            assert isinstance(seen, dict)
            return patch(set_data(f"step{len(seen)}", "x")) if len(hook.seen) < 3 else {"allowed": True}

        hook.judge = judge
        answer = await send(plane, "POST", CONFIG_MAPS, config_map(x="1"))
        assert (answer.code, find(answer.body, "data")) == (201, {"x": "1", "step1": "x", "step2": "x"})
        assert find((await send(plane, "GET", f"{CONFIG_MAPS}/a")).body, "data") == find(answer.body, "data")
        assert [find(one, "object", "data") for one in hook.seen] == [
            {"x": "1"},
            {"x": "1", "step1": "x"},
            {"x": "1", "step1": "x", "step2": "x"},
        ]


async def test_a_webhook_with_policy_if_needed_is_reinvoked_after_changes() -> None:
    async with serving() as (hook, plane):
        await configure_mutating(hook, plane, "a", reinvocationPolicy="IfNeeded")
        await configure_mutating(hook, plane, "b")
        calls: list[JsonValue] = []

        def judge(request: JsonObject) -> JsonObject:
            calls.append(find(request, "object", "data"))
            return patch(set_data("late", "1")) if len(calls) == 2 else {"allowed": True}

        hook.judge = judge
        assert (await send(plane, "POST", CONFIG_MAPS, config_map(x="1"))).code == 201
        assert calls == [{"x": "1"}, {"x": "1"}, {"x": "1", "late": "1"}]


async def test_defaults_are_added_after_a_patch() -> None:
    async with serving() as (hook, plane):
        rule: JsonObject = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["services"]}
        await configure_mutating(hook, plane, "a", rules=[rule])
        hook.judge = lambda _: patch({"op": "add", "path": "/spec/ports/-", "value": {"name": "more", "port": 81}})
        spec: JsonObject = {"ports": [{"name": "one", "port": 80}]}
        made: JsonObject = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec}
        answer = await send(plane, "POST", "/api/v1/namespaces/default/services", made)
        ports = find(answer.body, "spec", "ports")
        assert isinstance(ports, list)
        assert [find(one, "protocol") for one in ports] == ["TCP", "TCP"]
        assert [find(one, "targetPort") for one in ports] == [80, 81]


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_an_inapplicable_patch_is_an_error_with_any_failure_policy(policy: str) -> None:
    async with serving() as (hook, plane):
        await configure_mutating(hook, plane, "a", failurePolicy=policy)
        hook.judge = lambda _: patch({"op": "remove", "path": "/data/none"})
        assert (await send(plane, "POST", CONFIG_MAPS, config_map(x="1"))).code == 500
        assert (await send(plane, "GET", f"{CONFIG_MAPS}/a")).code == 404


@pytest.mark.parametrize(("policy", "code"), [("Fail", 500), ("Ignore", 201)])
@pytest.mark.parametrize(
    "response",
    [{"allowed": True, "patch": "W10="}, {"allowed": True, "patch": "W10=", "patchType": "Other"}],
    ids=["untyped", "another type"],
)
async def test_a_patch_without_a_patch_type_is_an_invalid_answer(policy: str, code: int, response: JsonObject) -> None:
    async with serving() as (hook, plane):
        await configure_mutating(hook, plane, "a", failurePolicy=policy)
        hook.judge = lambda _: response
        assert (await send(plane, "POST", CONFIG_MAPS, config_map())).code == code


async def test_a_validating_webhook_may_not_patch() -> None:
    async with serving() as (hook, plane):
        await configure(hook, plane)
        hook.judge = lambda _: patch(set_data("x", "1"))
        answer = await send(plane, "POST", CONFIG_MAPS, config_map())
        assert "validating webhook may not return response.patch" in find_str(answer.body, "message")


async def test_a_mutating_webhook_may_refuse_but_not_patch_a_deletion() -> None:
    async with serving() as (hook, plane):
        assert (await send(plane, "POST", CONFIG_MAPS, config_map())).code == 201
        await configure_mutating(hook, plane, "a")
        hook.judge = lambda _: patch(set_data("x", "1"))
        answer = await send(plane, "DELETE", f"{CONFIG_MAPS}/a")
        assert "attempted to modify the object" in find_str(answer.body, "message")
        hook.judge = lambda _: {"allowed": False, "status": {"message": "keep it"}}
        assert "denied the request: keep it" in find_str(
            (await send(plane, "DELETE", f"{CONFIG_MAPS}/a")).body, "message"
        )
        hook.judge = allow
        assert (await send(plane, "DELETE", f"{CONFIG_MAPS}/a")).code == 200
