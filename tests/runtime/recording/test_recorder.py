"""The recorder at the shells of the machines: nothing secret, nothing lost, and no trouble for the machine that is observed."""

import msgspec
import pytest

from tests.runtime.support.recorded import SECRETS, T0, MemoryLog, Story
from wharfinger.formats.redaction.redaction_text import redact_text
from wharfinger.runtime.lifecycle.desired_state import DesiredState
from wharfinger.runtime.lifecycle.store import LifecycleStore
from wharfinger.runtime.recording.record import EventRecord, StateRecord, Why
from wharfinger.runtime.recording.recorder import Recorder

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


def test_a_package_that_is_gone_is_recorded_anew() -> None:
    log = MemoryLog()
    recorder = Recorder(lambda _: (), log, T0.timestamp)
    store = LifecycleStore(observe=recorder.lifecycle)
    store.reconcile("shop.web", V1)
    store.begin_removal("shop.web")
    store.complete_removal("shop.web")
    store.complete_run("shop.web")  # refused: nothing is recorded
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
    assert caplog.text.count("the recorder failed") == 1


def test_without_a_log_only_the_last_records_are_kept() -> None:
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
