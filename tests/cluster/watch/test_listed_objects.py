"""The function that visits all objects of a kind."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.cluster.support.client_contract import CONFIG_MAP, config_map
from tests.cluster.support.clusters import memory_cluster
from tests.cluster.support.faulty_transport import Answer, FaultyTransport, Reply, in_turn, status_reply
from tests.cluster.support.watch_script import obj, page
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.errors import ApiError, GoneError
from wharfinger.cluster.api.http_client import open_client
from wharfinger.cluster.watch.listed_objects import visit_all
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import ObjectKey

EXPIRED = status_reply(410, "Expired", "the continue token is too old")
DEEP = b'{"items":[{"metadata":{"name":"deep"},"x":' + b"[" * 600 + b"]" * 600 + b'},{"metadata":{"name":"b"}}]}'


class Shown:
    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, key: ObjectKey, live: JsonObject) -> None:
        assert live["kind"] == "ConfigMap"
        self.names.append(key.name)


@asynccontextmanager
async def scripted(*answers: Answer) -> AsyncIterator[ClusterClient]:
    async with open_client(Connection("https://api.example"), transport=FaultyTransport(in_turn(*answers))) as client:
        yield client


def names_of(keys: set[ObjectKey]) -> list[str]:
    return sorted(key.name for key in keys)


async def test_every_selected_object_is_visited() -> None:
    shown = Shown()
    async with memory_cluster() as client:
        for name in ("a", "b", "c"):
            await client.create(config_map(name, labels={"here": "no" if name == "b" else "yes"}))
        seen = await visit_all(client, CONFIG_MAP, "here=yes", shown)

    assert (names_of(seen), sorted(shown.names)) == (["a", "c"], ["a", "c"])


async def test_an_expired_list_is_read_again_without_pages() -> None:
    shown = Shown()
    again = page(obj("a", 1), obj("b", 1), version=6)
    async with scripted(page(obj("a", 1), version=5, token="t"), EXPIRED, again) as client:
        seen = await visit_all(client, CONFIG_MAP, "x", shown)

    assert (names_of(seen), shown.names) == (["a", "b"], ["a", "a", "b"])


async def test_an_unreadable_object_is_listed_and_not_visited() -> None:
    shown = Shown()
    async with scripted(Reply(200, [DEEP])) as client:
        seen = await visit_all(client, CONFIG_MAP, "x", shown)

    assert (names_of(seen), shown.names) == (["b", "deep"], ["b"])


@pytest.mark.parametrize(
    ("answers", "error"),
    [([status_reply(403, "Forbidden", "no")], ApiError), ([EXPIRED, EXPIRED], GoneError)],
)
async def test_failed_lists_raise(answers: list[Answer], error: type[Exception]) -> None:
    async with scripted(*answers) as client:
        with pytest.raises(error):
            await visit_all(client, CONFIG_MAP, "x", Shown())
