"""Waits without a time limit, which end when the daemon stops."""

from typing import cast

import pytest
import trio
import trio.testing

from wharfinger.queue.scope import WorkScope
from wharfinger.queue.task import TaskFailed
from wharfinger.runtime.package.instance import Tools
from wharfinger.runtime.package.stoppable import waiting


class OnlyStopping:
    """A stand-in for `Tools`, with only the part that a wait uses."""

    def __init__(self) -> None:
        self.stopping = WorkScope("the daemon")


async def test_a_wait_ends_with_its_block() -> None:
    tools = OnlyStopping()
    with waiting(cast("Tools", tools)):
        await trio.lowlevel.checkpoint()
    tools.stopping.cancel("the daemon stops")  # the wait is not registered any more


async def test_the_end_of_the_daemon_ends_a_wait(nursery: trio.Nursery) -> None:
    tools, told = OnlyStopping(), trio.Event()

    async def wait() -> None:
        with pytest.raises(TaskFailed, match="stopped waiting: the daemon stops"), waiting(cast("Tools", tools)):
            await trio.sleep_forever()
        told.set()

    nursery.start_soon(wait)
    await trio.testing.wait_all_tasks_blocked()
    tools.stopping.cancel("the daemon stops")
    await told.wait()


async def test_a_daemon_that_stops_begins_no_wait() -> None:
    tools = OnlyStopping()
    tools.stopping.cancel("the daemon stops")
    with pytest.raises(TaskFailed), waiting(cast("Tools", tools)):
        await trio.sleep_forever()


async def test_an_exception_in_a_wait_is_not_changed() -> None:
    with pytest.raises(KeyError), waiting(cast("Tools", OnlyStopping())):
        raise KeyError
