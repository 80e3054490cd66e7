"""Calls of webhooks: the requests that webhooks get, and the effects of their answers.

A write is attempted first without the answers of webhooks. If webhooks must be called, this attempt stores nothing. After the
webhooks have answered, the write is attempted again.
"""

from tests.control_plane.support.bench import send
from tests.control_plane.support.webhook_server import CONFIG_MAPS, config_map, configure, serving
from wharfinger.formats.json.value import JsonObject, find, find_str


async def test_a_webhook_is_called_for_every_verb_with_both_objects() -> None:
    async with serving() as (hook, plane):
        await configure(hook, plane)
        assert (await send(plane, "POST", CONFIG_MAPS, config_map(x="1"))).code == 201
        changed = await send(
            plane, "PATCH", f"{CONFIG_MAPS}/a", {"data": {"x": "2"}}, content_type="application/merge-patch+json"
        )
        assert (changed.code, find(changed.body, "data", "x")) == (200, "2")
        assert (await send(plane, "DELETE", f"{CONFIG_MAPS}/a")).code == 200
        assert [find(one, "operation") for one in hook.seen] == ["CREATE", "UPDATE", "DELETE"]
        assert [find(one, "object", "data", "x") for one in hook.seen] == ["1", "2", None]
        assert [find(one, "oldObject", "data", "x") for one in hook.seen] == [None, "1", "2"]
        assert len({find_str(one, "uid") for one in hook.seen}) == 3


async def test_a_denied_write_changes_nothing_and_reports_the_reason() -> None:
    async with serving() as (hook, plane):
        await configure(hook, plane)
        hook.judge = lambda _: {
            "allowed": False,
            "status": {"code": 403, "reason": "Forbidden", "message": "not today"},
        }
        answer = await send(plane, "POST", CONFIG_MAPS, config_map())
        assert answer.code == 403
        assert find(answer.body, "message") == 'admission webhook "c.example.com" denied the request: not today'
        assert (await send(plane, "GET", f"{CONFIG_MAPS}/a")).code == 404


async def test_warnings_reach_the_client_once() -> None:
    async with serving() as (hook, plane):
        await configure(hook, plane)
        hook.judge = lambda _: {"allowed": True, "warnings": ["be careful"]}
        answer = await send(plane, "POST", CONFIG_MAPS, config_map())
        assert (answer.code, answer.headers.get("warning")) == (201, '299 - "be careful"')


async def test_a_generated_name_is_the_same_in_each_attempt() -> None:
    async with serving() as (hook, plane):
        await configure(hook, plane)
        made: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}}
        assert (await send(plane, "POST", CONFIG_MAPS, made)).code == 201
        assert len(hook.seen) == 1


async def test_webhooks_are_called_again_if_the_object_changes_meanwhile() -> None:
    async with serving() as (hook, plane):
        assert (await send(plane, "POST", CONFIG_MAPS, config_map(x="1"))).code == 201
        await configure(hook, plane)

        async def change(data: JsonObject) -> JsonObject:
            merge = "application/merge-patch+json"
            return (await send(plane, "PATCH", f"{CONFIG_MAPS}/a", {"data": data}, content_type=merge)).body

        async def meanwhile() -> None:
            hook.before = None
            await change({"x": "9"})

        hook.before = meanwhile
        assert find(await change({"mine": "1"}), "data") == {"x": "9", "mine": "1"}
        assert [find(one, "object", "data") for one in hook.seen] == [
            {"x": "9"},
            {"x": "1", "mine": "1"},
            {"x": "9", "mine": "1"},
        ]
