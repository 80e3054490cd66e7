"""The guard around a task, and what a worker holds on to."""

import gc
import logging
import weakref

import pytest
import trio
from trio.testing import MockClock

from tests.queue.tasks import Calls, Diary, Work, permanent
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.service import Queues, TaskFailed, open_queues
from wharfinger.queue.worker import MAX_ERROR_CHARS


def scope() -> WorkScope:
    return WorkScope("update of shop.web")


async def first_error(queues: Queues, error: BaseException) -> tuple[str, bool]:
    """What the dump says after a task raised this: the error and whether the task is parked."""

    async def fails() -> None:
        raise error

    queues.enqueue("web", Calls("Run", fails), scope())
    with trio.move_on_after(1):
        await queues.wait_idle("web")
    (task,) = queues.dump_one("web").tasks
    return task.error, task.parked


async def test_a_bug_in_a_task_is_logged_with_its_traceback_and_parks_the_task(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_queues() as queues:
        assert await first_error(queues, KeyError("replicas\nx")) == ("bug: KeyError: 'replicas\\nx'", True)
        assert (queues.statistics().bugs, queues.statistics().failures) == (1, 1)
        queues.enqueue("other", Work("Run", Diary()), scope())
        await queues.wait_idle("other")
        assert queues.statistics().retired == 1
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.getMessage() == "Run: a bug in this task; it parks"
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], KeyError)


async def test_an_expected_failure_is_not_a_bug(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    async with open_queues() as queues:
        assert await first_error(queues, TaskFailed("no route to host")) == ("no route to host", False)
        assert (queues.statistics().bugs, queues.statistics().failures) == (0, 1)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([TaskFailed("a"), TaskFailed("b")], ("a; b", False)),
        ([TaskFailed("a"), TaskFailed("b", permanent=True)], ("a; b", True)),
        ([TaskFailed("a"), ExceptionGroup("inner", [TaskFailed("b")])], ("a; b", False)),
        ([TaskFailed("a"), ExceptionGroup("inner", [ZeroDivisionError("b")])], ("bug: ZeroDivisionError: b", True)),
    ],
)
async def test_failures_in_a_tasks_own_nursery_are_judged_together(
    errors: list[Exception], expected: tuple[str, bool], autojump_clock: MockClock
) -> None:
    async with open_queues() as queues:
        assert await first_error(queues, ExceptionGroup("both", errors)) == expected


async def test_a_bug_beside_a_cancellation_is_logged_and_the_task_leaves(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    update = scope()

    async def breaks_when_cancelled() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            try:
                await trio.sleep_forever()
            finally:
                raise ZeroDivisionError("cleaning up")

    async with open_queues() as queues:
        queues.enqueue("web", Calls("Run", breaks_when_cancelled), update)
        await trio.sleep(1)
        update.cancel("superseded")
        await queues.wait_idle("web")
        assert queues.dump_one("web").tasks == ()
        assert queues.statistics().bugs == 1
    assert "Run: a bug in this task; it parks" in caplog.messages


async def test_a_long_error_is_cut(autojump_clock: MockClock) -> None:
    async with open_queues() as queues:
        error, _ = await first_error(queues, TaskFailed("x" * 100_000))
        assert error == "x" * MAX_ERROR_CHARS


async def test_what_is_not_an_exception_ends_everything(autojump_clock: MockClock) -> None:
    with pytest.raises(BaseExceptionGroup) as caught:
        async with open_queues() as queues:
            await first_error(queues, SystemExit(3))
    assert caught.group_contains(SystemExit)


async def test_a_bug_in_what_follows_a_success_parks_the_task_and_it_can_be_run_again(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
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


class TrackedScope(WorkScope):
    """A scope that can be referred to weakly."""


@pytest.mark.parametrize("outcomes", [[], permanent()])
async def test_a_worker_lets_go_of_what_has_left(outcomes: list[Exception], autojump_clock: MockClock) -> None:
    life, update = scope(), TrackedScope("update")
    task = Work("Run", Diary(), 0, outcomes)
    gone = (weakref.ref(task), weakref.ref(update))
    async with open_queues() as queues:
        queues.enqueue("web", task, update)
        queues.enqueue("web", Work("Other", Diary()), life)
        await queues.wait_idle("web")
        update.cancel("superseded")
        await queues.wait_idle("web")
        del task, update
        gc.collect()
        assert [reference() for reference in gone] == [None, None]
    assert life._listeners == {}
