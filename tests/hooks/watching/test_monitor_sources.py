"""The watches of a binding (`Sources`), which change with the namespaces that the binding selects."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import trio
from trio.testing import MockClock

from tests.cluster.support.client_contract import config_map, key
from tests.cluster.support.clusters import memory_cluster
from tests.cluster.support.faulty_transport import in_turn, status_reply
from tests.cluster.support.scripted_client import Server, client_of
from tests.hooks.support.bindings import binding
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ApiError, InvalidError
from wharfinger.cluster.api.http_client import HttpClusterClient
from wharfinger.cluster.api.raw_object import RawChange, RawObject
from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.cluster.watch.shared_watches import open_shared_watches
from wharfinger.formats.json.value import JsonObject, canonical_json
from wharfinger.hooks.config.bindings import KubernetesBinding, NamespaceSelector
from wharfinger.hooks.config.config import MAX_WATCHES
from wharfinger.hooks.watching import monitor_sources
from wharfinger.hooks.watching.monitor_sources import (
    Selection,
    Sources,
    TooManyWatchesError,
    _Source,
    open_sources,
    selection,
    watches,
)
from wharfinger.kube.resource import ObjectKey, ResourceType

CONFIG_MAP = ResourceType("", "v1", "ConfigMap", "configmaps", namespaced=True)
NAMESPACE = ResourceType("", "v1", "Namespace", "namespaces", namespaced=False)
TEAM = NamespaceSelector(None, "team=a")


class Told:
    """The reported changes in short: ``ADDED ns/name``."""

    def __init__(self) -> None:
        self._told: list[str] = []

    def __call__(self, change: RawChange) -> None:
        self._told.append(f"{change.type} {change.key.namespace}/{change.key.name}")

    def take(self) -> list[str]:
        told = [one for one in self._told if "kube-root-ca" not in one]
        self._told.clear()
        return told


def raw(name: str) -> RawObject:
    return RawObject(key(name), name, "1", canonical_json(config_map(name)))


@asynccontextmanager
async def following(client: ClusterClient, wanted: Selection, told: "Told") -> AsyncIterator[Sources]:
    """Open the sources of a selection, with shared watches that nothing else uses."""
    async with open_shared_watches(client) as shared, open_sources(client, shared, CONFIG_MAP, wanted, told) as sources:
        yield sources


async def settle() -> None:
    await trio.sleep(0.1)


def namespace(name: str, team: str = "") -> JsonObject:
    labels: JsonObject = {"team": team} if team else {}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


async def label(client: HttpClusterClient, name: str, team: str | None) -> None:
    await client.merge_patch(ObjectKey(NAMESPACE, "", name), {"metadata": {"labels": {"team": team}}})


# -- selection


@pytest.mark.parametrize(
    ("asked", "namespaces", "labels"),
    [
        (None, ("",), ""),
        (NamespaceSelector(("a", "b"), ""), ("a", "b"), ""),
        (TEAM, ("",), "team=a"),
        (NamespaceSelector((), ""), ("",), ""),
    ],
)
def test_selection_follows_the_namespace_selector_of_the_binding(
    asked: NamespaceSelector | None, namespaces: tuple[str, ...], labels: str
) -> None:
    wanted = selection(binding(namespaces=asked, labels="app=x"), None)
    assert (wanted.namespaces, wanted.namespace_labels, wanted.label_selector) == (namespaces, labels, "app=x")
    own = selection(binding(namespaces=asked), "prod")
    assert (own.namespaces, own.namespace_labels) == (("prod",), "")


@pytest.mark.parametrize(
    ("wanted", "selectors"),
    [
        (binding(), ("",)),
        (binding(fields="spec.x=1"), ("spec.x=1",)),
        (binding(names=("a", "b")), ("metadata.name=a", "metadata.name=b")),
        (binding(names=("a",), fields="spec.x=1"), ("metadata.name=a,spec.x=1",)),
        (binding(names=()), ("",)),
    ],
)
def test_names_become_field_selectors(wanted: KubernetesBinding, selectors: tuple[str, ...]) -> None:
    assert selection(wanted, None).field_selectors() == selectors


# -- watches


async def test_closed_source_deletes_its_objects_and_reports_no_more() -> None:
    told = Told()
    source = _Source("default", "", told)
    for name in "ab":
        source.take(RawChange(WatchType.ADDED, key(name), raw(name)))
    source.take(RawChange(WatchType.DELETED, key("b"), None))
    source.close()
    source.take(RawChange(WatchType.ADDED, key("c"), raw("c")))
    assert told.take() == ["ADDED default/a", "ADDED default/b", "DELETED default/b", "DELETED default/a"]


async def test_each_namespace_and_name_has_its_own_watch(autojump_clock: MockClock) -> None:
    told = Told()
    wanted = selection(binding(names=("a", "b"), namespaces=NamespaceSelector(("default", "kube-public"), "")), None)
    async with memory_cluster() as client:
        for where in ("default", "kube-public", "kube-system"):
            for name in ("a", "c"):
                await client.create(config_map(name, where))
        async with following(client, wanted, told) as sources:
            await sources.wait_listed()
            assert len(sources) == 4
            assert sorted(told.take()) == ["ADDED default/a", "ADDED kube-public/a"]
            for where in ("default", "kube-system"):
                for name in ("b", "d"):
                    await client.create(config_map(name, where))
            await client.delete(key("a", "kube-public"))
            await settle()
            assert sorted(told.take()) == ["ADDED default/b", "DELETED kube-public/a"]


async def test_watches_follow_the_matching_namespaces(autojump_clock: MockClock) -> None:
    told = Told()
    async with memory_cluster(simulate=True) as client:
        for name, team in (("one", "a"), ("two", "")):
            await client.create(namespace(name, team))
            await client.create(config_map("x", name))
        async with following(client, selection(binding(namespaces=TEAM), None), told) as sources:
            await sources.wait_listed()
            assert told.take() == ["ADDED one/x"]
            await label(client, "two", "a")
            await settle()
            await client.create(config_map("y", "two"))
            await settle()
            assert (told.take(), len(sources)) == (["ADDED two/x", "ADDED two/y"], 2)
            await label(client, "one", None)
            await settle()
            assert (told.take(), len(sources)) == (["DELETED one/x"], 1)
            await client.create(config_map("z", "one"))
            await client.delete(ObjectKey(NAMESPACE, "", "two"))
            await trio.sleep(30)
            assert (sorted(told.take()), len(sources)) == (["DELETED two/x", "DELETED two/y"], 0)
            await label(client, "one", "a")
            await settle()
            assert sorted(told.take()) == ["ADDED one/x", "ADDED one/z"]


async def test_rapidly_relabelled_namespace_ends_in_its_last_state(autojump_clock: MockClock) -> None:
    told = Told()
    async with memory_cluster() as client:
        await client.create(namespace("one", "a"))
        await client.create(config_map("x", "one"))
        async with following(client, selection(binding(namespaces=TEAM), None), told) as sources:
            await sources.wait_listed()
            for team in (None, "a", None, "a", None, "a"):
                await label(client, "one", team)
                await trio.lowlevel.checkpoint()
            await settle()
            story = told.take()
            assert story[::2] == ["ADDED one/x"] * (len(story) // 2 + 1)
            assert story[1::2] == ["DELETED one/x"] * (len(story) // 2)
            assert len(sources) == 1


async def test_selector_without_matching_namespaces_gives_an_empty_list() -> None:
    async with memory_cluster() as client:
        wanted = selection(binding(namespaces=TEAM), None)
        async with following(client, wanted, Told()) as sources:
            await sources.wait_listed()
            assert len(sources) == 0


# -- failures


async def test_failed_list_raises_its_error() -> None:
    wanted = Selection(("default",), "", (), "", "data.v=1")
    async with memory_cluster() as client, following(client, wanted, Told()) as sources:
        with pytest.raises(InvalidError):
            await sources.wait_listed()


async def test_failed_list_of_namespaces_raises_its_error() -> None:
    forbidden = status_reply(403, "Forbidden", "namespaces are not for you")
    wanted = Selection(("",), "team=a", (), "", "")
    async with (
        client_of(Server(in_turn(forbidden))) as (client, _),
        following(client, wanted, Told()) as sources,
    ):
        with pytest.raises(ApiError, match="not for you"):
            await sources.wait_listed()


async def test_namespace_removed_during_its_list_does_not_block(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await client.create(namespace("one", "a"))
        wanted = selection(binding(namespaces=TEAM), None)
        async with following(client, wanted, Told()) as sources, trio.open_nursery() as nursery:
            nursery.start_soon(sources.wait_listed)
            while not len(sources):
                await trio.lowlevel.checkpoint()
            sources._close("one")
            await settle()
        assert len(sources) == 0


# -- limits


async def test_selection_with_too_many_watches_is_refused() -> None:
    async with memory_cluster() as client:
        for namespaces, names in ((("a",) * 16, ("x",) * 17), (("",), ("x",) * (MAX_WATCHES + 1))):
            wanted = Selection(namespaces, "", names, "", "")
            async with following(client, wanted, Told()) as sources:
                with pytest.raises(TooManyWatchesError, match="watches of ConfigMap would be needed"):
                    await sources.wait_listed()
                assert len(sources) == 0


async def test_too_many_matching_namespaces_at_the_start_are_refused(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor_sources, "MAX_WATCHES", 3)
    async with memory_cluster() as client:
        for name in ("a", "b"):
            await client.create(namespace(name, "a"))
        async with following(client, Selection(("",), "team=a", ("x", "y"), "", ""), Told()) as sources:
            with pytest.raises(TooManyWatchesError, match="4 watches of ConfigMap"):
                await sources.wait_listed()


async def test_namespace_beyond_the_watch_limit_waits_for_a_free_watch(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(monitor_sources, "MAX_WATCHES", 2)
    told = Told()
    async with memory_cluster() as client:
        for name in ("a", "b"):
            await client.create(namespace(name, "a"))
        async with following(client, Selection(("",), "team=a", (), "", ""), told) as sources:
            await sources.wait_listed()
            for name in ("c", "d"):
                await client.create(namespace(name, "a"))
                await client.create(config_map("m", name))
            await settle()
            assert (len(sources), told.take()) == (2, [])
            lines = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
            assert [line.partition(" is selected")[0] for line in lines] == ["namespace c", "namespace d"]
            await label(client, "c", None)
            await label(client, "a", None)
            await settle()
            assert (len(sources), told.take()) == (2, ["ADDED d/m"])


async def test_recreated_namespace_is_a_new_source(autojump_clock: MockClock) -> None:
    told = Told()
    async with memory_cluster() as client:
        await client.create(namespace("one", "a"))
        await client.create(config_map("x", "one"))
        wanted = selection(binding(namespaces=TEAM), None)
        async with following(client, wanted, told) as sources:
            await sources.wait_listed()
            there = RawObject(ObjectKey(NAMESPACE, "", "one"), "other", "9", b"{}")
            sources._namespace_changed(RawChange(WatchType.DELETED, there.key, None))
            sources._namespace_changed(RawChange(WatchType.ADDED, there.key, there))
            await settle()
            assert told.take() == ["ADDED one/x", "DELETED one/x", "ADDED one/x"]


def test_relist_interval_is_the_resynchronization_period() -> None:
    assert selection(binding(), None).relist_s is None
    assert selection(replace(binding(), resynchronization_s=90.0), "own").relist_s == 90.0


def test_number_of_watches_is_names_times_namespaces() -> None:
    two = NamespaceSelector(("a", "b"), "")
    assert watches(binding(), None) == watches(binding(namespaces=TEAM), None) == 1
    assert watches(binding(names=("x", "y", "z"), namespaces=two), None) == 6
    assert watches(binding(names=("x", "y", "z"), namespaces=two), "own") == 3
