"""The controller's inbox: coalescing, never two workers on one name, nothing lost."""

import trio
import trio.testing
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, multiple, rule

from wharfinger.runtime.work_keys import WorkKeys

NAMES = st.sampled_from(["a", "b", "c"])


async def taken(keys: WorkKeys) -> str | None:
    """What a worker would get without waiting."""
    with trio.move_on_after(0):
        return await keys.take()
    return None


async def test_names_come_once_and_in_order() -> None:
    keys = WorkKeys()
    for name in ("b", "a", "b"):
        keys.add(name)
    assert [await keys.take(), await keys.take()] == ["b", "a"]
    assert await taken(keys) is None


async def test_a_name_in_hand_comes_again_only_after_it_is_done() -> None:
    keys = WorkKeys()
    keys.add("a")
    assert await keys.take() == "a"
    keys.add("a")
    assert await taken(keys) is None
    keys.done("a")
    assert await keys.take() == "a"
    keys.done("a")
    assert await taken(keys) is None


async def test_a_waiting_worker_is_woken(autojump_clock: trio.testing.MockClock) -> None:
    keys = WorkKeys()
    got: list[str] = []

    async def worker() -> None:
        got.append(await keys.take())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker)
        nursery.start_soon(worker)
        await trio.testing.wait_all_tasks_blocked()
        keys.add("a")
        await trio.testing.wait_all_tasks_blocked()
        assert got == ["a"]
        nursery.cancel_scope.cancel()


async def test_later_comes_at_its_time_exactly(autojump_clock: trio.testing.MockClock) -> None:
    keys = WorkKeys()
    start = trio.current_time()
    keys.add_later("slow", 5)
    keys.add_later("fast", 2)
    assert await keys.take() == "fast"
    assert trio.current_time() - start == 2
    assert await keys.take() == "slow"
    assert trio.current_time() - start == 5


async def test_a_look_now_makes_the_later_one_needless(autojump_clock: trio.testing.MockClock) -> None:
    keys = WorkKeys()
    keys.add_later("a", 5)
    keys.add("a")
    assert await keys.take() == "a"
    keys.done("a")
    with trio.move_on_after(100) as waited:
        await keys.take()
    assert waited.cancelled_caught


class Inbox(RuleBasedStateMachine):
    """Against a model: a name is owed whenever it was added after it was last handed out."""

    held = Bundle("held")

    @initialize()
    def begin(self) -> None:
        self.keys = WorkKeys()
        self.owed: set[str] = set()
        self.hands: set[str] = set()

    @rule(name=NAMES)
    def add(self, name: str) -> None:
        self.keys.add(name)
        self.owed.add(name)

    @rule(target=held)
    def take(self) -> object:
        name = trio.run(taken, self.keys)
        if name is None:
            assert self.owed <= self.hands
            return multiple()
        assert name in self.owed
        assert name not in self.hands
        self.owed.discard(name)
        self.hands.add(name)
        return name

    @rule(name=consumes(held))
    def done(self, name: str) -> None:
        self.keys.done(name)
        self.hands.discard(name)


TestInbox = Inbox.TestCase
