"""The end of a queue: it is drained, removed, or cancelled."""

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.queue.tasks import Calls, Diary, Work, permanent, transient
from wharfinger.queue.backoff import BackoffPolicy
from wharfinger.queue.dump import QueueDump
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.service import open_queues
from wharfinger.queue.state import Rules

RULES = Rules(max_tasks=100, backoff=BackoffPolicy(initial_s=10, factor=2, max_s=60, jitter=0.5))


def scope() -> WorkScope:
    return WorkScope("update of shop.web")


async def test_leaving_the_block_finishes_running_tasks_and_drops_waiting_ones(autojump_clock: MockClock) -> None:
    diary, refused = Diary(), []
    async with open_queues(RULES) as queues:

        def done() -> None:
            diary.note("done")
            refused.append(queues.enqueue("web", Work("late", diary), scope()))
            refused.append(queues.enqueue("a new queue", Work("late", diary), scope()))

        queues.enqueue("web", Work("Run", diary, 30), scope(), on_done=done)
        queues.enqueue("web", Work("Waiting", diary), scope())
        queues.enqueue("failing", Work("Fails", diary, 20, transient(9)), scope())
        queues.enqueue("parked", Work("Parked", diary, 0, permanent()), scope())
        queues.enqueue("backing off", Work("Backs off", diary, 0, transient(9)), scope())
        await trio.sleep(5)
    diary.note("closed")
    assert [entry for entry in diary.entries if entry[0] > 0] == [
        (20, "Fails fails"),
        (30, "Run ends"),
        (30, "done"),
        (30, "closed"),
    ]
    assert refused == [False, False]
    found = queues.statistics()
    assert (found.tasks, found.running, found.retired, found.dropped) == (0, 0, 1, 4)


async def test_a_deadline_around_bounds_the_drain(autojump_clock: MockClock) -> None:
    diary = Diary()
    with trio.CancelScope() as hard:
        async with open_queues(RULES) as queues:
            queues.enqueue("web", Work("Run", diary, 1000), scope(), on_done=lambda: diary.note("wrong"))
            await trio.sleep(1)
            hard.deadline = trio.current_time() + 30
    assert hard.cancelled_caught
    assert diary.entries == [(0, "Run begins"), (31, "Run is interrupted")]


async def test_an_error_in_the_block_ends_all_queues_and_is_raised(autojump_clock: MockClock) -> None:
    diary = Diary()
    with pytest.raises(ExceptionGroup) as caught:
        async with open_queues(RULES) as queues:
            queues.enqueue("web", Work("Run", diary, 1000), scope())
            await trio.sleep(1)
            raise OSError("state folder is gone")
    assert caught.group_contains(OSError, match="state folder is gone")
    assert diary.lines == ["Run begins", "Run is interrupted"]


async def test_removing_a_queue_interrupts_its_tasks_and_delays_no_other_queue(autojump_clock: MockClock) -> None:
    diary = Diary()

    async def stubborn() -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(4)

    async with open_queues(RULES) as queues, trio.open_nursery() as nursery:
        queues.enqueue("web", Calls("Run", stubborn), scope(), on_done=lambda: diary.note("wrong"))
        queues.enqueue("web", Work("Waiting", diary), scope())
        await wait_all_tasks_blocked()

        async def remove(name: str) -> None:
            await queues.remove("web", "package removed")
            diary.note(f"{name} returned")

        nursery.start_soon(remove, "first")
        nursery.start_soon(remove, "second")
        await wait_all_tasks_blocked()
        assert [(task.name, task.running, task.cause) for task in queues.dump_one("web").tasks] == [
            ("Run", True, "package removed")
        ]
        queues.enqueue("other", Work("Other", diary, 1), scope())
        await queues.wait_idle("other")
    assert diary.entries[:2] == [(0, "Other begins"), (1, "Other ends")]
    assert sorted(diary.entries[2:]) == [(4, "first returned"), (4, "second returned")]
    assert queues.names() == ()


async def test_a_name_used_again_while_its_queue_is_ending_waits_for_that_end(autojump_clock: MockClock) -> None:
    diary = Diary()

    async def stubborn() -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(4)
            diary.note("old ended")

    async with open_queues(RULES) as queues, trio.open_nursery() as nursery:
        queues.enqueue("web", Calls("old", stubborn), scope())
        await wait_all_tasks_blocked()
        nursery.start_soon(queues.remove, "web")
        await wait_all_tasks_blocked()
        queues.enqueue("web", Work("new", diary), scope())
        await wait_all_tasks_blocked()
        assert [(task.index, task.name, task.running) for task in queues.dump_one("web").tasks] == [
            (1, "old", True),
            (2, "new", False),
        ]
        assert queues.statistics().running == 1
        await queues.wait_idle("web")
    assert diary.entries == [(4, "old ended"), (4, "new begins"), (4, "new ends")]
    assert queues.names() == ()


async def test_removing_an_unknown_queue_returns_at_once(autojump_clock: MockClock) -> None:
    async with open_queues() as queues:
        await queues.remove("unknown")
        await queues.wait_idle("unknown")
        assert queues.dump_one("unknown") == QueueDump("unknown", ())


async def test_a_queue_can_be_removed_by_a_task_that_on_done_wakes(autojump_clock: MockClock) -> None:
    diary, gone = Diary(), trio.Event()

    async with open_queues(RULES) as queues, trio.open_nursery() as nursery:

        async def clean_up() -> None:
            await gone.wait()
            await queues.remove("web")
            diary.note("removed")

        nursery.start_soon(clean_up)
        queues.enqueue("web", Work("Uninstall", diary, 2), scope(), on_done=gone.set)
        queues.enqueue("web", Work("Left over", diary, 1000), scope())
        with trio.fail_after(10):
            await gone.wait()
    assert diary.entries[-1] == (2.0, "removed")
    assert queues.names() == ()


async def test_a_queue_can_be_removed_by_its_own_task(autojump_clock: MockClock) -> None:
    async with open_queues(RULES) as queues:
        queues.enqueue("web", Calls("Suicide", lambda: queues.remove("web")), scope())
        await queues.wait_idle("web")
        await wait_all_tasks_blocked()
        assert queues.names() == ()
