"""Each run of a task has its own trace span, and the code of the task can read this span (`current_span`)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from trio.testing import MockClock

from wharfinger.queue.lane import current_span
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.service import open_queues
from wharfinger.queue.task import TaskFailed
from wharfinger.queue.tracing import Span


@dataclass
class Named:
    traceparent: str


async def test_each_run_has_its_span(autojump_clock: MockClock) -> None:
    told: list[str] = []

    @contextmanager
    def trace(package: str, task: str, cause: str) -> Iterator[Span]:
        told.append(f"begin {package} {task} {cause}")
        try:
            yield Named(task)
        except TaskFailed as error:
            told.append(f"failed {error.message}")
            raise
        finally:
            told.append(f"end {task}")

    class Work:
        name = "Work"
        runs = 0

        async def execute(self) -> None:
            span = current_span()
            assert span is not None
            assert span.traceparent == "Work"
            self.runs += 1
            if self.runs == 1:
                raise TaskFailed("once")

    async with open_queues(trace=trace) as queues:
        queues.enqueue("a", Work(), WorkScope("update of a"))
        await queues.wait_idle("a")
    assert told == ["begin a Work update of a", "failed once", "end Work", "begin a Work update of a", "end Work"]
    assert current_span() is None
