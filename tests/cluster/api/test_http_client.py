"""The client with scripted servers that misbehave. test_client_contract.py tests the contract of clients."""

import httpx
import msgspec
import pytest
import trio
from trio.testing import MockClock

from tests.cluster.api.test_discovery import POD
from tests.cluster.support.faulty_transport import Hang, Reply, event, in_turn, json_reply, status_reply
from tests.cluster.support.scripted_client import Server, client_of
from wharfinger.cluster.api.client import WatchEvent
from wharfinger.cluster.api.errors import ApiError, ClusterError, GoneError, InvalidError, UnreachableError
from wharfinger.cluster.api.http_errors import MalformedAnswerError
from wharfinger.cluster.api.http_session import ClientOptions
from wharfinger.cluster.api.watch_stream import WatchLineError
from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.resource import ObjectKey

KEY = ObjectKey(POD, "prod", "web")
EXPIRED = status_reply(410, "Expired", "The provided continue parameter is too old")


def pod(name: str, version: str = "1") -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "prod", "resourceVersion": version},
    }


def page(*names: str, version: str = "10", token: str = "") -> Reply:
    metadata: JsonObject = {"resourceVersion": version}
    if token:
        metadata["continue"] = token
    items: list[JsonValue] = [{"metadata": {"name": name}} for name in names]
    return json_reply({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items})


async def watch_all(*chunks: bytes | Exception | Hang) -> list[WatchEvent]:
    """Return the events of one watch whose response has these chunks."""
    seen: list[WatchEvent] = []
    async with client_of(in_turn(Reply(200, list(chunks)))) as (client, _):
        async with client.watch(POD, "prod", resource_version="5") as events:
            assert client.statistics()["watches"] == 1
            async for one in events:
                seen.append(one)  # noqa: PERF401 - what was seen counts when it raises, too
        assert client.statistics()["watches"] == 0
    return seen


# -- lists


async def test_a_list_is_read_page_by_page() -> None:
    async with client_of(in_turn(page("a", token="t1"), page("b", token="t2"), page("c"))) as (client, transport):
        listed = await client.list(POD, "prod", label_selector="app=x")
    assert [item["metadata"] for item in listed.items] == [{"name": "a"}, {"name": "b"}, {"name": "c"}]
    assert listed.items[0]["apiVersion"] == "v1"
    assert listed.items[0]["kind"] == "Pod"
    assert listed.resource_version == "10"
    assert [str(request.url) for request in transport.requests] == [
        "https://api.example/api/v1/namespaces/prod/pods?limit=500&labelSelector=app%3Dx",
        "https://api.example/api/v1/namespaces/prod/pods?limit=500&labelSelector=app%3Dx&continue=t1",
        "https://api.example/api/v1/namespaces/prod/pods?limit=500&labelSelector=app%3Dx&continue=t2",
    ]


async def test_an_expired_page_restarts_the_list() -> None:
    async with client_of(in_turn(page("a", token="t1"), EXPIRED, page("b", token="t2"), page("c", version="11"))) as (
        client,
        _,
    ):
        listed = await client.list(POD)
    assert [item["metadata"] for item in listed.items] == [{"name": "b"}, {"name": "c"}]
    assert listed.resource_version == "11"


async def test_a_list_that_expires_repeatedly_is_requested_without_pages() -> None:
    answers = (page("a", token="t1"), EXPIRED, page("a", token="t1"), EXPIRED, page("a", "b"))
    async with client_of(in_turn(*answers)) as (client, transport):
        assert len((await client.list(POD)).items) == 2
    assert "limit" not in transport.requests[-1].url.params
    async with client_of(in_turn(*answers[:4], page("a", token="t"), EXPIRED)) as (client, _):
        with pytest.raises(GoneError, match="expire before all their pages are read"):
            await client.list(POD)


async def test_a_list_that_expires_at_once_is_an_error() -> None:
    async with client_of(in_turn(EXPIRED)) as (client, _):
        with pytest.raises(GoneError, match="too old"):
            await client.list(POD)


async def test_a_list_with_null_items_is_empty() -> None:
    reply = json_reply({"kind": "PodList", "metadata": {"resourceVersion": "3"}, "items": None})
    async with client_of(in_turn(reply)) as (client, _):
        assert (await client.list(POD)).items == ()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"7",
        b"[" * 100_000,
        b'{"items":5}',
        b'{"items":[5]}',
        b'{"metadata":{"continue":5}}',
        b"\xff",
    ],
)
async def test_malformed_list_answers_are_refused(body: bytes) -> None:
    async with client_of(in_turn(Reply(200, [body]))) as (client, _):
        with pytest.raises(MalformedAnswerError, match="list Pod"):
            await client.list(POD)


# -- watches


async def test_a_watch_requests_bookmarks_and_a_finite_time() -> None:
    async with (
        client_of(in_turn(Reply(200, []))) as (client, transport),
        client.watch(POD, "prod", resource_version="5", label_selector="a=b") as events,
    ):
        assert [one async for one in events] == []
    assert dict(transport.requests[0].url.params) == {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "300",
        "resourceVersion": "5",
        "labelSelector": "a=b",
    }
    assert transport.requests[0].extensions["timeout"]["read"] == ClientOptions().watch_silence_s


async def test_events_cut_into_pieces_are_read() -> None:
    stream = event("ADDED", pod("a")) + b"\n" + event("BOOKMARK", pod("", "9")) + event("DELETED", pod("a", "10"))
    seen = await watch_all(*[stream[at : at + 7] for at in range(0, len(stream), 7)])
    assert [one.type for one in seen] == [WatchType.ADDED, WatchType.BOOKMARK, WatchType.DELETED]


@pytest.mark.parametrize(
    ("chunks", "error"),
    [
        ([event("ERROR", {"kind": "Status", "code": 410, "message": "too old"})], GoneError),
        ([event("ERROR", {"kind": "Status", "code": 500, "message": "etcd"})], ApiError),
        ([event("ADDED", pod("a")), httpx.ReadError("connection reset by peer")], UnreachableError),
        ([event("ADDED", pod("a")), httpx.ReadTimeout("")], UnreachableError),
        ([httpx.RemoteProtocolError("peer closed connection without sending complete message body")], UnreachableError),
        ([event("ADDED", pod("a"))[:-5]], WatchLineError),
        ([b"garbage\n"], WatchLineError),
    ],
)
async def test_broken_watches_raise_typed_errors(chunks: list[bytes | Exception], error: type[ClusterError]) -> None:
    with pytest.raises(error):
        await watch_all(*chunks)


async def test_a_watch_refused_as_too_old_raises_gone() -> None:
    async with client_of(in_turn(status_reply(410, "Expired", "too old resource version"))) as (client, _):
        with pytest.raises(GoneError):
            async with client.watch(POD, resource_version="1"):
                pytest.fail("it never opens")


async def test_leaving_a_watch_early_closes_it() -> None:
    reply = Reply(200, [event("ADDED", pod("a")) * 3, event("ADDED", pod("b")), Hang()])
    async with client_of(in_turn(reply)) as (client, transport):
        async with client.watch(POD, resource_version="1") as events:
            async for _ in events:
                break
        assert transport.open_streams == 0


async def test_cancelling_a_silent_watch_closes_it(autojump_clock: MockClock) -> None:
    async with client_of(in_turn(Reply(200, [event("ADDED", pod("a")), Hang()]))) as (client, transport):
        with trio.move_on_after(5) as scope:
            async with client.watch(POD, resource_version="1") as events:
                async for _ in events:
                    pass
        assert scope.cancelled_caught
        assert transport.open_streams == 0


# -- writes


async def test_apply_sends_its_parameters() -> None:
    async with client_of(Server(in_turn(json_reply(pod("web")), json_reply(pod("web"))))) as (client, transport):
        await client.apply(pod("web"), field_manager="wharfinger")
        await client.apply(pod("web"), field_manager="wharfinger", force=True, dry_run=True)
    first, second = transport.requests[-2:]
    assert (first.method, first.url.path) == ("PATCH", "/api/v1/namespaces/prod/pods/web")
    assert first.headers["content-type"] == "application/apply-patch+yaml"
    assert dict(first.url.params) == {"fieldManager": "wharfinger", "force": "false"}
    assert dict(second.url.params) == {"fieldManager": "wharfinger", "force": "true", "dryRun": "All"}


async def test_delete_sends_its_preconditions() -> None:
    async with client_of(in_turn(json_reply({"kind": "Status"}))) as (client, transport):
        await client.delete(KEY, uid="u-1")
    assert msgspec.json.decode(transport.requests[0].content) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": "u-1"},
    }


@pytest.mark.parametrize(
    "obj",
    [
        {},
        {"apiVersion": "v1", "kind": "Pod"},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}},
        {"apiVersion": "v1", "metadata": {"name": "web"}},
        {"kind": "Pod", "metadata": {"name": "web"}},
        {"apiVersion": 1, "kind": "Pod", "metadata": {"name": "web"}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "..", "namespace": "prod"}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a/b", "namespace": "prod"}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a%2Fb", "namespace": "prod"}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": ".."}},
    ],
)
async def test_objects_that_cannot_be_addressed_are_refused_before_they_are_sent(obj: JsonObject) -> None:
    async with client_of(Server(in_turn())) as (client, _):
        with pytest.raises(InvalidError):
            await client.apply(obj, field_manager="wharfinger")
        with pytest.raises(InvalidError):
            await client.create(obj)


async def test_an_empty_name_does_not_address_the_collection() -> None:
    async with client_of(in_turn()) as (client, _):
        with pytest.raises(InvalidError, match="a name is needed"):
            await client.delete(ObjectKey(POD, "prod", ""))


@pytest.mark.parametrize("subresource", ["..", "a/b", "%2e%2e"])
async def test_a_subresource_that_would_lead_elsewhere_is_refused(subresource: str) -> None:
    async with client_of(in_turn()) as (client, _):
        with pytest.raises(InvalidError, match="cannot be part of a path"):
            await client.merge_patch(ObjectKey(POD, "prod", "web"), {}, subresource=subresource)


async def test_the_server_version_is_cached_for_a_minute(autojump_clock: MockClock) -> None:
    answers = in_turn(json_reply({"gitVersion": "v1.36.2"}), json_reply({"gitVersion": 5}))
    async with client_of(answers) as (client, transport):
        for _ in range(3):
            assert await client.server_version() == "v1.36.2"
        assert len(transport.requests) == 1
        await trio.sleep(61)  # the version is cached for a minute
        with pytest.raises(MalformedAnswerError):
            await client.server_version()
