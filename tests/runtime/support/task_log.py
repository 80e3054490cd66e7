"""A log of the pipeline's task runs, for tests that count the runs or measure when they start.

The tasks themselves are real. This module only observes them.
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
    """One run of a task.

    ``over`` says how the run ended ("done", "failed" or "interrupted"), and is empty until then. ``over_s`` is the time of the
    end, and is infinite until then. All times are times of trio's clock.
    """

    package: str
    task: str
    scope: WorkScope
    began_s: float
    over: str = ""
    over_s: float = math.inf


@dataclass(slots=True)
class TaskLog:
    """The task runs of each package, in the order in which they began. ``on_start`` is called with each run before its task is
    executed.
    """

    on_start: Callable[[TaskRun], None] = lambda _run: None
    runs: dict[str, list[TaskRun]] = field(default_factory=dict)
    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The number of ended runs, by the name of the task and by how the run ended."""
    _changed: trio.Event = field(default_factory=trio.Event)

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Log each run of a task that begins from now on."""
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
        """Wake up all calls of `until`, so that they check their conditions again."""
        self._changed.set()
        self._changed = trio.Event()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds. It is checked whenever a task begins or ends, and after `tell`."""
        while not holds():
            await self._changed.wait()

    def names(self, package: str) -> list[str]:
        """Return the names of a package's tasks, in the order in which their runs began."""
        return [run.task for run in self.runs.get(package, ())]

    def over(self, how: str) -> int:
        """Return the number of runs that ended in this way."""
        return sum(count for (_, over), count in self.ends.items() if over == how)
