"""The recorder, which observes state machines. It writes no secrets, loses no records, and does not affect the machines."""

from collections.abc import Callable

import msgspec
import pytest

from tests.runtime.package.test_machine import IDLE, loaded
from tests.runtime.support.nodes import node
from tests.runtime.support.recorded import SECRETS, T0, MemoryLog, Story
from wharfinger.formats.redaction.redaction_text import redact_text
from wharfinger.runtime.lifecycle.desired_state import DesiredState
from wharfinger.runtime.lifecycle.store import LifecycleStore
from wharfinger.runtime.package.events import Tracked
from wharfinger.runtime.package.machine import step
from wharfinger.runtime.recording import masking
from wharfinger.runtime.recording.record import EventRecord, Lines, StateRecord, Why
from wharfinger.runtime.recording.recorder import Recorder
from wharfinger.runtime.scheduler.events import FactsChanged, NodeAdded, Resumed, ScriptVoted
from wharfinger.runtime.scheduler.rules import Facts
from wharfinger.runtime.scheduler.scheduler import Scheduler

V1 = DesiredState("oci://r/x", "web", "1.0.0", "sha256:a")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(6))
def test_no_planted_secret_is_in_a_recording_or_in_memory(seed: int) -> None:
    story = Story(seed, secrets=SECRETS).tell(150)
    rings = [story.recorder.rings.get(name) for name in story.recorder.rings.names()]
    kept = [
        str(record) for ring in rings if ring is not None for record in ring.records(story.recorder.masking(ring.name))
    ]
    data = story.log.as_file()
    assert b"***" in data, "texts with secrets were recorded"
    for everything in (data, msgspec.json.encode(kept)):
        for secret in (*SECRETS, "planted-by-form"):
            for form in (secret, msgspec.json.encode(secret).decode()[1:-1]):
                assert form.encode() not in everything
        assert redact_text(everything.decode("utf-8", "replace"), SECRETS).count("hunter2") == 0


def test_a_machine_is_recorded_from_its_whole_state_in_each_file() -> None:
    log = MemoryLog()
    store = LifecycleStore(observe=Recorder(lambda _: (), log, T0.timestamp).lifecycle)
    store.reconcile("shop.web", V1)
    store.begin_update("shop.web")
    log.drain()
    log.file += 1
    store.complete_update("shop.web")
    whys = [each.why if isinstance(each, StateRecord) else None for each in log.read()]
    assert whys == [Why.BEGINS, None, None, Why.CONTINUES, None]


def test_a_recreated_package_is_recorded_from_its_whole_state() -> None:
    log = MemoryLog()
    recorder = Recorder(lambda _: (), log, T0.timestamp)
    store = LifecycleStore(observe=recorder.lifecycle)
    store.reconcile("shop.web", V1)
    store.begin_removal("shop.web")
    store.complete_removal("shop.web")
    store.complete_run("shop.web")  # this event is refused, so it is not recorded
    count = len(log.records)
    assert recorder.rings.names() == ()
    assert recorder.rings.get("shop.web") is not None
    store.reconcile("shop.web", V1)
    (state, event) = log.read()[count:]
    assert isinstance(state, StateRecord)
    assert (state.why, state.state) == (Why.BEGINS, None)
    assert isinstance(event, EventRecord)


def test_an_error_of_the_recorder_does_not_reach_the_machine(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(MemoryLog):
        def append(self, *records: object) -> None:
            raise OSError("the disk is on fire")

    recorder = Recorder(lambda _: (), Broken(), T0.timestamp)
    store = LifecycleStore(observe=recorder.lifecycle)
    store.reconcile("shop.web", V1)
    assert store.begin_update("shop.web") is not None
    assert recorder.failures == 2
    assert caplog.text.count("a bug in the recorder") == 1


def test_without_a_log_only_the_last_records_are_retained() -> None:
    recorder = Recorder(lambda _: ())
    store = LifecycleStore(observe=recorder.lifecycle)
    store.reconcile("shop.web", V1)
    assert recorder.records == 1
    ring = recorder.rings.get("shop.web")
    assert ring is not None
    (record,) = ring.records(recorder.masking("shop.web"))
    assert isinstance(record, EventRecord)
    assert isinstance(record.event, list)
    assert record.event[0] == "Desired"


def test_an_event_with_more_texts_than_are_cached_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "MOST_TEXTS", 10)
    asked = 0

    def secrets_of(_package: str) -> tuple[str, ...]:
        nonlocal asked
        asked += 1
        assert asked < 1_000, "the same texts are masked again and again"
        return ()

    log = MemoryLog()
    recorder = Recorder(secrets_of, log, T0.timestamp)
    known = loaded()
    for part in ("one", "two"):
        event = Tracked((), tuple(f"ConfigMap {part}-{number}" for number in range(50)))
        before, (known, effects) = known, step(known, event, IDLE)
        recorder.package(before, event, IDLE, known, effects)
        log.drain()
    assert recorder.failures == 0
    whys = [each.why if isinstance(each, StateRecord) else None for each in log.read()]
    assert whys == [Why.BEGINS, None, Why.RENEWED, None]
    assert len(recorder.masking(known.id.name).texts()) < 100, "the texts of the first event are forgotten"


def test_a_state_written_late_has_no_secret() -> None:
    class LateLog(MemoryLog):
        def __init__(self) -> None:
            super().__init__()
            self.late: list[Lines | Callable[[], bytes]] = []

        def append(self, *records: Lines | Callable[[], bytes]) -> None:
            self.late += records

    secrets, log = ["hunter2-planted"], LateLog()
    recorder = Recorder(lambda _: tuple(secrets), log, T0.timestamp)
    scheduler = Scheduler(recorder.scheduler)
    scheduler.apply(FactsChanged(Facts("1.31.0", "1.70.0")), T0)
    scheduler.apply(Resumed(), T0)
    scheduler.apply(NodeAdded(node("shop.web", script=True)), T0)
    scheduler.apply(ScriptVoted("shop.web", enabled=False, reason="denied for hunter2-planted"), T0)
    log.drain()
    log.late.clear()
    log.file += 1
    scheduler.apply(NodeAdded(node("shop.db")), T0)  # the whole state follows later, because another thread writes it
    log.drain()
    recorder.masking("shop.web")("of another")
    secrets.append("another")
    recorder.masking("shop.web")("a new text")
    assert recorder.masking("shop.web").renewed == 1
    MemoryLog.append(log, *log.late)
    written = b"".join(log.records)
    assert b"hunter2" not in written
    assert b"denied for ***" in written
