"""Case 7: which changes of a cluster become events of a hook with a given configuration."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from trio.testing import MockClock

from tests.cluster.support.client_contract import NAMESPACE, config_map, key
from tests.cluster.support.clusters import memory_cluster
from tests.hooks.conformance.jq_here import JqHere
from tests.hooks.conformance.telling import asking, read
from tests.hooks.support.watching import settle
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.http_client import HttpClusterClient
from wharfinger.cluster.watch.shared_watches import SharedWatches, open_shared_watches
from wharfinger.formats.json.value import JsonObject, find, find_list, find_str
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.discovery import Hook
from wharfinger.hooks.running.package_hooks import PackageHooks, open_package_hooks
from wharfinger.kube.resource import ObjectKey

VALUE = "jqFilter: .data.v"


def watching(more: str = "", kind: str = "ConfigMap") -> Hook:
    """Return a hook with one binding, ``maps``."""
    return asking(
        f"kubernetes: [{{name: maps, kind: {kind}, labelSelector: {{matchLabels: {{app: x}}}}{more and ', '}{more}}}]"
    )


def labelled(name: str, value: str, namespace: str = "default") -> JsonObject:
    return config_map(name, namespace, labels={"app": "x"}, v=value)


class Told:
    """The monitored binding of a hook, and the contexts of its next runs."""

    def __init__(self, opened: PackageHooks, hook: Hook) -> None:
        self.opened = opened
        self.hook = hook
        self.binding = hook.config.kubernetes[0]

    def synchronization(self) -> list[str]:
        """Return the objects that the first run of the hook for its binding gets, without marking this run as successful."""
        (context,) = read(*self.opened.synchronization(self.hook, self.binding))
        return [shown(item) for item in find_list(context, "objects")]

    def unlock(self) -> None:
        """Mark the synchronization as successful."""
        self.opened.monitor(self.hook, self.binding).unlock()

    def synchronize(self) -> list[str]:
        """Return the objects of the synchronization and mark it as successful."""
        objects = self.synchronization()
        self.unlock()
        return objects

    def snapshot(self) -> list[str]:
        items = self.opened.all_snapshots(self.hook)["maps"]
        return [shown({name: kept.value() for name, kept in item.fields().items()}) for item in items]

    async def events(self) -> list[str]:
        """Wait until the cluster is idle, and return the new events, such as ``Added default/a 1``."""
        await settle()
        box = self.opened.inbox(self.hook, "main")
        occurrences = box.offered()
        told = read(*self.opened.contexts(self.hook, occurrences))
        box.remove_processed(occurrences)
        return [f"{find_str(context, 'watchEvent')} {shown(context)}" for context in told]


def shown(item: object) -> str:
    """Return an item in short, such as ``default/a 1``, or only the filter result if the item has no object."""
    assert isinstance(item, dict)
    place = "/".join(find_str(item, "object", "metadata", name) for name in ("namespace", "name"))
    return f"{place.strip('/')} {item.get('filterResult', '')}".strip()


@asynccontextmanager
async def following(client: ClusterClient, hook: Hook, shared: SharedWatches | None = None) -> AsyncIterator[Told]:
    """Monitor the hook's binding with the given watches, or else with new ones. Raises HookError."""
    if shared is None:
        failure: HookError | None = None
        async with open_shared_watches(client) as own:
            try:
                async with following(client, hook, own) as told:
                    yield told
            except HookError as error:
                failure = error
        if failure is not None:
            raise failure
        return
    async with open_package_hooks(
        "p", (hook,), client, shared, JqHere(), namespace=None, on_event=lambda _hooks, _box: None
    ) as opened:
        yield Told(opened, hook)


async def create(client: HttpClusterClient, *objects: JsonObject) -> None:
    for obj in objects:
        await client.create(obj)


async def set_value(client: HttpClusterClient, name: str, value: str, namespace: str = "default") -> None:
    await client.merge_patch(key(name, namespace), {"data": {"v": value}})


async def namespace(client: HttpClusterClient, name: str, **labels: str) -> None:
    metadata: JsonObject = {"name": name, "labels": {**labels}}
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


async def test_existing_objects_are_in_the_synchronization_but_not_events(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await create(
            client, labelled("b", "2"), labelled("a", "1"), labelled("z", "3", "kube-public"), config_map("no")
        )
        async with following(client, watching(VALUE)) as told:
            assert told.synchronize() == ["default/a 1", "default/b 2", "kube-public/z 3"]
            assert await told.events() == []
            await create(client, labelled("c", "1"))
            await set_value(client, "a", "5")
            await client.delete(key("b"))
            assert await told.events() == ["Added default/c 1", "Modified default/a 5", "Deleted default/b 2"]
            assert told.snapshot() == ["default/a 5", "default/c 1", "kube-public/z 3"]


@pytest.mark.parametrize("kind", ["ConfigMap", "configmap", "ConfigMaps", "configmaps", "cm", "CM"])
async def test_kinds_are_accepted_by_all_their_names(kind: str, autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await create(client, labelled("a", "1"))
        async with following(client, watching(VALUE, kind)) as told:
            assert told.synchronize() == ["default/a 1"]


async def test_events_wait_until_the_synchronization_has_succeeded(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await create(client, labelled("a", "1"))
        async with following(client, watching(VALUE)) as told:
            assert told.synchronization() == ["default/a 1"]
            # While the synchronization run fails, another object is created.
            await create(client, labelled("b", "1"))
            assert await told.events() == []
            # The retry of the run gets the current objects, and later changes are events.
            assert told.synchronization() == ["default/a 1", "default/b 1"]
            await set_value(client, "a", "2")
            await client.delete(key("b"))
            assert await told.events() == []
            told.unlock()
            assert await told.events() == ["Modified default/a 2", "Deleted default/b 1"]
            await set_value(client, "a", "3")
            assert await told.events() == ["Modified default/a 3"]


async def test_changes_outside_the_filter_result_are_not_events(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await create(client, labelled("a", "1"))
        async with following(client, watching(VALUE)) as told:
            told.synchronize()
            await client.merge_patch(key("a"), {"data": {"other": "x"}, "metadata": {"annotations": {"beat": "1"}}})
            assert await told.events() == []
            # The snapshot nevertheless has the newest object.
            (item,) = told.opened.all_snapshots(told.hook)["maps"]
            assert find(item.object.value() if item.object else None, "data", "other") == "x"
            # A deletion is always reported.
            await client.delete(key("a"))
            assert await told.events() == ["Deleted default/a 1"]


async def test_without_a_filter_every_update_is_an_event(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await create(client, labelled("a", "1"))
        async with following(client, watching()) as told:
            told.synchronize()
            await client.merge_patch(key("a"), {"metadata": {"annotations": {"beat": "1"}}})
            assert await told.events() == ["Modified default/a"]


@pytest.mark.parametrize(
    ("verbs", "expected"),
    [
        ("[Added]", ["Added default/b 1"]),
        ("[Modified]", ["Modified default/b 2"]),
        ("[Deleted, Added]", ["Added default/b 1", "Deleted default/b 2"]),
        ("[]", []),
    ],
)
async def test_unrequested_event_types_are_not_reported(
    verbs: str, expected: list[str], autojump_clock: MockClock
) -> None:
    async with memory_cluster() as client, following(client, watching(f"{VALUE}, executeHookOnEvent: {verbs}")) as told:
        told.synchronize()
        await create(client, labelled("b", "1"))
        await settle()
        assert told.snapshot() == ["default/b 1"]
        await set_value(client, "b", "2")
        await settle()
        assert told.snapshot() == ["default/b 2"]
        await client.delete(key("b"))
        assert await told.events() == expected
        assert told.snapshot() == []


async def test_objects_are_omitted_with_keep_full_objects_disabled(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await create(client, labelled("a", "1"))
        async with following(client, watching(f"{VALUE}, keepFullObjectsInMemory: false")) as told:
            assert told.synchronize() == ["1"]
            await set_value(client, "a", "2")
            assert await told.events() == ["Modified 2"]


async def test_object_entering_or_leaving_the_selector_is_added_or_deleted(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await create(client, labelled("a", "1"), config_map("b", v="2"))
        async with following(client, watching(VALUE)) as told:
            assert told.synchronize() == ["default/a 1"]
            await client.merge_patch(key("b"), {"metadata": {"labels": {"app": "x"}}})
            await client.merge_patch(key("a"), {"metadata": {"labels": {"app": "y"}}})
            assert await told.events() == ["Added default/b 2", "Deleted default/a 1"]


async def test_only_listed_namespaces_and_names_are_watched(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        for name in ("one", "two", "three"):
            await namespace(client, name)
        where = "namespace: {nameSelector: {matchNames: [one, two]}}, nameSelector: {matchNames: [a, b]}"
        await create(client, *[labelled(name, "1", place) for place in ("one", "three") for name in ("a", "c")])
        async with following(client, watching(f"{VALUE}, {where}")) as told:
            assert told.synchronize() == ["one/a 1"]
            await create(client, labelled("b", "1", "two"), labelled("c", "1", "two"), labelled("b", "1", "three"))
            assert await told.events() == ["Added two/b 1"]
            assert told.opened.monitor(told.hook, told.binding).statistics().watches == 4


async def test_objects_of_namespaces_that_start_or_stop_matching_are_reported(autojump_clock: MockClock) -> None:
    """When a namespace begins or ceases to match the selector of a binding, all objects in it are reported as Added or as
    Deleted. The peers report nothing.
    """
    async with memory_cluster() as client:
        await namespace(client, "one", team="a")
        await namespace(client, "two")
        await create(client, labelled("m", "1", "one"), labelled("m", "2", "two"))
        where = "namespace: {labelSelector: {matchLabels: {team: a}}}"
        async with following(client, watching(f"{VALUE}, {where}")) as told:
            assert told.synchronize() == ["one/m 1"]
            await client.merge_patch(ObjectKey(NAMESPACE, "", "two"), {"metadata": {"labels": {"team": "a"}}})
            assert await told.events() == ["Added two/m 2"]
            await set_value(client, "m", "3", "two")
            assert await told.events() == ["Modified two/m 3"]
            await client.merge_patch(ObjectKey(NAMESPACE, "", "one"), {"metadata": {"labels": {"team": None}}})
            assert await told.events() == ["Deleted one/m 1"]
            await set_value(client, "m", "9", "one")
            assert await told.events() == []
            await namespace(client, "new", team="a")
            await create(client, labelled("m", "4", "new"))
            assert await told.events() == ["Added new/m 4"]
            assert told.snapshot() == ["new/m 4", "two/m 3"]


async def test_namespace_label_selector_takes_precedence_over_names(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await namespace(client, "one", team="a")
        await create(client, labelled("m", "1", "one"), labelled("m", "2"))
        where = "namespace: {labelSelector: {matchLabels: {team: a}}, nameSelector: {matchNames: [default]}}"
        async with following(client, watching(f"{VALUE}, {where}")) as told:
            assert told.synchronize() == ["one/m 1"]


async def test_a_filter_that_fails_on_existing_objects_fails_the_binding(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await create(client, labelled("a", "text"))
        with pytest.raises(HookError, match="filter fails on ConfigMap default/a"):
            async with following(client, watching("jqFilter: .data.v | tonumber")):
                pytest.fail("it must not begin")


async def test_a_filter_that_fails_on_a_change_leaves_the_previous_state(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await create(client, labelled("a", "1"))
        async with following(client, watching("jqFilter: .data.v | tonumber")) as told:
            told.synchronize()
            await set_value(client, "a", "text")
            assert await told.events() == []
            assert told.snapshot() == ["default/a 1"]
            await set_value(client, "a", "2")
            assert await told.events() == ["Modified default/a 2"]


async def test_equal_bindings_share_a_watch_until_the_last_one_ends(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, open_shared_watches(client) as shared:
        await create(client, labelled("a", "1"))
        async with following(client, watching(), shared) as first:
            first.synchronize()
            async with following(client, watching(VALUE), shared) as second:
                assert second.synchronize() == ["default/a 1"]
                (watch,) = shared.statistics()
                assert watch.subscribers == 2
                await set_value(client, "a", "2")
                assert await first.events() == ["Modified default/a"]
                assert await second.events() == ["Modified default/a 2"]
            (watch,) = shared.statistics()
            assert watch.subscribers == 1
            await set_value(client, "a", "3")
            assert await first.events() == ["Modified default/a"]
            # The later binding gets all objects, and causes no event for the first one.
            async with following(client, watching(VALUE), shared) as third:
                assert third.synchronize() == ["default/a 3"]
                assert await first.events() == []
        assert shared.statistics() == ()


async def test_an_unknown_kind_fails_until_it_is_defined(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        with pytest.raises(HookError, match="gizmo") as caught:
            async with following(client, watching("", "gizmo")):
                pytest.fail("it must not begin")
        assert caught.value.transient
