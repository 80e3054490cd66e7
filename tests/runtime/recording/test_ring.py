"""Rings, which hold the last steps of each package in memory. Their length is limited, and each has the state before its first
step.
"""

from tests.runtime.support.nodes import node
from tests.runtime.support.recorded import NAMES, Story
from wharfinger.runtime.recording.canonical import unmasked
from wharfinger.runtime.recording.history import part_of, plain
from wharfinger.runtime.recording.machines import JOURNAL, LIFECYCLE, Machine
from wharfinger.runtime.recording.past import Past
from wharfinger.runtime.recording.record import EventRecord
from wharfinger.runtime.recording.replay import expanded
from wharfinger.runtime.recording.ring import LEAST_OF_ONE, MOST_GONE, MOST_OF_ONE, MOST_STEPS, Part, Rings, Step
from wharfinger.runtime.scheduler.events import Completed, IntentSet, NodeAdded, NodeRemoved
from wharfinger.runtime.scheduler.state import Active, Entry


def step(name: str, machine: Machine = LIFECYCLE) -> Step:
    return Step(1, 0.0, machine, name, name, {}, None, {}, ())


def test_the_base_state_is_the_state_after_the_dropped_steps() -> None:
    story, tried = Story(11).tell(1_200), 0
    for name in story.recorder.rings.names():
        ring = story.recorder.rings.get(name)
        assert ring is not None
        if not ring.dropped:
            continue
        assert MOST_OF_ONE // 2 <= len(ring) <= MOST_OF_ONE
        text = story.recorder.masking(name)
        past, whole = ring.base(text), Past()
        for kept in ring.records(text):
            past.fold(kept)
        for record in expanded(story.log.read()):
            part = part_of(record, name)
            if part is not None:
                whole.fold(part)
        assert (past.lifecycle, past.entry, past.node, past.lanes, past.status) == (
            whole.lifecycle, whole.entry, whole.node, whole.lanes, whole.status,
        )  # fmt: skip
        assert {name: tasks for name, tasks in past.tasks.items() if tasks} == {
            name: tasks for name, tasks in whole.tasks.items() if tasks
        }
        assert past.steps == whole.steps
        tried += 1
    assert tried


def test_the_limit_follows_the_number_of_packages() -> None:
    rings = Rings(lambda _: unmasked)
    assert rings.limit == MOST_OF_ONE
    for number in range(MOST_STEPS // 50):
        rings.add(f"p{number}", step(f"p{number}"))
    assert rings.limit == 50
    assert LEAST_OF_ONE < 50


def test_deleted_packages_are_retained_until_others_follow() -> None:
    rings = Rings(lambda _: unmasked)
    dropped: list[str] = []
    for number in range(MOST_GONE + 3):
        rings.add(f"p{number}", step(f"p{number}"))
        dropped += rings.gone(f"p{number}")
    assert dropped == ["p0", "p1", "p2"]
    assert rings.get("p2") is None
    assert rings.get("p3") is not None
    rings.add("p3", Part(2, 0.0, IntentSet("p3", None), "p3", None, None, 0, ()))
    assert rings.names() == (), "the scheduler may mention it once more"
    rings.add("p3", step("p3", JOURNAL))
    assert rings.names() == (), "its journal is forgotten last"
    rings.add("p3", step("p3"))
    assert rings.names() == ("p3",)
    assert rings.count() == MOST_GONE + 3


def test_the_last_decision_is_retained_after_its_step_is_dropped() -> None:
    rings = Rings(lambda _: unmasked)
    offered, active = Entry(node("shop.web")), Entry(node("shop.web"), Active())
    rings.add("shop.web", Part(1, 0.0, NodeAdded(offered.node), "shop.web", None, offered, 0, ()))
    rings.add("shop.web", Part(2, 0.0, Completed("shop.web", 1), "shop.web", None, active, 0, ()))
    for _ in range(3 * MOST_OF_ONE):
        rings.add("shop.web", step("shop.web"))
    ring = rings.get("shop.web")
    assert ring is not None
    assert ring.dropped
    assert {name: kept.number for name, kept in ring.lasts.items()} == {"lifecycle": 1, "scheduler": 2, "node": 1}
    rings.add("shop.web", Part(3, 0.0, NodeRemoved("shop.web"), "shop.web", None, None, 0, ()))
    assert {name: kept.number for name, kept in ring.lasts.items()} == {"lifecycle": 1, "scheduler": 3}


def test_records_of_a_ring_equal_those_of_the_log() -> None:
    story = Story(5).tell(100)
    for name in NAMES:
        ring = story.recorder.rings.get(name)
        assert ring is not None
        kept = [each for each in ring.records(story.recorder.masking(name)) if isinstance(each, EventRecord)]
        parts = [part for record in story.log.read() if (part := part_of(record, name)) is not None]
        written = [each for each in parts if isinstance(each, EventRecord)]
        assert [(each.number, each.machine, each.event) for each in kept if each.machine == "queue"] == [
            (each.number, each.machine, each.event) for each in map(plain, written) if each.machine == "queue"
        ]
        assert {each.number for each in kept} >= {each.number for each in written}
