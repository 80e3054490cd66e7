"""A new desired state does not wait for a stuck operation: this operation ends, and its successor begins, within a second.

The tests supersede operations in each way (by another version, a suspension, or a removal), and at each place where an operation
may be stuck. All processes of the stuck task have ended before the first task of the successor begins, and the successor runs to
its end.
"""

import math
from pathlib import Path

import pytest
import trio

from tests.process.children import is_alive
from tests.runtime.support.stalling import NEW, OLD, Stalled, Where, open_stalled
from tests.runtime.support.task_log import TaskLog, TaskRun
from tests.runtime.support.world import one_error
from tests.scale import FULL
from wharfinger.runtime.resources.identity import AppId
from wharfinger.runtime.status.summary import State, summarize

pytestmark = pytest.mark.unmeasured

PATIENCE_S = 300
AT_ONCE_S = 1.0 if FULL else 20.0
"""The time limit for the start of the successor. A sample may run on a busy machine. Its limit is higher, but still much less
than the grace period of the processes that hang.
"""

MIXED = tuple(Where)
CROWDS = {"mixed": MIXED * 20, **{where.value: (where,) * 100 for where in Where}} if FULL else {"mixed": MIXED}
WITH_PROCESSES = {Where.HOOK, Where.RENDER}
FIRST_TASKS = {
    "version": {"Disable", f"Download:{NEW}"},
    "suspend": {"Suspend"},
    "removal": {"Uninstall"},
}


def supersede(stalled: Stalled, name: str, how: str) -> None:
    match how:
        case "version":
            stalled.desired(name, NEW, 2)
        case "suspend":
            stalled.desired(name, OLD, 2, suspended=True)
        case "removal":
            stalled.runtime.remove_app(AppId("prod", name), 2, {})


async def until_over(stalled: Stalled, name: str, how: str) -> None:
    """Wait until a package is in the state that the superseding operation should reach."""
    runtime, queue = stalled.runtime, f"prod.{name}"
    await runtime.queues.wait_idle(queue)
    if how == "removal":
        await stalled.log.until(lambda: runtime.is_removed(queue))
        assert runtime.status(queue) is None
        return
    status = runtime.status(queue)
    assert status is not None
    assert summarize(status).state is (State.READY if how == "version" else State.SUSPENDED)


class Watch:
    """A record of two things: the runs of tasks that began before the operations were superseded, and the processes that were
    still alive when the next task began.
    """

    def __init__(self, stalled: Stalled, how: str) -> None:
        self.stalled = stalled
        self.how = how
        self.before = {name: list(stalled.log.runs[f"prod.{name}"]) for name in stalled.placed}
        self.survivors: list[str] = []
        stalled.log.on_start = self._look

    def _look(self, run: TaskRun) -> None:
        name = run.package.partition(".")[2]
        alive = [pid for pid in self.stalled.processes.get(name, ()) if is_alive(pid)]
        self.survivors += [f"{name}: {run.task} began, and {pid} is alive" for pid in alive]
        assert not run.scope.cancelled

    def first(self, name: str) -> TaskRun | None:
        """Return the first task run after the operation was superseded, or None if it has not begun.

        If a package is suspended before it is loaded, there is no such run at all.
        """
        runs = self.stalled.log.runs[f"prod.{name}"]
        return runs[len(self.before[name])] if len(runs) > len(self.before[name]) else None

    def begun_s(self, name: str) -> float:
        """Return the time at which the first task of the operation that superseded the earlier one began, or infinity if it has
        not begun.

        If the new operation has no tasks, return the time at which the interrupted task ended.
        """
        first = self.first(name)
        if self.how == "suspend" and self.stalled.placed[name] is Where.DOWNLOAD:
            assert first is None
            return self.before[name][-1].over_s
        return first.began_s if first is not None else math.inf

    def all_begun(self) -> bool:
        return all(math.isfinite(self.begun_s(name)) for name in self.before)


@pytest.mark.sampled
@pytest.mark.parametrize("crowd", CROWDS)
@pytest.mark.parametrize("how", FIRST_TASKS)
async def test_a_superseding_operation_begins_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, crowd: str
) -> None:
    log = TaskLog()
    log.watch(monkeypatch)
    with one_error(), trio.fail_after(PATIENCE_S):
        async with open_stalled(tmp_path, CROWDS[crowd], log) as stalled:
            assert set(stalled.processes) == {name for name, where in stalled.placed.items() if where in WITH_PROCESSES}
            watch = Watch(stalled, how)
            called_s = trio.current_time()
            for name in stalled.placed:
                supersede(stalled, name, how)
            await log.until(watch.all_begun)
            took_s = {name: watch.begun_s(name) - called_s for name in stalled.placed}
            assert watch.survivors == []
            firsts = [run for name in stalled.placed if (run := watch.first(name)) is not None]
            assert {run.task for run in firsts} <= FIRST_TASKS[how]
            assert max(took_s.values()) < AT_ONCE_S, sorted(took_s.items(), key=lambda item: -item[1])[:5]
            for name, where in stalled.placed.items():
                await until_over(stalled, name, how)
                last = watch.before[name][-1]
                assert last.scope.cancelled
                assert last.over == ("failed" if where is Where.BACKOFF else "interrupted")
