"""Random stories with failing watches: each hook knows the final state in the end, and gets no event before its synchronization.

In a story, objects are added, changed and deleted, and namespaces are relabeled. Watches break, the API server fails or loses
its history, packages start late, and hooks fail. What a hook knows is concluded from the contexts of its successful runs. For
every binding, these properties are checked:

* no event is reported before the Synchronization has succeeded;
* Added is reported only for objects that the hook did not know, and Modified and Deleted only for objects that it knew;
* all contexts of one run have the same snapshots;
* in the end, the hook knows exactly the existing objects in their last state, except for changes that the binding does not
  report.

The limits of inboxes and of backlogs (the changes that a monitor has not reported yet) are very small here, so both are reduced
frequently.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from tests.hooks.support.hooked import hook
from tests.hooks.support.story_cluster import CONFIG_MAP, NAMESPACE, TEAM, StoryCluster
from tests.hooks.support.story_reader import Reader
from tests.hooks.support.watching import value_filters
from tests.scale import scaled
from wharfinger.cluster.watch.shared_watches import open_shared_watches
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running import package_hooks
from wharfinger.hooks.running.hook_services import HookServices, open_hook_services
from wharfinger.hooks.running.inbox import Inbox
from wharfinger.hooks.watching import monitor
from wharfinger.hooks.watching.monitor_backlog import Backlog

SMALL = 3
NAMES, NAMESPACES = ("a", "b", "c"), ("one", "two")

_SELECTED = "labelSelector: {matchLabels: {app: x}}"
_IN_TEAM = "namespace: {labelSelector: {matchLabels: {team: a}}}"
_NAMED = "nameSelector: {matchNames: [a, b]}, namespace: {nameSelector: {matchNames: [one, two]}}"
FIRST = hook(
    "{configVersion: v1, kubernetes: ["
    f"{{name: all, kind: ConfigMap, {_SELECTED}}},"
    f"{{name: team, kind: ConfigMap, {_IN_TEAM}, jqFilter: value, queue: q}},"
    f"{{name: named, kind: ConfigMap, {_NAMED}, jqFilter: value, keepFullObjectsInMemory: false,"
    " resynchronizationPeriod: 20s, includeSnapshotsFrom: [named, all]},"
    f"{{name: coming, kind: ConfigMap, {_SELECTED}, executeHookOnEvent: [Added, Deleted]}},"
    f"{{name: going, kind: ConfigMap, {_SELECTED}, executeHookOnEvent: [Deleted], queue: q}}"
    "]}",
    "hooks/first.sh",
)
SECOND = hook(
    "{configVersion: v1, schedule: [{name: tick, crontab: '* * * * *', group: g}], kubernetes: ["
    f"{{name: grouped, kind: ConfigMap, {_SELECTED}, group: g}},"
    f"{{name: together, kind: ConfigMap, {_IN_TEAM}, jqFilter: value, group: g}}"
    "]}",
    "hooks/second.sh",
)
OLD = hook(
    "{onKubernetesEvent: [{name: old, kind: ConfigMap, event: [add, update, delete],"
    " selector: {matchLabels: {app: x}}}]}",
    "hooks/old.sh",
)
HOOKS = (FIRST, SECOND, OLD)


@dataclass
class Story:
    """A running story: the cluster, the services for hooks, and a reader for each hook of each started package."""

    cluster: StoryCluster
    services: HookServices
    readers: dict[str, list[Reader]] = field(default_factory=dict)
    value: int = 0

    async def take(self, step: "Step") -> None:
        """Execute one step."""
        what, first, second, flag = step
        cluster, namespace, name = self.cluster, NAMESPACES[first % 2], NAMES[second % 3]
        self.value += 1
        match what:
            case "put":
                if ("Namespace", "", namespace) not in cluster.now:
                    cluster.put(NAMESPACE, "", namespace, label="", value=0)
                cluster.put(CONFIG_MAP, namespace, name, label="app=x" if flag else "", value=self.value // 2)
            case "delete":
                cluster.delete(CONFIG_MAP, namespace, name)
            case "storm":
                await self._storm(namespace, name, 6)
            case "label":
                cluster.put(NAMESPACE, "", namespace, label=TEAM if flag else "", value=0)
            case "vanish":
                cluster.delete(NAMESPACE, "", namespace)
            case "open":
                await self.open(f"p{first % 2}")
            case "close":
                await self.services.stop(f"p{first % 2}")
                self.readers.pop(f"p{first % 2}", None)
            case "break" | "forget" | "fail" | "wait":
                await self._disturb(step)
            case _:
                await self._tell(step)

    async def _storm(self, namespace: str, name: str, changes: int) -> None:
        """Make this number of changes to an object: add, change and delete it in turn, with a short pause after each change."""
        for number in range(changes):
            if number % 3 == 2:
                self.cluster.delete(CONFIG_MAP, namespace, name)
            else:
                self.value += 1
                self.cluster.put(CONFIG_MAP, namespace, name, label="app=x", value=self.value)
            await trio.sleep(0.01)

    async def _disturb(self, step: "Step") -> None:
        what, _, second, flag = step
        if what == "wait":
            await trio.sleep((0.0, 0.01, 1.0, 25.0)[second % 4])
            return
        if what == "forget":
            self.cluster.forget()
        elif what == "fail":
            self.cluster.failing = 1 + second % 3
        if flag or what == "break":
            self.cluster.break_watches()

    async def open(self, package: str) -> None:
        """Start a package if it is not started yet. The start may fail with a transient error."""
        if package in self.readers:
            return
        try:
            hooks = await self.services.start(package, HOOKS, namespace=None)
        except HookError as error:
            assert error.transient
        else:
            self.readers[package] = [Reader(hooks, one, self.cluster) for one in HOOKS]

    async def _tell(self, step: "Step") -> None:
        what, first, second, flag = step
        readers = [reader for package in self.readers.values() for reader in package]
        if not readers:
            return
        reader = readers[first % len(readers)]
        storm = partial(self._storm, NAMESPACES[first % 2], NAMES[second % 3], second)
        match what:
            case "synchronize":
                bindings = reader.hook.config.kubernetes
                await reader.synchronize(bindings[second % len(bindings)], storm, succeeds=flag)
            case "run":
                await reader.run("q" if second % 2 else "main", storm, succeeds=flag)
            case "tick":
                reader.hooks.tick("* * * * *")

    async def end(self) -> None:
        """End all faults, run every hook with its waiting events, and check what the hooks know."""
        self.cluster.failing = 0
        await trio.sleep(200)
        for package in ("p0", "p1"):
            await self.open(package)
        for readers in self.readers.values():
            for reader in readers:
                for binding in reader.hook.config.kubernetes:
                    await reader.synchronize(binding, trio.lowlevel.checkpoint, succeeds=True)
        await trio.sleep(1)
        for readers in self.readers.values():
            for reader in readers:
                for (name, queue), box in reader.hooks.inboxes.items():
                    while name == reader.hook.name and box.waiting:
                        await reader.run(queue, trio.lowlevel.checkpoint, succeeds=True)
                reader.check()
        self._check_shared()

    def _check_shared(self) -> None:
        """Check that the hooks of both packages know the same objects and share their watches."""
        one, other = (self.readers[package][0].hooks for package in ("p0", "p1"))
        assert [monitor.checksum() for monitor in one.monitors()] == [
            monitor.checksum() for monitor in other.monitors()
        ]
        watches = {(one.resource.kind, one.namespace, one.label_selector, one.field_selector): one.subscribers
                   for one in self.services.watches()}  # fmt: skip
        assert watches["ConfigMap", "", "app=x", ""] == 2 * 5
        assert watches["Namespace", "", TEAM, ""] == 2 * 2


Step = tuple[str, int, int, bool]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["put"] * 6
            + ["delete", "label", "wait", "run", "run", "synchronize", "synchronize"] * 2
            + ["vanish", "break", "forget", "fail", "open", "close", "tick", "storm", "storm"]
        ),
        st.integers(0, 5),
        st.integers(0, 11),
        st.booleans(),
    ),
    max_size=60,
)


@asynccontextmanager
async def open_story() -> AsyncIterator[Story]:
    cluster = StoryCluster()
    client = cluster.client()
    for number, namespace in enumerate(NAMESPACES):
        cluster.put(NAMESPACE, "", namespace, label=TEAM if number else "", value=0)
        cluster.put(CONFIG_MAP, namespace, "a", label="app=x", value=-1)
    async with (
        open_shared_watches(client) as watches,
        open_hook_services(
            client,
            watches,
            value_filters(),
            lambda: datetime(2024, 1, 1, tzinfo=UTC),
            UTC,
        ) as services,
    ):
        services.listen(lambda _hooks, _box: None, lambda _crontab: None)
        story = Story(cluster, services)
        await story.open("p0")
        yield story


async def tell(steps: list[Step]) -> StoryCluster:
    async with open_story() as story:
        for step in steps:
            await story.take(step)
        await story.end()
    return story.cluster


def told(steps: list[Step]) -> StoryCluster:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(monitor, "Backlog", partial(Backlog, SMALL))
        patch.setattr(package_hooks, "Inbox", partial(Inbox, limit=SMALL))
        return trio.run(tell, steps, clock=MockClock(autojump_threshold=0))


@pytest.mark.slow
@settings(max_examples=scaled(1_500, 100))
@given(STEPS)
def test_hooks_know_the_final_state_after_random_stories(steps: list[Step]) -> None:
    told(steps)


EVERYTHING: list[Step] = [
    ("synchronize", 0, 0, True),
    ("put", 0, 1, True),
    ("wait", 0, 1, True),
    ("put", 0, 1, False),
    ("forget", 0, 0, True),
    ("put", 1, 2, True),
    ("fail", 0, 2, True),
    ("open", 1, 0, True),
    ("label", 0, 0, True),
    ("wait", 0, 3, True),
    ("synchronize", 0, 1, False),
    ("open", 1, 0, True),
    ("run", 0, 0, False),
    ("delete", 0, 0, True),
    ("vanish", 1, 0, True),
    ("break", 0, 0, True),
    ("run", 0, 0, True),
]


def test_hooks_know_the_final_state_after_an_eventful_story() -> None:
    for _ in range(scaled(50, 3)):
        assert told(EVERYTHING).requests > 20


@pytest.mark.sampled(4)
@pytest.mark.unmeasured
@pytest.mark.parametrize("changes", range(2, 16, scaled(1, 3)))
@pytest.mark.parametrize("team", [False, True])
def test_deletion_is_reported_despite_reduction_during_synchronization_and_runs(changes: int, team: bool) -> None:
    """The reduction of an inbox may drop other events of an object, but never its deletion. The hook has two queues here."""
    name, namespace = changes % 3, int(team)
    steps: list[Step] = [
        ("delete", namespace, name, True),
        *(("synchronize", 0, number, False) for number in range(5)),
        *(("synchronize", 0, changes * 5 + number, True) for number in range(5)),
        ("run", 0, changes, False),
        ("delete", namespace, name, True),
        ("wait", 0, 2, True),
        *(("run", 0, queue, True) for queue in (0, 1)),
        ("put", namespace, name, True),
        ("wait", 0, 2, True),
        ("run", namespace * 3, changes, True),
    ]
    told(steps)
