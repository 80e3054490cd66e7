import trio
import trio.testing

from tests.debug.support.samples import task
from wharfinger.queue.lane import acting_for
from wharfinger.runtime.inspection.daemon_tasks import daemon_tasks
from wharfinger.runtime.inspector import QueueSnapshot


async def sleep_for(package: str) -> None:
    with acting_for(package):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever, name="inner")


async def test_tasks_of_the_daemon_form_a_tree() -> None:
    queue = QueueSnapshot("prod.shop", (task(1), task(2, running=False)))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sleep_for, "prod.shop", name="queue prod.shop")
        await trio.testing.wait_all_tasks_blocked()
        tasks = daemon_tasks({"prod.shop": queue})
        nursery.cancel_scope.cancel()
    assert tasks[0].depth == 0
    at = next(number for number, each in enumerate(tasks) if each.name == "inner")
    inner, outer = tasks[at], tasks[at - 1]
    assert outer.name == "queue prod.shop"
    assert inner.depth == outer.depth + 1
    assert (inner.package, inner.cause) == ("prod.shop", "Task1: version changed")
