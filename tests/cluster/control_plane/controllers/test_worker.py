"""A worker looks at one object at a time, and what fails concerns that object only."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock

from wharfinger.cluster.control_plane.controllers.object_cache import Change
from wharfinger.cluster.control_plane.controllers.worker import Ages, Worker
from wharfinger.cluster.errors import ClusterError, ConflictError, UnreachableError
from wharfinger.cluster.resource import ObjectKey, ResourceType
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import ShapeError

PODS = ResourceType("", "v1", "Pod", "pods", namespaced=True)
A, B = (ObjectKey(PODS, "n", name) for name in "ab")


class Recorder:
    """A controller that notes when it looked at what, and answers as told."""

    name = "recorder"

    def __init__(self, *answers: float | ClusterError | FormatError | None) -> None:
        self.answers = list(answers)
        self.seen: list[tuple[str, float]] = []

    def affected(self, change: Change) -> Iterable[ObjectKey]:
        return [change.key]

    async def reconcile(self, key: ObjectKey) -> float | None:
        self.seen.append((key.name, trio.current_time()))
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer


@asynccontextmanager
async def running(controller: Recorder, *, ready: bool = True) -> AsyncGenerator[tuple[Worker, trio.Event], None]:
    worker, event = Worker(controller), trio.Event()
    if ready:
        event.set()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.run, event)
        yield worker, event
        nursery.cancel_scope.cancel()


def change(key: ObjectKey) -> Change:
    return Change(key, None, {"metadata": {}})


async def test_looks_at_what_changed(autojump_clock: MockClock) -> None:
    controller = Recorder()
    async with running(controller) as (worker, _):
        await trio.sleep(1)
        for key in (A, B, A):
            worker.notice(change(key))
        await trio.sleep(1)
        worker.notice(change(A))
        await trio.sleep(1)
    assert controller.seen == [("a", 1.0), ("b", 1.0), ("a", 2.0)]


async def test_waits_until_it_may_start(autojump_clock: MockClock) -> None:
    controller = Recorder()
    async with running(controller, ready=False) as (worker, event):
        worker.notice(change(A))
        await trio.sleep(5)
        event.set()
        await trio.sleep(1)
    assert controller.seen == [("a", 5.0)]


async def test_looks_again_when_asked_to(autojump_clock: MockClock) -> None:
    controller = Recorder(3.0, None)
    async with running(controller) as (worker, _):
        worker.notice(change(A))
        await trio.sleep(10)
    assert controller.seen == [("a", 0.0), ("a", 3.0)]


@pytest.mark.parametrize("error", [
    UnreachableError("no answer"), ConflictError(409, "Conflict", "changed"), ShapeError("odd"),
])  # fmt: skip
async def test_errors_are_tried_again_and_hold_nobody(
    autojump_clock: MockClock, error: ClusterError | FormatError
) -> None:
    controller = Recorder(error, None, error, error)
    async with running(controller) as (worker, _):
        worker.notice(change(A))
        worker.notice(change(B))
        await trio.sleep(0.01)
        assert [name for name, _ in controller.seen] == ["a", "b"]
        assert worker.statistics() == {"due": 0, "waiting": 1, "failing": 1}
        await trio.sleep(1)
        assert worker.statistics() == {"due": 0, "waiting": 0, "failing": 0}
    pauses = [time for name, time in controller.seen if name == "a"]
    assert pauses == pytest.approx([0.0, 0.05, 0.15, 0.35])


async def test_ages(autojump_clock: MockClock) -> None:
    ages = Ages()
    assert ages.age(A, "1") == 0
    await trio.sleep(2)
    assert (ages.age(A, "1"), ages.age(B, "1")) == (2, 0)
    assert ages.age(A, "2") == 0
    await trio.sleep(1)
    ages.forget(A)
    ages.forget(A)
    assert (ages.age(A, "2"), ages.age(B, "1")) == (0, 1)
