"""The recorded state machines, and the compact forms of the changes that their steps make."""

from msgspec import structs

from tests.runtime.support.nodes import node
from tests.runtime.support.recorded import T0
from wharfinger.formats.json.value import JsonValue
from wharfinger.queue.events import Enqueued, Failed
from wharfinger.queue.machine import step
from wharfinger.queue.state import QueueState
from wharfinger.runtime.package.state import Package
from wharfinger.runtime.recording.canonical import as_bytes, unmasked
from wharfinger.runtime.recording.machines import MACHINES, MOST_WAITING, PACKAGE, QUEUE, SCHEDULER
from wharfinger.runtime.resources.identity import AppId
from wharfinger.runtime.scheduler.events import NodeAdded, Resumed
from wharfinger.runtime.scheduler.scheduler import Scheduler
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.progress import Progress
from wharfinger.runtime.versions.rollback_note import RollbackNote
from wharfinger.runtime.versions.version_note import VersionNote


def test_all_machines_are_registered_by_name() -> None:
    assert set(MACHINES) == {"lifecycle", "journal", "queue", "scheduler", "package"}
    assert all(machine.name == name for name, machine in MACHINES.items())


def test_the_choice_of_a_version_can_be_recorded() -> None:
    """The codec has to know each class that may occur in a status. Otherwise neither history nor replay works."""
    before = Package(AppId("shop", "web"), statuses.fresh(1, T0))
    note = VersionNote("range >=1", "1.0.0", "AwaitsApproval", "1.1.0 waits", pending="1.1.0")
    back = RollbackNote(2, "1.0.0", "1.1.0", "Requested", "1.1.0 is slow")
    status = structs.replace(before.status, update=note, rollback=back, progress=Progress(1, 1, ("a",)))
    changed = PACKAGE.changes(PACKAGE.codec, before, structs.replace(before, status=status), lambda _: unmasked)
    assert "1.1.0 waits" in str(changed)
    assert "1.1.0 is slow" in str(changed)


def test_only_changed_lanes_are_in_a_step_of_a_queue() -> None:
    one, _ = step(QueueState(), Enqueued(1, "Load", 1, 0.0))
    two, _ = step(one, Enqueued(2, "Vote", 1, 0.0, lane="vote"))
    changed = QUEUE.changes(QUEUE.codec, one, two, lambda _: unmasked)
    assert changed == [3, None, {"vote": ["Running", "Vote", 2, [2, False], [1, 0, ""], 0, []]}]
    three, _ = step(two, Failed(2, "no", permanent=True, at=1.0, draw=0.5))
    changed = QUEUE.changes(QUEUE.codec, two, three, lambda _: unmasked)
    assert changed == [3, None, {"vote": ["Parked", "Vote", 2, [], [1, 1, "no"], 0, []]}]


def test_a_long_lane_costs_no_more_than_a_short_one() -> None:
    before = state = QueueState()
    for number in range(1, MOST_WAITING + 3):
        before, (state, _) = state, step(state, Enqueued(number, "Load", 1, 0.0))
    changed = QUEUE.changes(QUEUE.codec, before, state, lambda _: unmasked)
    assert changed == [2, None, {"main": ["Running", "Load", 1, [1, False], [1, 0, ""], MOST_WAITING + 1, None]}]


def test_only_changed_nodes_are_in_a_step_of_the_scheduler() -> None:
    scheduler, seen = Scheduler(), list[JsonValue]()
    scheduler.observe = lambda before, _event, _at, after, _effects: seen.append(
        SCHEDULER.changes(SCHEDULER.codec, before, after, lambda _: unmasked)
    )
    for event in (Resumed(), NodeAdded(node("a")), NodeAdded(node("b", "a"))):
        scheduler.apply(event, T0)
    match seen[-1]:
        case [False, 1, 0, {"b": [999, ["idle", "Scheduled"], _, _, _, [["Package", "a"]], *_], **others}]:
            assert not others
        case other:
            raise AssertionError(other)
    assert as_bytes(seen[0]) == b"[false,0,0,{}]"
