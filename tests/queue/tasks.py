"""Tasks for tests of queues. They record what happens to them, with the time."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import trio

from wharfinger.queue.task import TaskFailed


@dataclass
class Diary:
    """The events of a test in order, each as ``(seconds since the start, event)``."""

    began: float = field(default_factory=trio.current_time)
    entries: list[tuple[float, str]] = field(default_factory=list)

    def note(self, what: str) -> None:
        self.entries.append((round(trio.current_time() - self.began, 6), what))

    @property
    def lines(self) -> list[str]:
        return [what for _, what in self.entries]


@dataclass
class Work:
    """A task that takes ``seconds``. Its first runs raise the errors in ``outcomes``, one each; all later runs succeed."""

    name: str
    diary: Diary
    seconds: float = 0.0
    outcomes: list[Exception] = field(default_factory=list)

    async def execute(self) -> None:
        self.diary.note(f"{self.name} begins")
        try:
            await trio.sleep(self.seconds)
        except trio.Cancelled:
            self.diary.note(f"{self.name} is interrupted")
            raise
        if self.outcomes:
            self.diary.note(f"{self.name} fails")
            raise self.outcomes.pop(0)
        self.diary.note(f"{self.name} ends")


@dataclass
class Calls:
    """A task that calls a function."""

    name: str
    call: Callable[[], Awaitable[object]]

    async def execute(self) -> None:
        await self.call()


def transient(times: int) -> list[Exception]:
    """Return this number of transient failures."""
    return [TaskFailed(f"failure {number}") for number in range(1, times + 1)]


def permanent() -> list[Exception]:
    """Return one permanent failure."""
    return [TaskFailed("schema violation", permanent=True)]


AT_REST = "queue (idle)"


def hands() -> list[str]:
    """Return the names of all trio tasks of queues, sorted."""
    root = trio.lowlevel.current_root_task()
    names, tasks = [], [root] if root else []
    while tasks:
        task = tasks.pop()
        names.append(task.name)
        tasks += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    return sorted(name for name in names if name.startswith("queue "))
