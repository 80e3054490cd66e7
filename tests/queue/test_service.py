"""The queues in exact virtual time, with trio's autojump clock. No test here uses threads, sockets or child processes."""

from contextvars import ContextVar

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.queue.tasks import Calls, Diary, Work, permanent, transient
from wharfinger.queue.backoff import BackoffPolicy
from wharfinger.queue.dump import PARKED_CAUSE
from wharfinger.queue.lane import current_package
from wharfinger.queue.machine import QueueFull
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.service import open_queues
from wharfinger.queue.state import Rules

RULES = Rules(max_tasks=100, backoff=BackoffPolicy(initial_s=10, factor=2, max_s=60, jitter=0.5))


def middle() -> float:
    """Return 0.5 in place of a random number. Then jitter does not change the delays, which are 10, 20, 40, 40, … seconds."""
    return 0.5


def scope() -> WorkScope:
    return WorkScope("update of shop.web")


async def test_tasks_of_a_queue_run_in_order_and_each_callback_is_called(autojump_clock: MockClock) -> None:
    diary = Diary()
    async with open_queues(RULES) as queues:
        for name in ("Download", "Install", "Load"):
            done = f"{name} done"
            assert queues.enqueue(
                "web",
                Work(name, diary, 1),
                scope(),
                on_done=lambda what=done: diary.note(what),  # type: ignore[misc]
            )
        await queues.wait_idle("web")
    assert diary.entries == [
        (0, "Download begins"),
        (1, "Download ends"),
        (1, "Download done"),
        (1, "Install begins"),
        (2, "Install ends"),
        (2, "Install done"),
        (2, "Load begins"),
        (3, "Load ends"),
        (3, "Load done"),
    ]


async def test_queues_run_in_parallel(autojump_clock: MockClock) -> None:
    diary = Diary()
    async with open_queues(RULES) as queues:
        for queue in ("a", "b", "c"):
            queues.enqueue(queue, Work(queue, diary, 5), scope())
        for queue in ("a", "b", "c"):
            await queues.wait_idle(queue)
        diary.note("idle")
    assert diary.entries[-1] == (5.0, "idle")
    assert queues.statistics().retired == 3


async def test_retries_run_at_exact_times_and_delay_later_tasks(autojump_clock: MockClock) -> None:
    diary = Diary()
    async with open_queues(RULES, draw=middle) as queues:
        queues.enqueue("web", Work("Download", diary, 1, transient(4)), scope(), on_done=lambda: diary.note("done"))
        queues.enqueue("web", Work("Install", diary), scope())
        await queues.wait_idle("web")
    begins = [when for when, what in diary.entries if what == "Download begins"]
    assert begins == [0, 11, 32, 73, 114]
    assert diary.entries[-4:] == [(115, "Download ends"), (115, "done"), (115, "Install begins"), (115, "Install ends")]
    assert diary.lines.count("done") == 1


async def test_each_delay_uses_a_new_random_number(autojump_clock: MockClock) -> None:
    diary, draws = Diary(), iter((0.0, 0.75))
    async with open_queues(RULES, draw=lambda: next(draws)) as queues:
        queues.enqueue("web", Work("Download", diary, 0, transient(2)), scope())
        await queues.wait_idle("web")
    assert [when for when, what in diary.entries if what == "Download begins"] == [0, 5, 30]


async def test_cancelling_during_a_run_interrupts_it_and_the_next_begins(autojump_clock: MockClock) -> None:
    diary, update = Diary(), scope()
    async with open_queues(RULES) as queues:
        queues.enqueue("web", Work("Download", diary, 1000), update, on_done=lambda: diary.note("wrong"))
        queues.enqueue("web", Work("Install", diary), update, on_done=lambda: diary.note("wrong"))
        queues.enqueue("web", Work("Uninstall", diary), scope(), on_done=lambda: diary.note("removed"))
        await trio.sleep(7)
        update.cancel("removal started")
        assert [(task.name, task.running, task.cause) for task in queues.dump_one("web").tasks] == [
            ("Download", True, "removal started"),
            ("Uninstall", False, ""),
        ]
        await queues.wait_idle("web")
    assert diary.entries == [
        (0, "Download begins"),
        (7, "Download is interrupted"),
        (7, "Uninstall begins"),
        (7, "Uninstall ends"),
        (7, "removed"),
    ]
    assert queues.statistics().dropped == 2


async def test_a_task_cancelled_during_backoff_leaves_at_once(autojump_clock: MockClock) -> None:
    diary, update = Diary(), scope()
    async with open_queues(RULES, draw=middle) as queues:
        queues.enqueue("web", Work("Download", diary, 0, transient(9)), update)
        queues.enqueue("web", Work("Uninstall", diary), scope())
        await trio.sleep(3)
        (download, _) = queues.dump_one("web").tasks
        assert (download.retry_in_s, download.error, download.attempt) == (7.0, "failure 1", 1)
        update.cancel("removal started")
        assert [task.name for task in queues.dump_one("web").tasks] == ["Uninstall"]
        await queues.wait_idle("web")
    assert diary.entries[2:] == [(3, "Uninstall begins"), (3, "Uninstall ends")]


async def test_a_task_that_ends_slowly_delays_the_next_one(autojump_clock: MockClock) -> None:
    diary, update = Diary(), scope()

    async def stubborn() -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(4)
            diary.note("cleaned up")

    async with open_queues(RULES) as queues:
        queues.enqueue("web", Calls("Run", stubborn), update, on_done=lambda: diary.note("wrong"))
        queues.enqueue("web", Work("Next", diary), scope())
        await wait_all_tasks_blocked()
        update.cancel("superseded")
        await queues.wait_idle("web")
    assert diary.entries == [(4, "cleaned up"), (4, "Next begins"), (4, "Next ends")]


async def test_a_cancelled_run_that_returns_is_not_a_success(autojump_clock: MockClock) -> None:
    told: list[str] = []
    update = scope()

    async def cancels_itself() -> None:
        update.cancel("superseded by what it did")

    async with open_queues(RULES) as queues:
        queues.enqueue("web", Calls("Run", cancels_itself), update, on_done=lambda: told.append("wrong"))
        await queues.wait_idle("web")
        assert queues.statistics().dropped == 1
    assert told == []


async def test_on_done_is_not_called_if_the_run_cancels_its_own_scope(
    autojump_clock: MockClock,
) -> None:
    diary, update = Diary(), scope()

    async def succeeds_and_is_superseded() -> None:
        await trio.sleep(1)
        update.cancel("superseded")

    async with open_queues(RULES) as queues:
        queues.enqueue("web", Calls("Run", succeeds_and_is_superseded), update, on_done=lambda: diary.note("wrong"))
        queues.enqueue("web", Work("Next", diary), scope())
        await queues.wait_idle("web")
    assert diary.entries == [(1, "Next begins"), (1, "Next ends")]
    assert queues.statistics().dropped == 1


async def test_a_task_of_a_cancelled_scope_is_refused(autojump_clock: MockClock) -> None:
    diary, update = Diary(), scope()
    update.cancel("superseded")
    async with open_queues(RULES) as queues:
        assert queues.enqueue("web", Work("Download", diary), update) is False
        await queues.wait_idle("web")
        assert (queues.dump(), queues.names()) == ((), ())
    assert diary.entries == []


async def test_a_task_cancelled_before_it_began_never_begins(autojump_clock: MockClock) -> None:
    diary, update = Diary(), scope()
    async with open_queues(RULES) as queues:
        queues.enqueue("web", Work("Download", diary), update)
        update.cancel("superseded")
        await queues.wait_idle("web")
    assert diary.entries == []
    assert queues.statistics().dropped == 1


async def test_a_permanent_failure_parks_until_an_input_changes(autojump_clock: MockClock) -> None:
    diary = Diary()
    async with open_queues(RULES) as queues:
        queues.enqueue("web", Work("Configure", diary, 0, permanent()), scope(), on_done=lambda: diary.note("done"))
        queues.enqueue("web", Work("Run", diary), scope())
        await queues.wait_idle("web")
        await trio.sleep(10_000)
        configure, run = queues.dump_one("web").tasks
        assert (configure.parked, configure.error, configure.cause) == (True, "schema violation", PARKED_CAUSE)
        assert (run.parked, run.attempt) == (False, 0)
        assert queues.statistics().parked == 1
        queues.unpark("web")
        queues.unpark("unknown")
        await queues.wait_idle("web")
    assert diary.entries[2:] == [
        (10_000, "Configure begins"),
        (10_000, "Configure ends"),
        (10_000, "done"),
        (10_000, "Run begins"),
        (10_000, "Run ends"),
    ]


async def test_lanes_of_a_queue_do_not_block_each_other(autojump_clock: MockClock) -> None:
    diary = Diary()
    async with open_queues(RULES) as queues:
        queues.enqueue("web", Work("Hook", diary, 0, permanent()), scope(), lane="events")
        queues.enqueue("web", Work("Run", diary, 1), scope())
        await queues.wait_idle("web")
        assert [(task.lane, task.name) for task in queues.dump_one("web").tasks] == [("events", "Hook")]
    assert diary.lines[-1] == "Run ends"


async def test_unique_work_is_refused_while_the_same_work_waits(autojump_clock: MockClock) -> None:
    diary, life = Diary(), scope()
    async with open_queues(RULES) as queues:
        assert [queues.enqueue("web", Work("sync", diary, 1), life, unique=True) for _ in range(4)] == [
            True,
            True,
            False,
            False,
        ]
        await queues.wait_idle("web")
    assert diary.lines == ["sync begins", "sync ends"] * 2


async def test_a_full_queue_refuses_a_task_and_continues(autojump_clock: MockClock) -> None:
    diary = Diary()
    async with open_queues(Rules(max_tasks=2)) as queues:
        queues.enqueue("web", Work("a", diary), scope())
        queues.enqueue("web", Work("b", diary), scope())
        with pytest.raises(QueueFull, match="c: not queued"):
            queues.enqueue("web", Work("c", diary), scope())
        assert queues.enqueue("other", Work("d", diary), scope())
        await queues.wait_idle("web")
        assert queues.enqueue("web", Work("c", diary), scope())
    assert {"a ends", "b ends", "c ends", "d ends"} <= set(diary.lines)


async def test_a_queue_without_a_name_is_refused(autojump_clock: MockClock) -> None:
    async with open_queues() as queues:
        with pytest.raises(ValueError, match="Download: a queue needs a name"):
            queues.enqueue(" ", Work("Download", Diary()), scope())


async def test_work_runs_in_the_context_of_its_queue(autojump_clock: MockClock) -> None:
    request: ContextVar[str] = ContextVar("request", default="none")
    seen: list[tuple[str, str]] = []

    async def look() -> None:
        seen.append((current_package(), request.get()))
        request.set("set by a task")

    async with open_queues(RULES) as queues:
        request.set("42")
        for queue in ("web", "db", "web"):
            queues.enqueue(
                queue, Calls("look", look), scope(), on_done=lambda: seen.append((current_package(), request.get()))
            )
        await queues.wait_idle("web")
        await queues.wait_idle("db")
        assert current_package() == ""
    assert sorted(seen) == [("db", "none")] * 2 + [("web", "none")] * 4


async def test_tasks_of_fifty_concurrent_callers_keep_their_order(autojump_clock: MockClock) -> None:
    diary = Diary()
    async with open_queues(RULES) as queues:

        async def asker(number: int) -> None:
            for step in range(2):
                queues.enqueue("web", Work(f"{number}.{step}", diary), scope())
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            for number in range(50):
                nursery.start_soon(asker, number)
        await queues.wait_idle("web")
    ends = [line.split()[0] for line in diary.lines if line.endswith("ends")]
    assert sorted(ends) == sorted(f"{number}.{step}" for number in range(50) for step in range(2))
    assert all(ends.index(f"{number}.0") < ends.index(f"{number}.1") for number in range(50))
    assert diary.lines == [f"{name} {what}" for name in ends for what in ("begins", "ends")]


async def test_a_thousand_queues_run_and_retry(autojump_clock: MockClock) -> None:
    diary = Diary()
    async with open_queues(RULES, draw=middle) as queues:
        for number in range(1000):
            queues.enqueue(f"package {number:03}", Work("Run", diary, 1, transient(number % 2)), scope())
        await trio.sleep(2)
        found = queues.statistics()
        assert (found.queues, found.tasks, found.backing_off, found.retired) == (500, 500, 500, 500)
        assert [dump.name for dump in queues.dump()] == sorted(f"package {number:03}" for number in range(1, 1000, 2))
        for name in queues.names():
            await queues.wait_idle(name)
    assert diary.entries[-1][0] == 12
    assert queues.statistics().retired == 1000
