"""The effects of the queue's state machine outside of the queue: callbacks are called, waiters continue, and references are
released.
"""

import gc
import logging
import weakref
from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.queue.tasks import AT_REST, Calls, Diary, Work, hands, permanent, transient
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.service import open_queues


def scope() -> WorkScope:
    return WorkScope("update of shop.web")


async def test_a_bug_in_on_done_parks_the_task(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    diary, errors = Diary(), [ValueError("no such package")]

    def on_done() -> None:
        if errors:
            raise errors.pop()
        diary.note("told")

    async with open_queues() as queues:
        queues.enqueue("web", Work("Run", diary), scope(), on_done=on_done)
        queues.enqueue("web", Work("Next", diary), scope())
        await queues.wait_idle("web")
        (task, _) = queues.dump_one("web").tasks
        assert (task.error, task.parked) == ("bug after success: ValueError: no such package", True)
        assert queues.statistics().bugs == 1
        assert diary.lines == ["Run begins", "Run ends"]
        queues.unpark("web")
        await queues.wait_idle("web")
    assert diary.lines[2:] == ["Run begins", "Run ends", "told", "Next begins", "Next ends"]
    assert any(record.exc_info and record.levelno == logging.ERROR for record in caplog.records)


async def test_on_done_may_cancel_its_own_scope_and_enqueue(autojump_clock: MockClock) -> None:
    diary, update = Diary(), scope()
    async with open_queues() as queues:

        def on_done() -> None:
            update.cancel("superseded by success")
            queues.enqueue("web", Work("Configure", diary), scope())

        queues.enqueue("web", Work("Load", diary), update, on_done=on_done)
        queues.enqueue("web", Work("Never", diary), update)
        await queues.wait_idle("web")
    assert diary.lines == ["Load begins", "Load ends", "Configure begins", "Configure ends"]


async def test_all_waiters_for_idleness_or_the_end_are_woken(autojump_clock: MockClock) -> None:
    diary = Diary()

    async def wait(name: str) -> None:
        await queues.wait_idle("web")
        diary.note(name)

    async with open_queues() as queues, trio.open_nursery() as nursery:
        queues.enqueue("web", Work("Run", diary, 5), scope())
        queues.enqueue("web", Work("Hook", diary, 7), scope(), lane="hooks")
        for name in ("first", "second"):
            nursery.start_soon(wait, name)
    assert sorted(diary.entries[-2:]) == [(7, "first"), (7, "second")]


async def test_waiters_are_woken_if_the_queues_are_cancelled(autojump_clock: MockClock) -> None:
    told: list[str] = []

    async def wait(what: str, wait_for: Callable[[], Awaitable[None]]) -> None:
        with trio.CancelScope(shield=True):
            await wait_for()
            told.append(what)

    async def stubborn() -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(4)

    async with trio.open_nursery() as outside:
        with trio.move_on_after(10):
            async with open_queues() as queues:
                queues.enqueue("idle", Calls("Run", stubborn), scope())
                queues.enqueue("idle", Work("Next", Diary()), scope())
                queues.enqueue("removed", Calls("Run", stubborn), scope())
                outside.start_soon(wait, "idle", lambda: queues.wait_idle("idle"))
                await trio.sleep(7)
                outside.start_soon(wait, "removed", lambda: queues.remove("removed"))
                await trio.sleep_forever()
        assert queues.enqueue("late", Work("Run", Diary()), scope()) is False
    assert sorted(told) == ["idle", "removed"]


async def test_tasks_that_are_enqueued_during_removals_run_or_are_dropped(autojump_clock: MockClock) -> None:
    accepted: list[bool] = []

    async with open_queues() as queues:

        async def enqueue() -> None:
            for _ in range(40):
                accepted.append(queues.enqueue("web", Calls("Run", trio.lowlevel.checkpoint), scope()))
                await trio.lowlevel.checkpoint()

        async def remove() -> None:
            for _ in range(40):
                await queues.remove("web")
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(enqueue)
                nursery.start_soon(remove)
        accepted.append(queues.enqueue("web", Calls("Last", trio.lowlevel.checkpoint), scope()))
        await queues.wait_idle("web")
        found = queues.statistics()
        assert accepted == [True] * 201
        assert (found.tasks, found.queues, found.running) == (0, 0, 0)
        assert found.retired + found.dropped == 201
        assert found.retired >= 1


@pytest.mark.parametrize("how", ["removed", "cancelled"])
async def test_a_queue_ends_as_soon_as_its_only_task_leaves_during_backoff(how: str, autojump_clock: MockClock) -> None:
    """The lane is sleeping until the next attempt, but the queue does not wait for this attempt."""
    update = scope()
    async with open_queues() as queues:
        queues.enqueue("web", Work("Run", Diary(), 0, transient(9)), update)
        await trio.sleep(0.1)
        (task,) = queues.dump_one("web").tasks
        assert task.attempt == 1
        before = trio.current_time()
        if how == "removed":
            await queues.remove("web")
        else:
            update.cancel("superseded")
            await wait_all_tasks_blocked()
        assert trio.current_time() == before
        assert hands() == [AT_REST]
        assert queues.names() == ()


class TrackedScope(WorkScope):
    """A scope that supports weak references."""


@pytest.mark.parametrize("outcomes", [[], permanent(), transient(9)])
async def test_a_worker_retains_no_reference_to_tasks_that_have_left(
    outcomes: list[Exception], autojump_clock: MockClock
) -> None:
    life, update = scope(), TrackedScope("update")
    task = Work("Run", Diary(), 0, outcomes)
    gone = (weakref.ref(task), weakref.ref(update))
    async with open_queues() as queues:
        queues.enqueue("web", task, update)
        queues.enqueue("web", Work("Other", Diary()), life)
        await wait_all_tasks_blocked()
        update.cancel("superseded")
        await queues.wait_idle("web")
        await wait_all_tasks_blocked()
        del task, update
        gc.collect()
        assert [reference() for reference in gone] == [None, None]
    assert life._listeners == {}
