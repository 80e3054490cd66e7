"""Referenced Secrets and ConfigMaps: each of them is watched, and the packages that use it are notified."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import Connection, bearer
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.control_plane.service import LOCAL, open_control_plane
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.resources.references import References, open_references
from wharfinger.runtime.resources.resources import CONFIG_MAP, SECRET

ONE = ObjectKey(CONFIG_MAP, "default", "one")
TWO = ObjectKey(CONFIG_MAP, "default", "two")


@dataclass
class Told:
    """The names of notified packages, and a way to wait for the next notification."""

    names: list[str] = field(default_factory=list)
    rung: trio.Event = field(default_factory=trio.Event)

    def __call__(self, name: str) -> None:
        self.names.append(name)
        self.rung.set()

    async def next(self) -> None:
        with trio.fail_after(300):
            await self.rung.wait()
        self.rung = trio.Event()


def config_map(name: str, text: str = "a") -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"k": text},
    }


@asynccontextmanager
async def opened() -> AsyncIterator[tuple[HttpClusterClient, References, Told]]:
    told = Told()
    async with (
        open_control_plane(simulate=False) as control_plane,
        open_client(Connection(LOCAL, bearer("")), transport=control_plane.transport()) as client,
        open_references(client, told) as references,
    ):
        yield client, references, told


async def until(told: Told, holds: object) -> None:
    assert callable(holds)
    while not holds():
        await told.next()


async def test_existing_objects_and_their_changes_are_reported() -> None:
    async with opened() as (client, references, told):
        await client.create(config_map("one"))
        assert not references.looked_up(ONE)
        references.want("prod.web", [ONE])
        await until(told, lambda: references.looked_up(ONE))
        assert find_str(references.get(ONE), "data", "k") == "a"
        await client.merge_patch(ONE, {"data": {"k": "b"}})
        await until(told, lambda: find_str(references.get(ONE), "data", "k") == "b")
        await client.delete(ONE)
        await until(told, lambda: references.get(ONE) is None)
        assert references.looked_up(ONE)
        assert set(told.names) == {"prod.web"}


async def test_a_missing_object_is_known_and_its_creation_reported() -> None:
    async with opened() as (client, references, told):
        references.want("prod.web", [ONE])
        await until(told, lambda: references.looked_up(ONE))
        assert references.get(ONE) is None
        assert references.problem(ONE) == ""
        await client.create(config_map("one"))
        await until(told, lambda: references.get(ONE) is not None)


async def test_users_of_an_object_share_a_watch_that_ends_with_the_last() -> None:
    async with opened() as (client, references, told):
        await client.create(config_map("one"))
        references.want("a.x", [ONE, TWO])
        references.want("b.y", [ONE])
        assert len(references) == 2
        await until(told, lambda: {"a.x", "b.y"} <= set(told.names))
        references.want("a.x", ())
        assert len(references) == 1
        told.names.clear()
        await client.merge_patch(ONE, {"data": {"k": "b"}})
        await until(told, lambda: bool(told.names))
        assert set(told.names) == {"b.y"}
        references.want("b.y", ())
        assert len(references) == 0
        assert references.get(ONE) is None


async def test_only_referenced_objects_are_visible() -> None:
    async with opened() as (client, references, told):
        await client.create(config_map("one"))
        await client.create(config_map("two"))
        references.want("a.x", [TWO])
        await until(told, lambda: references.looked_up(TWO))
        assert references.get(ONE) is None
        assert not references.looked_up(ONE)


async def test_an_object_that_may_not_be_read_has_a_problem() -> None:
    told = Told()
    async with (
        open_control_plane(simulate=False, token="right") as control_plane,
        open_client(Connection(LOCAL, bearer("wrong")), transport=control_plane.transport()) as client,
    ):
        refused: ClusterClient = client
        async with open_references(refused, told) as references:
            key = ObjectKey(SECRET, "default", "one")
            references.want("a.x", [key])
            await until(told, lambda: bool(references.problem(key)))
            assert not references.looked_up(key)
            assert "401" in references.problem(key) or "Unauthorized" in references.problem(key)
