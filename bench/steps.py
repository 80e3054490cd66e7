"""The steps of the pure state machines of a package, of a queue and of the scheduler, without the code that performs their
effects.

Each machine is compared with a function that only creates the records that the machine has to create for the same input:
events, effects, and the changed parts of the state. No machine can be faster than this function.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from msgspec import structs

from bench.measure import Ratio, compare, repeated
from bench.scheduler import FEW, World, packages
from wharfinger.queue import machine as queue_machine
from wharfinger.queue.events import MAIN_LANE, CallDone, Completed, Enqueued, Finished, Retired, StartTask
from wharfinger.queue.fifo import Fifo
from wharfinger.queue.state import Completing, Lane, QueueState, Running
from wharfinger.runtime.package.around import Around
from wharfinger.runtime.package.events import HookDone
from wharfinger.runtime.package.facts import HookRan
from wharfinger.runtime.package.machine import step
from wharfinger.runtime.package.state import HookHistory, Package
from wharfinger.runtime.resources.identity import AppId
from wharfinger.runtime.scheduler.events import Completed as RunCompleted
from wharfinger.runtime.scheduler.events import Rescheduled, Schedule
from wharfinger.runtime.scheduler.state import Active, Scheduled
from wharfinger.runtime.status import transitions as statuses

TIMES: Final = 400
ROUNDS: Final = 31
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
HOOKS: Final = tuple(f"hook-{number}" for number in range(5))


def measure(long: bool) -> Iterator[Ratio]:
    """Measure the package's step after a run of a hook, the queue's steps for a task, and the scheduler's steps for a run."""
    yield _row("package: a hook ran", _hook_ran, _hook_ran_raw, budget=3.0)
    yield _row("queue: a task, 3 steps", _task, _task_raw, budget=3.0)
    yield _row("scheduler: a run, 2 steps", *_runs(), budget=11.0)


def _row(what: str, ours: Callable[[], object], theirs: Callable[[], object], *, budget: float) -> Ratio:
    yardstick = "its new records, made by hand"
    ratio = compare(
        "steps", what, yardstick, repeated(TIMES, ours), repeated(TIMES, theirs), budget=budget, rounds=ROUNDS
    )
    return ratio.per(TIMES)


# --- a package ---------------------------------------------------------------------------------------------------------------


def _package() -> Package:
    package = Package(AppId("prod", "shop"), statuses.fresh(1, NOW))
    for hook in HOOKS:
        package, _ = step(package, HookDone(hook, ""), Around(NOW, None))
    return package


PACKAGE: Final = _package()
IDLE: Final = Around(NOW, None)


def _hook_ran() -> object:
    return step(PACKAGE, HookDone("hook-3", ""), IDLE)


def _hook_ran_raw() -> object:
    event = HookDone("hook-3", "")
    fact = HookRan(event.hook, event.error, NOW)
    hooks = PACKAGE.hooks
    ran = HookHistory(hooks.history[fact.hook].runs + 1, fact.at, fact.error)
    return structs.replace(PACKAGE, hooks=structs.replace(hooks, history={**hooks.history, fact.hook: ran})), ()


# --- a queue -----------------------------------------------------------------------------------------------------------------


QUEUE: Final = QueueState()
EMPTY: Final[Fifo[Enqueued]] = Fifo.of(())


def _task() -> object:
    state, _ = queue_machine.step(QUEUE, Enqueued(1, "Load", -1, 0.0))
    state, _ = queue_machine.step(state, Finished(1))
    return queue_machine.step(state, Completed(1))


def _task_raw() -> object:
    event = Enqueued(1, "Load", -1, 0.0)
    lane = Lane(Running(event, 1), EMPTY)
    state, started = QueueState(QUEUE.rules, {**QUEUE.lanes, MAIN_LANE: lane}, None, 2), (StartTask(1, 1),)
    finished = Finished(1)
    lane = Lane(Completing(event, finished.run), EMPTY)
    state, called = QueueState(state.rules, {**state.lanes, MAIN_LANE: lane}, None, 2), (CallDone(1, 1),)
    completed = Completed(1)
    return QueueState(state.rules, {}, None, 2), (Retired(completed.run),), started, called


# --- the scheduler -----------------------------------------------------------------------------------------------------------


def _runs() -> tuple[Callable[[], object], Callable[[], object]]:
    """Return two functions for a comparison. The first runs the last of a hundred packages again with the scheduler, and the
    second only creates the same records.
    """
    name = packages(FEW)[-1].name
    ours, raw = World(packages(FEW)), World(packages(FEW))

    def run() -> object:
        ours.tell(Rescheduled(name, "bench"))
        return ours.graph

    def make() -> object:
        graph, event = raw.graph, Rescheduled(name, "bench")
        entry = graph.entries[event.name]
        ordered = replace(entry, phase=Scheduled(graph.runs + 1), run=graph.runs + 1, since=NOW)
        effect = Schedule(event.name, graph.runs + 1, event.reason)
        graph = replace(graph, entries=graph.entries.insert(name, ordered), runs=effect.run, touched=(name,))
        done = RunCompleted(name, effect.run)
        active = replace(ordered, phase=Active(), since=NOW)
        return replace(graph, entries=graph.entries.insert(done.name, active), touched=(name,))

    return run, make
