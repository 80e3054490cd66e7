"""The hooks of a package: their events, contexts and snapshots."""

import io
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import cast

import pytest
from trio.testing import MockClock

from tests.cluster.support.client_contract import key
from tests.cluster.support.clusters import memory_cluster
from tests.hooks.support.hooked import WATCHING, hook
from tests.hooks.support.python_filters import PythonFilters
from tests.hooks.support.watching import obj, plain, settle, value_filters, write
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.watch.shared_watches import SharedWatches, open_shared_watches
from wharfinger.formats.json.value import JsonObject, find, find_list, find_object
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running import package_hooks
from wharfinger.hooks.running.discovery import Hook
from wharfinger.hooks.running.inbox import Inbox, Occurrence
from wharfinger.hooks.running.package_hooks import PackageHooks, open_package_hooks
from wharfinger.hooks.watching.context_file import Context, write_contexts
from wharfinger.hooks.watching.contexts import synchronized_together

RINGING = hook(
    "{configVersion: v1, schedule: [{name: often, crontab: '* * * * *'}, {name: also, crontab: '* * * * *', queue: q},"
    " {name: seldom, crontab: '0 0 * * *'}]}"
)


def unopened(*hooks: Hook) -> PackageHooks:
    """Return the hooks of a package whose monitors do not run."""
    client, watches = cast("ClusterClient", None), cast("SharedWatches", None)
    filters = value_filters()
    return PackageHooks("p", hooks, client, watches, filters, namespace=None, on_event=lambda _hooks, _box: None)


@asynccontextmanager
async def opening(
    client: ClusterClient,
    *hooks: Hook,
    package: str = "p",
    filters: PythonFilters | None = None,
    namespace: str | None = "default",
    on_event: Callable[[PackageHooks, Inbox], None] = lambda _hooks, _box: None,
) -> AsyncIterator[PackageHooks]:
    """Open the hooks of a package with watches that no other package shares. Raises HookError."""
    failure: HookError | None = None
    async with open_shared_watches(client) as shared:
        try:
            async with open_package_hooks(
                package,
                hooks,
                client,
                shared,
                filters or value_filters(),
                namespace=namespace,
                on_event=on_event,
            ) as opened:
                yield opened
        except HookError as error:
            failure = error
    if failure is not None:
        raise failure


def read(contexts: Sequence[Context]) -> list[JsonObject]:
    """Return the contexts as a hook reads them."""
    file = io.BytesIO()
    write_contexts(file, contexts)
    found: list[JsonObject] = json.loads(file.getvalue())
    return found


def test_tick_is_added_to_every_binding_of_its_crontab() -> None:
    opened = unopened(RINGING)
    assert opened.crontabs() == ("* * * * *", "0 0 * * *")
    assert [(box.queue, len(box.waiting)) for box in opened.tick("* * * * *")] == [("main", 1), ("q", 1)]
    assert opened.tick("*/5 * * * *") == ()
    assert opened.inbox(RINGING, "q") is opened.inbox(RINGING, "q")
    told = opened.contexts(RINGING, opened.inbox(RINGING, "main").offered())
    assert [one["binding"] for one in told] == ["often"]


def test_occurrence_without_an_event_is_a_defect() -> None:
    watching = hook(WATCHING.replace(", includeSnapshotsFrom: [maps]", ""))
    with pytest.raises(AssertionError, match="maps"):
        unopened(watching).contexts(watching, [Occurrence(watching.config.kubernetes[0], None)])


async def test_waiting_events_are_reported_with_current_snapshots(autojump_clock: MockClock) -> None:
    watching = hook(WATCHING)
    rung: list[tuple[str, str]] = []

    def on_event(opened: PackageHooks, box: Inbox) -> None:
        rung.append((opened.package, box.queue))

    async with memory_cluster() as client:
        await write(client, obj("a"))
        async with opening(client, watching, on_event=on_event) as opened:
            (binding,) = watching.config.kubernetes
            (shown,) = read(opened.synchronization(watching, binding))
            assert find(shown, "type") == "Synchronization"
            assert len(find_list(shown, "objects")) == 1
            await write(client, obj("b"))
            await settle()
            assert rung == []
            opened.monitor(watching, binding).unlock()
            assert rung == [("p", "q")]
            await client.delete(key("a"))
            await settle()
            assert rung == [("p", "q")] * 2
            box = opened.inbox(watching, "q")
            told = read(opened.contexts(watching, box.offered()))
            assert [find(one, "watchEvent") for one in told] == ["Added", "Deleted"]
            # Both contexts have the snapshot from the moment at which the run begins.
            snapshots = [find_list(find_object(one, "snapshots"), "maps") for one in told]
            assert [[find(item, "object", "metadata", "name") for item in items] for items in snapshots] == [["b"]] * 2
            assert [len(items) for items in opened.all_snapshots(watching).values()] == [1]
            assert opened.snapshots(watching, ["nobody"]) == {"nobody": ()}


async def test_snapshot_of_a_duplicate_name_is_the_first_binding(autojump_clock: MockClock) -> None:
    twice = hook(
        "{configVersion: v1, kubernetes: [{name: twin, kind: ConfigMap, labelSelector: {matchLabels: {app: x}}},"
        " {name: twin, kind: Secret}]}"
    )
    async with memory_cluster() as client:
        await write(client, obj("a"))
        async with opening(client, twice) as opened:
            (item,) = opened.snapshots(twice, ["twin"])["twin"]
            assert find(plain(item), "object", "kind") == "ConfigMap"


async def test_binding_with_an_unknown_kind_fails_the_start(autojump_clock: MockClock) -> None:
    unknown = hook("{configVersion: v1, kubernetes: [{kind: Unheard}]}")
    begun = False
    async with memory_cluster() as client:
        with pytest.raises(HookError, match="Unheard"):
            async with opening(client, unknown, namespace=None):
                begun = True
    assert not begun


async def test_number_of_watches_of_a_package_is_limited() -> None:
    names = ", ".join(f"n{number}" for number in range(100))
    one = f"{{kind: ConfigMap, nameSelector: {{matchNames: [{names}]}}}}"
    greedy = hook(f"{{configVersion: v1, kubernetes: [{one}, {one}, {one}]}}")
    begun = False
    async with memory_cluster() as client:
        with pytest.raises(HookError, match="select with labels instead of names") as caught:
            async with opening(client, greedy):
                begun = True
    assert not begun
    assert not caught.value.transient


@pytest.mark.parametrize("kind", ["ConfigMap", "Unheard"])
async def test_package_with_the_most_watches_starts_or_fails_as_one(kind: str, autojump_clock: MockClock) -> None:
    """A package may have hundreds of monitors. If each monitor were opened in a nursery inside the one before, they could not
    be closed again, so all monitors must be in one nursery.
    """
    bindings = ", ".join(f"{{name: b{number}, kind: {kind}}}" for number in range(package_hooks.MAX_WATCHES // 2))
    many = (hook(f"{{configVersion: v1, kubernetes: [{bindings}]}}", "a"),
            hook(f"{{configVersion: v1, kubernetes: [{bindings}]}}", "b"))  # fmt: skip
    async with memory_cluster() as client:
        begins = opening(client, *many)
        if kind == "Unheard":
            with pytest.raises(HookError, match="binding b0: Unheard"):
                await begins.__aenter__()
            return
        async with begins as opened:
            assert len(opened.monitors()) == package_hooks.MAX_WATCHES
            assert all(monitor.statistics().listed for monitor in opened.monitors())


async def test_equal_bindings_of_a_hook_have_separate_monitors(autojump_clock: MockClock) -> None:
    one = "{kind: ConfigMap, labelSelector: {matchLabels: {app: x}}}"
    twins = hook(f"{{configVersion: v1, kubernetes: [{one}, {one}]}}")
    first, second = twins.config.kubernetes
    assert first == second
    async with (
        memory_cluster() as client,
        opening(client, twins) as opened,
    ):
        assert opened.monitor(twins, first) is not opened.monitor(twins, second)
        for binding in twins.config.kubernetes:
            opened.monitor(twins, binding).unlock()
        assert [monitor.statistics().locked for monitor in opened.monitors()] == [False, False]


async def test_filters_are_owned_by_the_package(autojump_clock: MockClock) -> None:
    filters = value_filters()
    async with (
        memory_cluster() as client,
        opening(client, hook(WATCHING), package="web", filters=filters),
    ):
        assert filters.owners == ["web"]


async def test_synchronization_of_one_binding_leaves_events_of_others(autojump_clock: MockClock) -> None:
    """A synchronization that includes the snapshot of another binding must not drop events of that other binding."""
    watching = hook(
        "{configVersion: v1, kubernetes: [{name: maps, kind: ConfigMap, labelSelector: {matchLabels: {app: x}}},"
        " {name: other, kind: Secret, includeSnapshotsFrom: [maps]}]}"
    )
    maps, other = watching.config.kubernetes
    async with (
        memory_cluster() as client,
        opening(client, watching) as opened,
    ):
        opened.synchronization(watching, maps)
        await write(client, obj("a"))
        await settle()
        opened.synchronization(watching, other)
        opened.monitor(watching, maps).unlock()
        assert len(opened.inbox(watching, "main").waiting) == 1
        opened.synchronization(watching, maps)


async def test_bindings_of_a_group_are_synchronized_in_one_run(
    autojump_clock: MockClock,
) -> None:
    grouped = hook(
        "{configVersion: v1, kubernetes: ["
        "{name: maps, kind: ConfigMap, group: g, labelSelector: {matchLabels: {app: x}}},"
        "{name: secrets, kind: Secret, group: g},"
        "{name: alone, kind: ConfigMap, labelSelector: {matchLabels: {app: x}}}]}"
    )
    async with memory_cluster() as client:
        await write(client, obj("a"))
        async with opening(client, grouped) as opened:
            (together,) = synchronized_together(grouped.config)
            assert [binding.name for binding in together] == ["maps", "secrets", "alone"]
            await write(client, obj("b"))
            await settle()
            told = read(opened.synchronization(grouped, *together))
            assert [(find(one, "type"), find(one, "binding")) for one in told] == [
                ("Group", "secrets"),
                ("Synchronization", "alone"),
            ]
            assert [len(find_list(told[0], "snapshots", name)) for name in ("maps", "secrets")] == [2, 0]
            assert len(find_list(told[1], "objects")) == 2
            for monitor in opened.monitors():
                monitor.unlock()
            assert not opened.inboxes, "objects of the synchronization cause no events"


async def test_binding_is_settled_once_all_its_events_are_processed(autojump_clock: MockClock) -> None:
    watching = hook(WATCHING)
    (binding,) = watching.config.kubernetes
    async with memory_cluster() as client, opening(client, watching) as opened:
        opened.synchronization(watching, binding)
        seen = [opened.settled(watching, binding)]
        opened.monitor(watching, binding).unlock()
        seen.append(opened.settled(watching, binding))
        await write(client, obj("a"))
        await settle()
        seen.append(opened.settled(watching, binding))
        box = opened.inbox(watching, "q")
        box.remove_processed(box.offered())
        assert [*seen, opened.settled(watching, binding)] == [False, True, False, True]
