"""The writer of records: steps in one batch share the record of their changes, and an invalid text does not lose the batch."""

from dataclasses import replace

import msgspec
import pytest

from tests.runtime.support.nodes import node
from tests.runtime.support.recorded import T0, MemoryLog
from wharfinger.queue import machine as queue_machine
from wharfinger.queue.events import Enqueued
from wharfinger.queue.state import QueueState, Rules
from wharfinger.runtime.lifecycle.desired_state import DesiredState
from wharfinger.runtime.lifecycle.journal import Journal
from wharfinger.runtime.lifecycle.journal_machine import Operation
from wharfinger.runtime.lifecycle.store import LifecycleStore
from wharfinger.runtime.recording import record_writer
from wharfinger.runtime.recording.machines import QUEUE, SCHEDULER
from wharfinger.runtime.recording.record import LATER, EventRecord, StateRecord, Why
from wharfinger.runtime.recording.recorder import Recorder
from wharfinger.runtime.recording.replay import Replay, replayed
from wharfinger.runtime.scheduler.events import NodeAdded
from wharfinger.runtime.scheduler.scheduler import Scheduler

V1 = DesiredState("oci://r/x", "web", "1.0.0", "sha256:a")


def test_the_last_step_of_a_batch_has_the_changes_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_writer, "MOST_TOGETHER", 2)
    log = MemoryLog()
    store = LifecycleStore(observe=Recorder(lambda _: (), log, T0.timestamp).lifecycle)
    store.reconcile("shop.web", V1)
    log.drain()  # this writes the steps in separate batches
    store.begin_update("shop.web")
    store.complete_update("shop.web")
    states = [each.state for each in log.read() if isinstance(each, EventRecord)]
    assert states[0] == LATER
    assert isinstance(states[1], list)
    assert states[1][0] == [1, None, None, None, None, None]
    assert states[2] == LATER
    store.complete_update("shop.web")
    states = [each.state for each in log.read() if isinstance(each, EventRecord)]
    assert states[3] == [[None] * 6, False, False, None]


def test_open_changes_are_written_as_whole_states_at_the_end() -> None:
    log = MemoryLog()
    recorder = Recorder(lambda _: (), log, T0.timestamp)
    store = LifecycleStore(observe=recorder.lifecycle)
    store.reconcile("shop.web", V1)
    store.begin_update("shop.web")
    recorder.end()
    records = log.read()
    whole = records[-1]
    assert isinstance(whole, StateRecord)
    assert whole.why is Why.CONTINUES
    assert list(replayed(records, Replay())) == []
    assert isinstance(whole.state, list)
    records[-1] = replace(whole, state=["Package", whole.state[1], 2, *whole.state[3:]])
    (difference,) = replayed(records, Replay())
    assert difference.what.startswith("the whole state")
    count = len(records)
    recorder.end()
    assert len(log.read()) == count, "no change is open any more"


def test_the_end_of_a_machine_has_its_changes() -> None:
    log = MemoryLog()
    journal = Journal(None)
    journal.observe = Recorder(lambda _: (), log, T0.timestamp).journal
    journal.begin("shop.web", Operation.UPDATE, "sha256:1")
    journal.forget("shop.web")
    journal.begin("shop.web", Operation.UPDATE, "sha256:2")
    records = log.read()
    assert [type(each) for each in records] == [StateRecord, EventRecord, EventRecord, StateRecord, EventRecord]
    assert [each.state for each in records if isinstance(each, EventRecord)][:2] == [LATER, {}], (
        "both together changed nothing"
    )


def test_a_journal_continues_after_its_last_operation() -> None:
    log = MemoryLog()
    journal = Journal(None)
    journal.observe = Recorder(lambda _: (), log, T0.timestamp).journal
    for fingerprint in ("sha256:1", "sha256:2"):
        journal.begin("shop.web", Operation.UPDATE, fingerprint)
        journal.finish("shop.web", Operation.UPDATE)
        log.drain()
    records = log.read()
    assert [type(each) for each in records] == [StateRecord, *[EventRecord] * 4], "the empty state is not written again"
    assert list(replayed(records, Replay())) == []


def test_deleted_packages_are_forgotten() -> None:
    log = MemoryLog()
    recorder = Recorder(lambda _: (), log, T0.timestamp)
    store, scheduler, journal = LifecycleStore(observe=recorder.lifecycle), Scheduler(recorder.scheduler), Journal(None)
    journal.observe = recorder.journal
    for number in range(3):
        name = f"shop.p{number}"
        store.reconcile(name, V1)
        scheduler.apply(NodeAdded(node(name)), T0)
        journal.begin(name, Operation.REMOVAL, "sha256:1")
        journal.finish(name, Operation.REMOVAL)
        store.begin_removal(name)
        store.complete_removal(name)
    log.drain()
    writer = recorder._writer
    assert writer is not None
    assert (writer._known, writer._nodes) == ({}, {})


def test_each_queue_begins_with_its_own_rules() -> None:
    log = MemoryLog()
    recorder = Recorder(lambda _: (), log, T0.timestamp)
    begun = [QueueState(rules) for rules in (Rules(), Rules(), Rules(max_tasks=5), Rules())]
    begun.append(QueueState(closing="stopped with hunter22"))
    for number, state in enumerate(begun):
        event = Enqueued(1, "Load", -1, 0.0)
        after, effects = queue_machine.step(state, event)
        recorder.queue("shop.web", number, state, event, after, effects)
    wholes = [each.state for each in log.read() if isinstance(each, StateRecord)]
    assert [QUEUE.codec.decode(whole) for whole in wholes] == begun


def test_a_node_is_written_as_offered() -> None:
    log = MemoryLog()
    scheduler = Scheduler(Recorder(lambda _: (), log, T0.timestamp).scheduler)
    for version in ("1.0.0", "1.0.0", "2.0.0"):
        scheduler.apply(NodeAdded(node("shop.web", version=version)), T0)
    events = [SCHEDULER.codec.decode(each.event) for each in log.read() if isinstance(each, EventRecord)]
    assert events == [NodeAdded(node("shop.web", version=version)) for version in ("1.0.0", "1.0.0", "2.0.0")]


def test_effects_are_written_by_their_kinds() -> None:
    log = MemoryLog()
    store = LifecycleStore(observe=Recorder(lambda _: (), log, T0.timestamp).lifecycle)
    store.reconcile("shop.web", V1)
    store.begin_update("shop.web")
    store.begin_update("shop.web")
    effects = [each.effects for each in log.read() if isinstance(each, EventRecord)]
    assert effects[-1] == ["CancelScope", "BeginScope"]


def test_a_text_that_cannot_be_encoded_loses_only_its_record() -> None:
    log = MemoryLog()
    recorder = Recorder(lambda _: (), log, T0.timestamp)
    journal = Journal(None)
    journal.observe = recorder.journal
    for number, result in enumerate(("fine", "half \ud800", "fine")):
        journal.begin(f"p{number}", Operation.UPDATE, "sha256:1")
        journal.start(f"p{number}", Operation.UPDATE, "Download")
        journal.complete(f"p{number}", Operation.UPDATE, "Download", result)
    assert recorder.failures == 1
    assert b"\\ud800" not in msgspec.json.encode([each.decode() for each in log.records])
    assert len([each for each in log.read() if isinstance(each, EventRecord)]) == 8
