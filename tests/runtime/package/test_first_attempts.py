"""Waiting for the first attempts of packages, but not for later attempts."""

import trio
import trio.testing

from wharfinger.runtime.package.first_attempts import Tries


async def test_a_wait_without_attempts_ends_at_once(nursery: trio.Nursery) -> None:
    await Tries().wait()


async def test_a_wait_ends_with_the_last_attempt(nursery: trio.Nursery) -> None:
    phase, over = Tries(), trio.Event()

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


async def test_an_attempt_begun_during_a_wait_is_not_waited_for(nursery: trio.Nursery) -> None:
    phase, over = Tries(), trio.Event()

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


async def test_an_attempt_that_is_begun_again_at_once_is_waited_for(nursery: trio.Nursery) -> None:
    phase, over = Tries(), trio.Event()

    async def wait() -> None:
        await phase.wait()
        over.set()

    phase.begin("a")
    nursery.start_soon(wait)
    await trio.testing.wait_all_tasks_blocked()
    first = phase.attempt("a")
    phase.end("a")
    phase.begin("a")
    phase.end("a", first)  # the end of the earlier attempt does not end this attempt
    await trio.testing.wait_all_tasks_blocked()
    assert not over.is_set()
    phase.end("a", phase.attempt("a"))
    await over.wait()


async def test_a_stream_of_new_attempts_does_not_starve_a_wait(nursery: trio.Nursery) -> None:
    """Each attempt begins before the previous attempt has ended. The wait ends nevertheless."""
    phase, over = Tries(), trio.Event()

    async def wait() -> None:
        await phase.wait()
        over.set()

    phase.begin("p0")
    nursery.start_soon(wait)
    await trio.testing.wait_all_tasks_blocked()
    phase.begin("p1")
    phase.end("p0")
    for number in range(2, 50):
        phase.begin(f"p{number}")
        phase.end(f"p{number - 1}")
        await trio.testing.wait_all_tasks_blocked()
        assert phase.trying() == (f"p{number}",)
    assert over.is_set()


async def test_each_wait_covers_the_attempts_at_its_start(nursery: trio.Nursery) -> None:
    phase = Tries()
    ended: list[str] = []

    async def wait(name: str) -> None:
        await phase.wait()
        ended.append(name)

    phase.begin("a")
    nursery.start_soon(wait, "early")
    await trio.testing.wait_all_tasks_blocked()
    phase.begin("b")
    nursery.start_soon(wait, "late")
    await trio.testing.wait_all_tasks_blocked()
    phase.end("a")
    await trio.testing.wait_all_tasks_blocked()
    assert ended == ["early"]
    phase.end("b")
    await trio.testing.wait_all_tasks_blocked()
    assert ended == ["early", "late"]


def test_the_end_of_an_attempt_ends_no_later_attempt() -> None:
    phase = Tries()
    assert phase.attempt("a") == 0
    phase.begin("a")
    phase.begin("b")
    first, other = phase.attempt("a"), phase.attempt("b")
    assert 0 < first < other
    phase.begin("a")  # begins again, although the previous attempt has not ended
    second = phase.attempt("a")
    assert second > other
    phase.end("a", first)
    phase.end("a", other)
    phase.end("a", 0)
    assert (phase.attempt("a"), phase.trying()) == (second, ("a", "b"))
    phase.end("a", second)
    assert (phase.attempt("a"), phase.trying()) == (0, ("b",))
    phase.end("a", second)
    phase.end("b")  # ends any attempt of this package, because no further attempts will follow
    assert phase.trying() == ()
