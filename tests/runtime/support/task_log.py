"""Which tasks of the pipeline ran, when, and for whom: for tests that count them or time their starts.

What runs is the real thing; this only looks on while it does.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
import trio

from wharfinger.queue.scope import WorkScope
from wharfinger.queue.task import TaskFailed
from wharfinger.runtime.tasks.stage_task import ScopedHost, StageTask


@dataclass(slots=True, eq=False)
class TaskRun:
    """One run of a task; ``over`` says how it ended and ``over_s`` when, and is empty while it has not. Times are trio's."""

    package: str
    task: str
    scope: WorkScope
    began_s: float
    over: str = ""
    over_s: float = math.inf


@dataclass(slots=True)
class TaskLog:
    """The runs of each package in the order in which they began. ``on_start`` is told of a run before it does anything."""

    on_start: Callable[[TaskRun], None] = lambda _run: None
    runs: dict[str, list[TaskRun]] = field(default_factory=dict)
    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How many runs of a task were over in which way."""
    _changed: trio.Event = field(default_factory=trio.Event)

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Log every task from now on."""
        execute = StageTask.execute

        async def logged(task: StageTask) -> None:
            assert isinstance(task.host, ScopedHost)
            run = TaskRun(task.instance.id.name, task.name, task.host.scope, trio.current_time())
            self.runs.setdefault(run.package, []).append(run)
            self.on_start(run)
            self.tell()
            over = "interrupted"
            try:
                await execute(task)
                over = "done"
            except TaskFailed:
                over = "failed"
                raise
            finally:
                run.over, run.over_s = over, trio.current_time()
                self.ends[run.task, over] += 1
                self.tell()

        monkeypatch.setattr(StageTask, "execute", logged)

    def tell(self) -> None:
        """Have those who wait look again."""
        self._changed.set()
        self._changed = trio.Event()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something is so, looking whenever a task begins or ends, or somebody says that there is news."""
        while not holds():
            await self._changed.wait()

    def names(self, package: str) -> list[str]:
        """The tasks of a package in the order in which they began."""
        return [run.task for run in self.runs.get(package, ())]

    def over(self, how: str) -> int:
        """How many runs were over in that way."""
        return sum(count for (_, over), count in self.ends.items() if over == how)
