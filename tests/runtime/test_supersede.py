"""A new wish waits for nothing: whatever a package is stuck in is over, and what follows has begun, within a second.

For each way of superseding (another version, a suspend, a removal) and each place to be stuck in. What held the package up,
with all its processes, is dead before the first task of what follows begins; and that comes to its end.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest
import trio

from tests.process.children import is_alive
from tests.runtime.stalling import NEW, OLD, Stalled, Where, open_stalled
from tests.runtime.task_log import TaskLog, TaskRun
from tests.scale import FULL
from wharfinger.runtime.identity import AppId
from wharfinger.runtime.summary import State, summary

PATIENCE_S = 300
AT_ONCE_S = 1.0 if FULL else 5.0
"""A second where the machine has nothing else to do."""

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
            stalled.wish(name, NEW, 2)
        case "suspend":
            stalled.wish(name, OLD, 2, suspended=True)
        case "removal":
            stalled.runtime.remove_app(AppId("prod", name), 2, {})


async def until_over(stalled: Stalled, name: str, how: str) -> None:
    """Wait until a package is where what superseded it was to bring it."""
    runtime, queue = stalled.runtime, f"prod.{name}"
    await runtime.queues.wait_idle(queue)
    if how == "removal":
        await stalled.log.until(lambda: runtime.is_removed(queue))
        assert runtime.status(queue) is None
        return
    status = runtime.status(queue)
    assert status is not None
    assert summary(status).state is (State.READY if how == "version" else State.SUSPENDED)


@pytest.mark.parametrize("crowd", CROWDS)
@pytest.mark.parametrize("how", FIRST_TASKS)
async def test_what_supersedes_begins_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, crowd: str
) -> None:
    log = TaskLog()
    log.watch(monkeypatch)
    wheres: Sequence[Where] = CROWDS[crowd]
    with trio.fail_after(PATIENCE_S):
        async with open_stalled(tmp_path, wheres, log) as stalled:
            before = {name: list(log.runs[f"prod.{name}"]) for name in stalled.placed}
            assert set(stalled.processes) == {name for name, where in stalled.placed.items() if where in WITH_PROCESSES}
            survivors: list[str] = []

            def look(run: TaskRun) -> None:
                name = run.package.partition(".")[2]
                survivors.extend(f"{run.task}: {pid}" for pid in stalled.processes.get(name, ()) if is_alive(pid))

            log.on_start = look
            called_s = trio.current_time()
            for name in stalled.placed:
                supersede(stalled, name, how)
            await log.until(lambda: all(len(log.runs[f"prod.{name}"]) > len(before[name]) for name in stalled.placed))
            firsts = {name: log.runs[f"prod.{name}"][len(before[name])] for name in stalled.placed}
            late = {name: run.began_s - called_s for name, run in firsts.items()}
            assert survivors == []
            assert {run.task for run in firsts.values()} <= FIRST_TASKS[how]
            assert [name for name, run in firsts.items() if run.scope is before[name][-1].scope] == []
            assert max(late.values()) < AT_ONCE_S, sorted(late.items(), key=lambda item: item[1])[-5:]
            for name in stalled.placed:
                await until_over(stalled, name, how)
            assert {runs[-1].over for runs in before.values()} == {"interrupted", "failed"}
