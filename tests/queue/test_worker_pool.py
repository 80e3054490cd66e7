"""The trio tasks in which lanes run: their number, and the isolation of queues whose lanes run in the same trio task."""

from contextvars import ContextVar

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.queue.tasks import AT_REST, Calls, Diary, Work, hands
from wharfinger.queue import worker_pool
from wharfinger.queue.lane import current_package
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.service import open_queues
from wharfinger.queue.task import TaskFailed

request: ContextVar[str] = ContextVar("request", default="none")


def scope() -> WorkScope:
    return WorkScope("update of shop.web")


async def test_idle_trio_tasks_are_bounded_and_end_with_the_queues(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_pool, "MAX_IDLE", 3)
    diary = Diary()
    async with open_queues() as queues:
        for number in range(10):
            queues.enqueue(f"web-{number}", Work("Run", diary, 1), scope())
        await trio.sleep(0.5)
        assert len(hands()) == 10
        await trio.sleep(1)
        assert hands() == [AT_REST] * 3
        queues.enqueue("web", Work("Run", diary, 1), scope())
        await trio.sleep(0.5)
        assert hands() == [AT_REST] * 2 + ["queue web/main"]
    assert hands() == []


async def test_idle_trio_tasks_end_except_for_a_few(autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "FEW_IDLE", 2)
    diary = Diary()

    def begin(count: int) -> None:
        for number in range(count):
            queues.enqueue(f"web-{number}", Work("Run", diary, 1), scope())

    async with open_queues() as queues:
        begin(10)
        for _ in range(8):  # Four of the ten trio tasks are needed again and again.
            await trio.sleep(1.5)
            begin(4)
        await trio.sleep(1.5)
        assert len(at_rest()) == 6
        await trio.sleep(2 * worker_pool.IDLE_S)
        assert hands() == [AT_REST] * 2
        begin(10)
    assert hands() == []


def at_rest() -> list[str]:
    """Return the names of the idle trio tasks."""
    return [name for name in hands() if name == AT_REST]


async def test_one_trio_task_serves_queues_one_after_the_other(autojump_clock: MockClock) -> None:
    seen: list[tuple[str, str]] = []
    tasks: set[trio.lowlevel.Task] = set()

    async def look() -> None:
        seen.append((current_package(), request.get()))
        tasks.add(trio.lowlevel.current_task())

    async with open_queues() as queues:
        request.set("42")
        for name in ("web", "db", "web"):
            queues.enqueue(name, Calls("look", look), scope(), lane="hooks")
            await wait_all_tasks_blocked()
    assert seen == [("web", "none"), ("db", "none"), ("web", "none")]
    assert len(tasks) == 1


@pytest.mark.parametrize("how", ["succeeds", "fails", "has a bug", "is interrupted"])
async def test_the_context_of_one_queue_is_not_seen_by_the_next(how: str, autojump_clock: MockClock) -> None:
    diary, update = Diary(), scope()
    seen: list[str] = []

    async def leaves() -> None:
        request.set("left behind")
        match how:
            case "fails":
                raise TaskFailed("no", permanent=True)
            case "has a bug":
                raise KeyError("no")
            case "is interrupted":
                await trio.sleep_forever()

    async def look() -> None:
        seen.append(request.get())

    async with open_queues() as queues:
        queues.enqueue("web", Calls("Leaves", leaves), update)
        await wait_all_tasks_blocked()
        update.cancel("superseded")
        await queues.wait_idle("web")
        await wait_all_tasks_blocked()
        queues.enqueue("db", Calls("look", look), scope())
        queues.enqueue("db", Work("Run", diary, 1), scope())
        await queues.wait_idle("db")
    assert seen == ["none"]
    assert diary.lines == ["Run begins", "Run ends"]


async def test_a_thousand_bursts_of_ten_queues_need_ten_trio_tasks(autojump_clock: MockClock) -> None:
    begun: list[trio.lowlevel.Task] = []

    class Counts(trio.abc.Instrument):
        def task_spawned(self, task: trio.lowlevel.Task) -> None:
            begun.append(task)

    async with open_queues() as queues:
        trio.lowlevel.add_instrument(counts := Counts())
        for _ in range(100):
            for number in range(10):
                queues.enqueue(f"web-{number}", Calls("Run", trio.lowlevel.checkpoint), scope())
            await wait_all_tasks_blocked()
        trio.lowlevel.remove_instrument(counts)
        assert queues.statistics().retired == 1000
    assert len(begun) == 10


async def test_a_trio_task_that_was_cancelled_from_outside_gets_no_work(autojump_clock: MockClock) -> None:
    diary = Diary()
    with trio.CancelScope() as hard:
        async with open_queues() as queues:
            queues.enqueue("web", Work("Run", diary, 1), scope())
            await trio.sleep(2)
            assert hands() == [AT_REST]
            hard.cancel()
            with trio.CancelScope(shield=True):
                await trio.sleep(1)
                assert hands() == []
                assert queues.enqueue("web", Work("Late", diary, 1), scope())
                await queues.remove("web")
    assert diary.lines[:2] == ["Run begins", "Run ends"]
    assert "Late ends" not in diary.lines
