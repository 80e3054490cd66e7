"""The work queue: it combines equal keys, gives a key to one worker at a time, delays keys, and loses none."""

import trio
import trio.testing
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from tests.scale import scaled
from wharfinger.cluster.watch.work_queue import FIRST_PAUSE_S, LAST_PAUSE_S, WorkKeys, WorkQueue

KEYS = st.sampled_from(["a", "b", "c"])


async def taken(queue: WorkKeys) -> str | None:
    """Return the key that a worker would take without waiting, or None."""
    with trio.move_on_after(0):
        return await queue.take()
    return None


async def test_keys_are_taken_once_and_in_order() -> None:
    queue = WorkKeys()
    for key in ("b", "a", "b"):
        queue.add(key)
    assert [await queue.take(), await queue.take()] == ["b", "a"]
    assert await taken(queue) is None


async def test_a_key_in_progress_is_taken_again_only_after_it_is_done() -> None:
    queue = WorkKeys()
    queue.add("a")
    assert await queue.take() == "a"
    queue.add("a")
    assert queue.statistics() == {"due": 1, "waiting": 0, "failing": 0}
    assert await taken(queue) is None
    queue.done("a")
    assert await queue.take() == "a"
    queue.done("a")
    assert await taken(queue) is None


async def test_a_waiting_worker_is_woken(autojump_clock: trio.testing.MockClock) -> None:
    queue = WorkKeys()
    got: list[str] = []

    async def worker() -> None:
        got.append(await queue.take())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker)
        nursery.start_soon(worker)
        await trio.testing.wait_all_tasks_blocked()
        queue.add("a")
        await trio.testing.wait_all_tasks_blocked()
        assert got == ["a"]
        nursery.cancel_scope.cancel()


async def test_a_delayed_key_is_taken_exactly_at_its_time(autojump_clock: trio.testing.MockClock) -> None:
    queue = WorkKeys()
    start = trio.current_time()
    queue.add_later("slow", 5)
    queue.add_later("fast", 2)
    assert await queue.take() == "fast"
    assert trio.current_time() - start == 2
    assert await queue.take() == "slow"
    assert trio.current_time() - start == 5


async def test_of_several_delays_the_earliest_counts(autojump_clock: trio.testing.MockClock) -> None:
    queue = WorkKeys()
    for delay_s in (5, 3, 9):
        queue.add_later("a", delay_s)
    assert await queue.take() == "a"
    assert trio.current_time() == 3
    queue.done("a")
    with trio.move_on_after(100) as waited:
        await queue.take()
    assert waited.cancelled_caught


async def test_an_earlier_delay_wakes_a_worker_that_waits_for_a_later_one(
    autojump_clock: trio.testing.MockClock,
) -> None:
    queue = WorkKeys()
    queue.add_later("a", 60)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(queue.take)
        await trio.testing.wait_all_tasks_blocked()
        queue.add_later("a", 1)
    assert trio.current_time() == 1


async def test_a_key_taken_now_cancels_its_delay(autojump_clock: trio.testing.MockClock) -> None:
    queue = WorkKeys()
    queue.add_later("a", 5)
    queue.add("a")
    queue.add_later("a", 7)
    assert await queue.take() == "a"
    queue.add("a")
    queue.add_later("a", 7)
    queue.done("a")
    assert await queue.take() == "a"
    queue.done("a")
    with trio.move_on_after(100) as waited:
        await queue.take()
    assert waited.cancelled_caught


async def test_pauses_double_until_success(autojump_clock: trio.testing.MockClock) -> None:
    queue = WorkKeys()
    pauses = [queue.failed("a") for _ in range(3)]
    assert pauses == [FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S]
    assert [queue.failed("a") for _ in range(50)][-1] == LAST_PAUSE_S
    assert queue.statistics() == {"due": 0, "waiting": 1, "failing": 1}
    assert await queue.take() == "a"
    assert trio.current_time() == FIRST_PAUSE_S
    queue.succeeded("a")
    assert queue.failed("a") == FIRST_PAUSE_S


async def test_outdated_times_do_not_accumulate(autojump_clock: trio.testing.MockClock) -> None:
    queue = WorkQueue[int]()
    for number in range(1000):
        queue.add_later(number % 3, 1000 - number)
        if number % 5 == 0:
            queue.add(number % 3)
            queue.done(await queue.take())
    assert len(queue._times) < 100
    assert queue.statistics()["waiting"] <= 3


def at(now: int) -> trio.testing.MockClock:
    """Return a clock at the time ``now``."""
    clock = trio.testing.MockClock()
    clock.jump(now)
    return clock


class Queue(RuleBasedStateMachine):
    """A model of the queue. A key has a time from which a worker may take it. Two workers never have the same key."""

    held = Bundle("held")

    @initialize()
    def begin(self) -> None:
        self.queue = WorkKeys()
        self.now = 0
        self.due: dict[str, int] = {}
        self.hands: set[str] = set()

    @rule(key=KEYS)
    def add(self, key: str) -> None:
        self.queue.add(key)
        self.due[key] = min(self.due.get(key, self.now), self.now)

    @rule(key=KEYS, delay=st.integers(1, 5))
    def add_later(self, key: str, delay: int) -> None:
        async def add_later() -> None:
            self.queue.add_later(key, delay)

        trio.run(add_later, clock=at(self.now))
        self.due[key] = min(self.due.get(key, self.now + delay), self.now + delay)

    @rule(steps=st.integers(1, 3))
    def wait(self, steps: int) -> None:
        self.now += steps

    @rule(target=held)
    def take(self) -> object:
        key = trio.run(taken, self.queue, clock=at(self.now))
        if key is None:
            assert all(due > self.now for owed, due in self.due.items() if owed not in self.hands)
            return multiple()
        assert self.due.pop(key) <= self.now
        assert key not in self.hands
        self.hands.add(key)
        return key

    @rule(key=consumes(held))
    def done(self, key: str) -> None:
        self.queue.done(key)
        self.hands.discard(key)

    @invariant()
    def nothing_is_lost(self) -> None:
        if hasattr(self, "queue"):
            counts = self.queue.statistics()
            assert counts["due"] + counts["waiting"] == len(self.due)


TestQueue = Queue.TestCase
TestQueue.settings = settings(max_examples=scaled(1000, 60), stateful_step_count=30, deadline=None)
