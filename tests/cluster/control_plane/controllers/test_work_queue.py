"""The queue of a controller: each object once, delays, growing pauses."""

from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from wharfinger.cluster.control_plane.controllers.work_queue import FIRST_BACKOFF_S, LAST_BACKOFF_S, WorkQueue
from wharfinger.cluster.resource import ObjectKey, ResourceType

PODS: Final = ResourceType("", "v1", "Pod", "pods", namespaced=True)
A, B = (ObjectKey(PODS, "n", name) for name in "ab")


def test_first_come_first_served_and_once() -> None:
    queue = WorkQueue()
    for key in (A, B, A):
        queue.add(key)
    assert [queue.pop(0), queue.pop(0), queue.pop(0)] == [A, B, None]


def test_delays() -> None:
    queue = WorkQueue()
    queue.add_at(A, 5)
    queue.add_at(A, 3)
    queue.add_at(A, 9)
    assert (queue.pop(2), queue.next_time()) == (None, 3)
    assert (queue.pop(3), queue.pop(10), queue.next_time()) == (A, None, None)


def test_what_is_due_needs_no_later_time() -> None:
    queue = WorkQueue()
    queue.add_at(A, 5)
    queue.add(A)
    queue.add_at(A, 7)
    assert (queue.pop(0), queue.pop(9), queue.next_time()) == (A, None, None)


def test_pauses_double_until_success() -> None:
    queue = WorkQueue()
    pauses = [queue.failed(A, 0) for _ in range(3)]
    assert pauses == [FIRST_BACKOFF_S, 2 * FIRST_BACKOFF_S, 4 * FIRST_BACKOFF_S]
    assert [queue.failed(A, 0) for _ in range(50)][-1] == LAST_BACKOFF_S
    assert queue.statistics() == {"due": 0, "waiting": 1, "failing": 1}
    queue.succeeded(A)
    assert queue.failed(A, 0) == FIRST_BACKOFF_S


class QueueMachine(RuleBasedStateMachine):
    """Against a plain model: the earliest time each key is due."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = WorkQueue()
        self.now = 0
        self.due: dict[ObjectKey, int] = {}

    @rule(key=st.sampled_from([A, B]))
    def add(self, key: ObjectKey) -> None:
        self.queue.add(key)
        self.due[key] = min(self.due.get(key, self.now), self.now)

    @rule(key=st.sampled_from([A, B]), delay=st.integers(0, 5))
    def add_at(self, key: ObjectKey, delay: int) -> None:
        self.queue.add_at(key, self.now + delay)
        self.due[key] = min(self.due.get(key, self.now + delay), self.now + delay)

    @rule(steps=st.integers(1, 3))
    def wait(self, steps: int) -> None:
        self.now += steps

    @rule()
    def pop(self) -> None:
        key = self.queue.pop(self.now)
        if key is None:
            assert all(time > self.now for time in self.due.values())
        else:
            assert self.due.pop(key) <= self.now

    @invariant()
    def nothing_is_lost(self) -> None:
        counts = self.queue.statistics()
        assert counts["due"] + counts["waiting"] == len(self.due)


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
