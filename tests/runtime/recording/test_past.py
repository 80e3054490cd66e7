"""The state of one package, computed from its records. It equals the state that the state machines have."""

from tests.runtime.support.recorded import NAMES, Story
from wharfinger.runtime.recording.canonical import as_bytes, normal, unmasked
from wharfinger.runtime.recording.history import part_of
from wharfinger.runtime.recording.machines import SCHEDULER, entry_form
from wharfinger.runtime.recording.past import Past
from wharfinger.runtime.recording.replay import expanded


def test_all_records_together_give_the_current_state() -> None:
    for seed in range(6):
        story = Story(seed).tell(200)
        for name in NAMES:
            past = Past()
            for record in expanded(story.log.read()):
                part = part_of(record, name)
                if part is not None:
                    past.fold(part)
            node = story.scheduler.node(name)
            assert (past.node is None) is (node is None)
            if node is not None:
                assert past.node == node
                graph = story.scheduler._graph
                order = graph.topology.effective[name]
                entry = normal(entry_form(SCHEDULER.codec, graph.entries[name], order, unmasked))
                assert as_bytes(past.entry) == as_bytes(entry) or "***" in as_bytes(past.entry).decode()
            lane = story.queues.get(name)
            lanes = lane.state.lanes if lane is not None else {}
            assert set(past.lanes) == set(lanes)
            for each, found in lanes.items():
                waiting = past.tasks.get(each, [])
                assert isinstance(waiting, list)
                assert [[entry.task, entry.name] for entry in found.waiting] == waiting
            assert set(past.steps) == {
                entry.operation.value for entry in story.journal.entries() if entry.package == name
            }
