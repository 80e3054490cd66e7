"""What performing the machine's decisions means for those around: who is told, and what is let go of."""

import gc
import logging
import weakref

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.queue.tasks import Diary, Work, permanent, transient
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.service import open_queues


def scope() -> WorkScope:
    return WorkScope("update of shop.web")


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


@pytest.mark.parametrize("outcomes", [[], permanent(), transient(9)])
async def test_a_worker_lets_go_of_what_has_left(outcomes: list[Exception], autojump_clock: MockClock) -> None:
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
