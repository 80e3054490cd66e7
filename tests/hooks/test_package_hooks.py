"""The inboxes of a package's hooks: what waits, what a run is told, what a failed run leaves."""

from typing import cast

import pytest
from trio.testing import MockClock

from tests.cluster.client_contract import key
from tests.cluster.clusters import memory_cluster
from tests.hooks.hooked import WATCHING, hook
from tests.hooks.watching import obj, settle, value_filters, write
from wharfinger.cluster.client import ClusterClient
from wharfinger.formats.json_value import find, find_list, find_object
from wharfinger.hooks import package_hooks
from wharfinger.hooks.discovery import Hook
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.package_hooks import Inbox, Occurrence, PackageHooks, open_package_hooks

RINGING = hook(
    "{configVersion: v1, schedule: [{name: often, crontab: '* * * * *'}, {name: also, crontab: '* * * * *', queue: q},"
    " {name: seldom, crontab: '0 0 * * *'}]}"
)


def unopened(*hooks: Hook) -> PackageHooks:
    """The hooks of a package that nobody follows."""
    client = cast("ClusterClient", None)
    return PackageHooks("p", hooks, client, value_filters(), namespace=None, on_event=lambda _hooks, _box: None)


def occurrences(count: int) -> list[Occurrence]:
    """That many ticks, each its own."""
    return [Occurrence(RINGING.config.schedules[0], None) for _ in range(count)]


def test_a_tick_goes_to_every_binding_of_exactly_that_crontab() -> None:
    opened = unopened(RINGING)
    assert opened.crontabs() == ("* * * * *", "0 0 * * *")
    assert [(box.queue, len(box.waiting)) for box in opened.tick("* * * * *")] == [("main", 1), ("q", 1)]
    assert opened.tick("*/5 * * * *") == ()
    assert opened.inbox(RINGING, "q") is opened.inbox(RINGING, "q")
    told = opened.contexts(RINGING, opened.inbox(RINGING, "main").offered())
    assert [find(one, "binding") for one in told] == ["often"]


def test_an_inbox_is_bounded_and_the_oldest_give_way(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(package_hooks, "MAX_WAITING", 3)
    box = Inbox(RINGING, "main")
    added = occurrences(6)
    for one in added:
        box.add(one)
    assert all(kept is wanted for kept, wanted in zip(box.offered(), added[3:], strict=True))
    assert box.lost == 3
    assert len([record for record in caplog.records if "the oldest are dropped" in record.message]) == 1


def test_a_failed_run_is_told_the_same_again_and_what_came_meanwhile() -> None:
    box = Inbox(RINGING, "main")
    first, second = occurrences(2)
    box.add(first)
    offered = box.offered()
    box.add(second)
    assert [one is first for one in offered] == [True]
    assert [one is first for one in box.offered()] == [True, False]
    box.told(offered)
    (left,) = box.offered()
    assert left is second


def test_what_gave_way_during_a_run_takes_nothing_newer_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_hooks, "MAX_WAITING", 2)
    box = Inbox(RINGING, "main")
    first, second, third = occurrences(3)
    for one in (first, second):
        box.add(one)
    offered = box.offered()
    box.add(third)
    box.told(offered)
    (left,) = box.offered()
    assert left is third


def test_hooks_of_version_0_are_told_one_at_a_time() -> None:
    old = hook("{schedule: [{name: often, crontab: '* * * * *'}]}")
    opened = unopened(old)
    (box,) = opened.tick(old.config.schedules[0].crontab)
    opened.tick(old.config.schedules[0].crontab)
    assert old.config.version == "v0"
    assert len(box.waiting) == 2
    offered = box.offered()
    assert len(offered) == 1
    box.told(offered)
    assert len(box.offered()) == 1


def test_an_event_that_says_nothing_is_a_defect() -> None:
    watching = hook(WATCHING.replace(", includeSnapshotsFrom: [maps]", ""))
    with pytest.raises(AssertionError, match="maps"):
        unopened(watching).contexts(watching, [Occurrence(watching.config.kubernetes[0], None)])


async def test_events_wait_until_they_are_told_with_snapshots_of_then(autojump_clock: MockClock) -> None:
    watching = hook(WATCHING)
    rung: list[tuple[str, str]] = []

    def on_event(opened: PackageHooks, box: Inbox) -> None:
        rung.append((opened.package, box.queue))

    async with memory_cluster() as client:
        await write(client, obj("a"))
        async with open_package_hooks(
            "p", (watching,), client, value_filters(), namespace="default", on_event=on_event
        ) as opened:
            (binding,) = watching.config.kubernetes
            shown = opened.synchronization(watching, binding)
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
            told = opened.contexts(watching, box.offered())
            assert [find(one, "watchEvent") for one in told] == ["Added", "Deleted"]
            # Both are shown the state as it is when the run begins.
            snapshots = [find_list(find_object(one, "snapshots"), "maps") for one in told]
            assert [[find(item, "object", "metadata", "name") for item in items] for items in snapshots] == [["b"]] * 2
            assert [len(items) for items in opened.all_snapshots(watching).values()] == [1]
            assert opened.snapshots(watching, ["nobody"]) == {"nobody": ()}


async def test_of_bindings_with_one_name_the_first_is_the_snapshot(autojump_clock: MockClock) -> None:
    twice = hook(
        "{configVersion: v1, kubernetes: [{name: twin, kind: ConfigMap, labelSelector: {matchLabels: {app: x}}},"
        " {name: twin, kind: Secret}]}"
    )
    async with memory_cluster() as client:
        await write(client, obj("a"))
        async with open_package_hooks(
            "p", (twice,), client, value_filters(), namespace="default", on_event=lambda _hooks, _box: None
        ) as opened:
            (item,) = opened.snapshots(twice, ["twin"])["twin"]
            assert find(item, "object", "kind") == "ConfigMap"


async def test_a_binding_that_cannot_be_followed_ends_the_start(autojump_clock: MockClock) -> None:
    unknown = hook("{configVersion: v1, kubernetes: [{kind: Unheard}]}")
    begun = False
    async with memory_cluster() as client:
        with pytest.raises(HookError, match="Unheard"):
            async with open_package_hooks(
                "p", (unknown,), client, value_filters(), namespace=None, on_event=lambda _hooks, _box: None
            ):
                begun = True
    assert not begun


async def test_a_package_has_so_many_watches_and_no_more() -> None:
    names = ", ".join(f"n{number}" for number in range(100))
    one = f"{{kind: ConfigMap, nameSelector: {{matchNames: [{names}]}}}}"
    greedy = hook(f"{{configVersion: v1, kubernetes: [{one}, {one}, {one}]}}")
    begun = False
    async with memory_cluster() as client:
        with pytest.raises(HookError, match="select with labels instead of names") as caught:
            async with open_package_hooks(
                "p", (greedy,), client, value_filters(), namespace="default", on_event=lambda _hooks, _box: None
            ):
                begun = True
    assert not begun
    assert not caught.value.transient


@pytest.mark.parametrize("kind", ["ConfigMap", "Unheard"])
async def test_as_many_watches_as_a_package_may_have_start_and_fail_like_one(
    kind: str, autojump_clock: MockClock
) -> None:
    """Not one nursery in the other for each: hundreds of those cannot be left."""
    bindings = ", ".join(f"{{name: b{number}, kind: {kind}}}" for number in range(package_hooks.MAX_WATCHES // 2))
    many = (hook(f"{{configVersion: v1, kubernetes: [{bindings}]}}", "a"),
            hook(f"{{configVersion: v1, kubernetes: [{bindings}]}}", "b"))  # fmt: skip
    async with memory_cluster() as client:
        opening = open_package_hooks(
            "p", many, client, value_filters(), namespace="default", on_event=lambda _hooks, _box: None
        )
        if kind == "Unheard":
            with pytest.raises(HookError, match="binding b0: Unheard"):
                await opening.__aenter__()
            return
        async with opening as opened:
            assert len(opened.monitors()) == package_hooks.MAX_WATCHES
            assert all(monitor.statistics().listed for monitor in opened.monitors())


async def test_two_equal_bindings_of_a_hook_have_a_monitor_each(autojump_clock: MockClock) -> None:
    one = "{kind: ConfigMap, labelSelector: {matchLabels: {app: x}}}"
    twins = hook(f"{{configVersion: v1, kubernetes: [{one}, {one}]}}")
    first, second = twins.config.kubernetes
    assert first == second
    async with (
        memory_cluster() as client,
        open_package_hooks(
            "p", (twins,), client, value_filters(), namespace="default", on_event=lambda _hooks, _box: None
        ) as opened,
    ):
        assert opened.monitor(twins, first) is not opened.monitor(twins, second)
        for binding in twins.config.kubernetes:
            opened.monitor(twins, binding).unlock()
        assert [monitor.statistics().locked for monitor in opened.monitors()] == [False, False]


async def test_what_one_package_filters_is_its_own(autojump_clock: MockClock) -> None:
    filters = value_filters()
    async with (
        memory_cluster() as client,
        open_package_hooks(
            "web", (hook(WATCHING),), client, filters, namespace="default", on_event=lambda _hooks, _box: None
        ),
    ):
        assert filters.owners == ["web"]


async def test_the_synchronization_of_one_binding_leaves_the_events_of_another(autojump_clock: MockClock) -> None:
    """Reading another binding's snapshot, as a run that includes it does, takes nothing away from it."""
    watching = hook(
        "{configVersion: v1, kubernetes: [{name: maps, kind: ConfigMap, labelSelector: {matchLabels: {app: x}}},"
        " {name: other, kind: Secret, includeSnapshotsFrom: [maps]}]}"
    )
    maps, other = watching.config.kubernetes
    async with (
        memory_cluster() as client,
        open_package_hooks(
            "p", (watching,), client, value_filters(), namespace="default", on_event=lambda _hooks, _box: None
        ) as opened,
    ):
        opened.synchronization(watching, maps)
        await write(client, obj("a"))
        await settle()
        opened.synchronization(watching, other)
        opened.monitor(watching, maps).unlock()
        assert len(opened.inbox(watching, "main").waiting) == 1
        opened.synchronization(watching, maps)
