"""The execution of runs: errors of tasks, interruptions, and the isolation of each run from the next."""

import logging
from collections.abc import Callable
from contextvars import ContextVar
from itertools import pairwise

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.queue.tasks import AT_REST, Calls, Diary, Work, hands, transient
from wharfinger.queue.lane import MAX_ERROR_CHARS, RUNS_BETWEEN_CHECKPOINTS
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.service import Queues, open_queues
from wharfinger.queue.task import TaskFailed


def scope() -> WorkScope:
    return WorkScope("update of shop.web")


async def test_a_lane_has_a_trio_task_only_while_it_has_something_to_do(autojump_clock: MockClock) -> None:
    diary = Diary()
    async with open_queues() as queues:
        for number in range(100):
            queues.enqueue(f"web-{number}", Work("Run", diary, 1), scope())
        queues.enqueue("failing", Work("Fails", diary, 0, transient(99)), scope())
        queues.enqueue("failing", Work("Hook", diary, 0, [TaskFailed("no", permanent=True)]), scope(), lane="hooks")
        await trio.sleep(0.5)
        assert len([name for name in hands() if name != AT_REST]) == 101
        await trio.sleep(1)
        assert [name for name in hands() if name != AT_REST] == ["queue failing/main"]
        assert queues.names() == ("failing",)
        await queues.remove("failing")
        await wait_all_tasks_blocked()
        assert set(hands()) == {AT_REST}
        assert queues.statistics().queues == 0


async def test_cancelling_a_task_in_backoff_starts_the_next_one(
    autojump_clock: MockClock,
) -> None:
    diary, update, late = Diary(), scope(), scope()
    async with open_queues() as queues:
        queues.enqueue("web", Work("Download", diary, 0, transient(9)), update)
        queues.enqueue("web", Work("Install", diary), late)
        queues.enqueue("web", Work("Load", diary), scope())
        await trio.sleep(1)
        late.cancel("superseded")  # The first task is in backoff. This removes the second one.
        await wait_all_tasks_blocked()
        assert diary.lines == ["Download begins", "Download fails"]
        update.cancel("superseded")
        await queues.wait_idle("web")
    assert diary.entries[2:] == [(1, "Load begins"), (1, "Load ends")]


async def test_an_interrupted_run_does_not_cancel_the_next_one(autojump_clock: MockClock) -> None:
    diary = Diary()
    scopes = [scope() for _ in range(5)]
    async with open_queues() as queues:
        for number, work in enumerate(scopes):
            queues.enqueue("web", Work(f"Run {number}", diary, 10), work)
        for number in (0, 1, 3):
            await trio.sleep(1)
            scopes[number].cancel("superseded")
            await trio.sleep(0 if number < 1 else 12)
        await queues.wait_idle("web")
    assert diary.entries == [
        (0, "Run 0 begins"),
        (1, "Run 0 is interrupted"),
        (1, "Run 1 begins"),
        (2, "Run 1 is interrupted"),
        (2, "Run 2 begins"),
        (12, "Run 2 ends"),
        (12, "Run 3 begins"),
        (15, "Run 3 is interrupted"),
        (15, "Run 4 begins"),
        (25, "Run 4 ends"),
    ]


async def test_a_task_that_is_cancelled_before_its_run_never_begins(autojump_clock: MockClock) -> None:
    diary, update = Diary(), scope()
    async with open_queues() as queues:

        def on_done() -> None:
            queues.enqueue("web", Work("Install", diary), update, lane="other")
            update.cancel("superseded by what follows")

        queues.enqueue("web", Work("Download", diary), scope(), on_done=on_done)
        queues.enqueue("web", Work("Load", diary), update)
        queues.enqueue("web", Work("Run", diary), scope())
        await queues.wait_idle("web")
    assert diary.lines == ["Download begins", "Download ends", "Run begins", "Run ends"]


async def test_a_started_run_that_is_cancelled_before_it_is_scheduled_never_begins(
    autojump_clock: MockClock,
) -> None:
    """Other tasks run between two runs of a lane. One of them cancels the next run."""
    diary, update = Diary(), scope()
    runs: list[int] = []

    async def instant() -> None:
        runs.append(len(runs))

    async with open_queues() as queues:
        for _ in range(RUNS_BETWEEN_CHECKPOINTS):
            queues.enqueue("web", Calls("Instant", instant), scope())
        queues.enqueue("web", Work("Next", diary), update)
        queues.enqueue("web", Work("Last", diary), scope())

        async def cancels_in_between() -> None:
            while len(runs) < RUNS_BETWEEN_CHECKPOINTS:
                await trio.lowlevel.checkpoint()
            update.cancel("superseded")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancels_in_between)
        await queues.wait_idle("web")
    assert diary.lines[-2:] == ["Last begins", "Last ends"]
    assert "Next ends" not in diary.lines


async def test_other_tasks_run_between_tasks_without_a_checkpoint(autojump_clock: MockClock) -> None:
    runs: list[int] = []
    seen: list[int] = []

    async def instant() -> None:
        runs.append(len(runs))

    async with open_queues() as queues:
        for _ in range(10 * RUNS_BETWEEN_CHECKPOINTS):
            queues.enqueue("web", Calls("Instant", instant), scope())
        while len(runs) < 10 * RUNS_BETWEEN_CHECKPOINTS:
            await trio.lowlevel.checkpoint()
            seen.append(len(runs))
    assert max(after - before for before, after in zip([0, *seen], seen, strict=False)) <= 2 * RUNS_BETWEEN_CHECKPOINTS


@pytest.mark.parametrize("ending", ["fails", "breaks", "is interrupted"])
async def test_other_tasks_run_between_failing_tasks_without_a_checkpoint(
    ending: str, autojump_clock: MockClock
) -> None:
    """Each run immediately causes the next one, so without a checkpoint of the lane no other trio task would run."""
    many, runs, seen = 10 * RUNS_BETWEEN_CHECKPOINTS, [0], [0]

    def begin() -> None:
        work = scope()

        async def ends() -> None:
            runs[0] += 1
            if runs[0] >= many:
                return
            if ending == "is interrupted":
                begin()
                work.cancel("superseded by itself")
                return
            queues.unpark("web")  # The run used an outdated state, so it must be repeated immediately.
            raise TaskFailed("refused", permanent=True) if ending == "fails" else LookupError("a bug")

        queues.enqueue("web", Calls("Run", ends), work)

    async with open_queues() as queues:
        begin()
        while runs[0] < many:
            await trio.lowlevel.checkpoint()
            seen.append(runs[0])
        await queues.wait_idle("web")
        assert queues.statistics().running == 0
    assert max(after - before for before, after in pairwise(seen)) <= 2 * RUNS_BETWEEN_CHECKPOINTS


async def test_a_run_that_fails_while_it_is_cancelled_lets_the_next_one_begin(autojump_clock: MockClock) -> None:
    diary, update = Diary(), scope()

    async def fails_at_its_end() -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            raise TaskFailed("cleaning up") from None

    async with open_queues() as queues:
        queues.enqueue("web", Calls("Run", fails_at_its_end), update)
        queues.enqueue("web", Work("Next", diary), scope())
        queues.enqueue("web", Work("Last", diary), scope())
        await wait_all_tasks_blocked()
        update.cancel("superseded")
        with trio.fail_after(1):
            await queues.wait_idle("web")
        found = queues.statistics()
        assert (found.tasks, found.retired, found.dropped, found.failures) == (0, 2, 1, 1)
    assert diary.lines == ["Next begins", "Next ends", "Last begins", "Last ends"]


async def test_on_done_does_not_change_the_context_of_the_next_run(autojump_clock: MockClock) -> None:
    request: ContextVar[str] = ContextVar("request", default="none")
    seen: list[str] = []

    def on_done() -> None:
        seen.append(request.get())
        request.set("left behind")

    async def look() -> None:
        seen.append(request.get())

    async with open_queues() as queues:
        for _ in range(2):
            queues.enqueue("web", Calls("Run", look), scope(), on_done=on_done)
        await queues.wait_idle("web")
    assert seen == ["none"] * 4


async def test_context_variables_of_a_run_are_not_seen_by_the_next_one(autojump_clock: MockClock) -> None:
    request: ContextVar[str] = ContextVar("request", default="none")
    seen: list[str] = []

    async def looks_and_sets() -> None:
        seen.append(request.get())
        request.set("left behind")

    async def fails() -> None:
        request.set("left by a failure")
        raise TaskFailed("once")

    failing = [fails, looks_and_sets]

    async def fails_once() -> None:
        await failing.pop(0)()

    async with open_queues() as queues:
        for _ in range(3):
            queues.enqueue("web", Calls("Run", looks_and_sets), scope())
        queues.enqueue("web", Calls("Fails", fails_once), scope())
        queues.enqueue("web", Calls("Run", looks_and_sets), scope())
        await queues.wait_idle("web")
    assert seen == ["none"] * 5


async def first_error(queues: Queues, error: BaseException) -> tuple[str, bool]:
    """Let a task raise ``error``. Return its error as the dump of the queue shows it, and whether the task is parked."""

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
    assert record.getMessage() == "Run: a bug in this task; it is parked"
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
async def test_failures_in_a_nursery_of_a_task_are_reported_together(
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
    assert "Run: a bug in this task; it is parked" in caplog.messages


async def test_a_long_error_is_cut(autojump_clock: MockClock) -> None:
    async with open_queues() as queues:
        error, _ = await first_error(queues, TaskFailed("x" * 100_000))
        assert error == "x" * MAX_ERROR_CHARS


class BrokenScope(WorkScope):
    """A scope that raises an error when it is left, which is a bug outside of the task."""

    def on_cancel(self, listener: Callable[[str], None]) -> Callable[[], None]:
        super().on_cancel(listener)

        def forget() -> None:
            raise LookupError("a bug of the queue itself")

        return forget


async def test_a_bug_of_the_queue_itself_ends_all_queues(autojump_clock: MockClock) -> None:
    quiet: list[str] = []
    with pytest.raises(ExceptionGroup) as caught:
        async with trio.open_nursery() as outside, open_queues() as queues:
            queues.enqueue("web", Work("Run", Diary(), 1), BrokenScope("update"))

            async def wait() -> None:
                with trio.CancelScope(shield=True):
                    await queues.wait_idle("web")
                    quiet.append("the wait has ended")

            outside.start_soon(wait)
            await trio.sleep_forever()
    assert caught.group_contains(LookupError, match="a bug of the queue itself")
    assert quiet == ["the wait has ended"]
    assert queues.statistics().bugs == 0


async def test_a_base_exception_ends_all_queues(autojump_clock: MockClock) -> None:
    with pytest.raises(BaseExceptionGroup) as caught:
        async with open_queues() as queues:
            await first_error(queues, SystemExit(3))
    assert caught.group_contains(SystemExit)
