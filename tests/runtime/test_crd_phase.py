"""Everybody waits for the first attempts, and for no more than those."""

import trio
import trio.testing

from wharfinger.runtime.crd_phase import CrdPhase


async def test_nothing_to_wait_for(nursery: trio.Nursery) -> None:
    await CrdPhase().wait()


async def test_a_wait_ends_with_the_last_attempt(nursery: trio.Nursery) -> None:
    phase, over = CrdPhase(), trio.Event()

    async def wait() -> None:
        await phase.wait()
        over.set()

    phase.begin("b")
    phase.begin("a")
    assert phase.trying() == ("a", "b")
    nursery.start_soon(wait)
    await trio.testing.wait_all_tasks_blocked()
    phase.end("a")
    await trio.testing.wait_all_tasks_blocked()
    assert not over.is_set()
    phase.end("unknown")
    phase.end("b")
    await over.wait()
    assert phase.trying() == ()


async def test_who_begins_while_others_wait_is_not_waited_for(nursery: trio.Nursery) -> None:
    phase, over = CrdPhase(), trio.Event()

    async def wait() -> None:
        await phase.wait()
        over.set()

    phase.begin("a")
    nursery.start_soon(wait)
    await trio.testing.wait_all_tasks_blocked()
    phase.begin("b")
    phase.end("a")
    await over.wait()
    assert phase.trying() == ("b",)


async def test_who_ends_and_begins_again_in_one_step_is_waited_for(nursery: trio.Nursery) -> None:
    phase, over = CrdPhase(), trio.Event()

    async def wait() -> None:
        await phase.wait()
        over.set()

    phase.begin("a")
    nursery.start_soon(wait)
    await trio.testing.wait_all_tasks_blocked()
    first = phase.attempt("a")
    phase.end("a")
    phase.begin("a")
    phase.end("a", first)  # the end of the attempt before is not that of this one
    await trio.testing.wait_all_tasks_blocked()
    assert not over.is_set()
    phase.end("a", phase.attempt("a"))
    await over.wait()
