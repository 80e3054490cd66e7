"""Case 6: the order of hooks, the combining of events into runs, and retries of failed runs.

A hook has an inbox and one task for each of its queues. All events that wait when the task starts are handled in one run. The
peers have queues with another structure. So their cases are compared only by what hooks observe: the runs, the order of the
runs, and the contexts.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
import trio
from trio.testing import MockClock

from tests.hooks.conformance.telling import asking, happened, pod, read, unopened, waiting
from wharfinger.formats.json.value import find_str
from wharfinger.hooks.config.bindings import KubernetesBinding, WatchVerb
from wharfinger.hooks.running.discovery import Hook
from wharfinger.hooks.running.inbox import LIMIT, Inbox, Occurrence
from wharfinger.hooks.running.package_hooks import PackageHooks
from wharfinger.hooks.watching.throttle import Throttle
from wharfinger.queue.backoff import BackoffPolicy
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.service import Queues, open_queues
from wharfinger.queue.state import Rules
from wharfinger.queue.task import TaskFailed

ADDED, MODIFIED, DELETED = WatchVerb.ADDED, WatchVerb.MODIFIED, WatchVerb.DELETED
BINDINGS = """
kubernetes:
- {name: A, kind: Pod, keepFullObjectsInMemory: false, jqFilter: .metadata.name, group: g}
- {name: B, kind: Pod, keepFullObjectsInMemory: false, jqFilter: .metadata.name, group: g}
- {name: C, kind: Pod, keepFullObjectsInMemory: false, jqFilter: .metadata.name}
- {name: D, kind: Pod, keepFullObjectsInMemory: false, jqFilter: .metadata.name, queue: other}
"""
H1, H2 = asking(BINDINGS, "hooks/h1.sh"), asking(BINDINGS, "hooks/h2.sh")
HOOKS = {"h1": H1, "h2": H2}
SERVICE = Rules(backoff=BackoffPolicy(initial_s=5, factor=2, max_s=32, jitter=0.5))


@dataclass
class Lanes:
    """Hooks of a package on a real queue. `happen` adds an event, and `runs` lists the bindings of each run (``h1: A``)."""

    queues: Queues
    opened: PackageHooks = field(default_factory=lambda: unopened(H1, H2))
    runs: list[str] = field(default_factory=list)
    failing: dict[str, int] = field(default_factory=dict)
    seconds: float = 1.0
    began: list[float] = field(default_factory=list)
    scope: WorkScope = field(default_factory=lambda: WorkScope("hooks of p"))

    def happen(self, what: str, name: str = "x") -> None:
        """Add an event; ``h1 A`` is an event of binding A for hook h1."""
        hook, binding = HOOKS[what[:2]], named(HOOKS[what[:2]], what[3:])
        box = self.opened.inbox(hook, binding.queue)
        box.add(happened(binding, MODIFIED, pod(name), name))
        task = Run(f"{what[:2]} events", lambda: self._run(what[:2], hook, box))
        self.queues.enqueue("p", task, self.scope, lane=box.queue, unique=True)

    async def _run(self, short: str, hook: Hook, box: Inbox) -> None:
        occurrences = box.offered()
        if not occurrences:
            return
        told = [find_str(context, "binding") for context in read(*self.opened.contexts(hook, occurrences))]
        self.runs.append(f"{short}: {', '.join(told)}")
        self.began.append(trio.current_time())
        await trio.sleep(self.seconds)
        lane = f"{short} {box.queue}"
        if self.failing.get(lane, 0):
            self.failing[lane] -= 1
            raise TaskFailed("it failed", permanent=False)
        box.remove_processed(occurrences)


@dataclass
class Run:
    name: str
    call: Callable[[], Awaitable[None]]

    async def execute(self) -> None:
        await self.call()


def named(hook: Hook, name: str) -> KubernetesBinding:
    return next(binding for binding in hook.config.kubernetes if binding.name == name)


ROWS: dict[str, tuple[list[str], list[str], list[str]]] = {
    # Each row: events before the first run, events during that run, and the expected runs in order.
    "two of one group": (["h1 A", "h1 B"], [], ["h1: B"]),
    "another hook between": (["h1 A", "h2 B", "h1 C"], [], ["h1: A, C", "h2: B"]),
    "an event for a running hook": (["h1 A"], ["h1 B"], ["h1: A", "h1: B"]),
    "several events for a running hook": (["h1 A"], ["h1 B", "h1 C", "h1 A", "h1 B"], ["h1: A", "h1: B, C, B"]),
    "an event for a waiting hook": (["h1 A", "h2 A"], ["h2 C"], ["h1: A", "h2: A, C"]),
    "events for both hooks": (["h1 C", "h2 C"], ["h1 C", "h2 C"], ["h1: C", "h2: C, C", "h1: C"]),
}


@pytest.mark.parametrize("row", ROWS)
async def test_waiting_events_of_a_hook_are_combined_into_one_run(row: str, autojump_clock: MockClock) -> None:
    before, meanwhile, expected = ROWS[row]
    async with open_queues(SERVICE) as queues:
        lanes = Lanes(queues)
        for what in before:
            lanes.happen(what)
        await trio.sleep(0.5)
        for what in meanwhile:
            lanes.happen(what)
        await queues.wait_idle("p")
        assert lanes.runs == expected


async def test_queues_of_hooks_do_not_wait_for_each_other(autojump_clock: MockClock) -> None:
    async with open_queues(SERVICE) as queues:
        lanes = Lanes(queues)
        for what in ("h1 C", "h2 C", "h1 D", "h2 D"):
            lanes.happen(what)
        await trio.sleep(0.5)
        assert sorted(lanes.runs) == ["h1: C", "h1: D"]
        await queues.wait_idle("p")
        assert sorted(lanes.runs[2:]) == ["h2: C", "h2: D"]


async def test_failed_run_blocks_its_queue_and_its_retry_includes_new_events(autojump_clock: MockClock) -> None:
    async with open_queues(SERVICE, draw=lambda: 0.5) as queues:
        lanes = Lanes(queues, failing={"h1 main": 1})
        for what in ("h1 C", "h2 C", "h1 D"):
            lanes.happen(what)
        await trio.sleep(3)
        lanes.happen("h1 C", "y")
        assert sorted(lanes.runs) == ["h1: C", "h1: D"]
        await queues.wait_idle("p")
        assert lanes.runs[2:] == ["h1: C, C", "h2: C"]


async def test_failing_hook_is_retried_with_growing_delays_without_end(autojump_clock: MockClock) -> None:
    """The delays are like those of the peers: about 5 s at first, later longer, at most 32 s, and with jitter."""
    async with open_queues(SERVICE) as queues:
        lanes = Lanes(queues, failing={"h1 main": 40}, seconds=0)
        lanes.happen("h1 C")
        await queues.wait_idle("p")
    delays = [later - earlier for earlier, later in pairwise(lanes.began)]
    assert len(delays) == 40
    assert all(2.5 <= delay <= 32 for delay in delays)
    assert sum(delays[:3]) < sum(delays[-3:])
    assert len({round(delay, 6) for delay in delays}) > 30


async def test_events_during_the_minimum_interval_are_one_run(autojump_clock: MockClock) -> None:
    """The first ``executionBurst`` runs start immediately. After them, one run starts per ``executionMinInterval``."""
    limited = asking("settings: {executionMinInterval: 10s, executionBurst: 2}\nschedule: [{crontab: '* * * * *'}]")
    config = limited.config
    assert config.min_interval is not None
    throttle = Throttle(config.min_interval, config.burst)
    waits = []
    for _ in range(4):
        waits.append(throttle.wait_s(trio.current_time()))
        await trio.sleep(waits[-1])
        throttle.take(trio.current_time())
    assert waits == [0, 0, 10, 10]


def test_up_to_the_limit_every_event_is_reported() -> None:
    binding = named(H1, "C")
    events = [happened(binding, MODIFIED, pod(f"p{number % 3}"), number) for number in range(LIMIT)]
    assert list(waiting(H1, events).offered()) == events


def test_beyond_the_limit_last_states_and_deletions_are_reported() -> None:
    """The peers store every event of a hook. Here, beyond the limit, the events of one object are reduced to at most two."""
    binding = named(H1, "C")
    storm = [happened(binding, MODIFIED, pod(f"p{number % 3}"), number) for number in range(5 * LIMIT)]
    gone = [happened(binding, DELETED, pod(f"p{number}"), "gone") for number in (0, 1)]
    box = waiting(H1, [*storm, *gone])
    assert len(box.waiting) <= 2 * LIMIT + 2
    told = read(*unopened(H1).contexts(H1, box.offered()))
    assert [context["filterResult"] for context in told if context["watchEvent"] == "Deleted"] == ["gone", "gone"]
    last = [context["filterResult"] for context in told if context["watchEvent"] == "Modified"][-1]
    assert last == 5 * LIMIT - 1


def test_waiting_ticks_of_a_schedule_are_merged() -> None:
    ringing = asking("schedule: [{name: often, crontab: '* * * * *'}, {name: also, crontab: '* * * * *'}]")
    often, also = ringing.config.schedules
    ticks = [Occurrence(binding, None) for _ in range(50) for binding in (often, also)]
    assert [one.binding.name for one in waiting(ringing, ticks).offered()] == ["often", "also"]
