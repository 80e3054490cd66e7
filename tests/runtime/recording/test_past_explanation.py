"""Explanations of past states. At each moment of a story, the records in memory and a recording give the same explanation."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from tests.runtime.support.recorded_install import DB, T0, WEB, Install
from wharfinger.runtime.recording.canonical import unmasked
from wharfinger.runtime.recording.past_explanation import explain_at, explain_recorded
from wharfinger.runtime.recording.ring import Rings
from wharfinger.runtime.scheduler_details import ExplanationSnapshot


def explained(part: str, name: str = WEB) -> ExplanationSnapshot | None:
    story = Install()
    found = explain_at(story.recorder.rings, name, story.times[part])
    assert explain_recorded(story.log.read(), name, story.times[part]) == found
    return found


def chain(part: str, name: str = WEB) -> list[tuple[str, str, str]]:
    found = explained(part, name)
    assert found is not None
    return [(cause.subject, cause.state, cause.message) for cause in found.causes]


def test_each_moment_has_its_chain_of_causes() -> None:
    refused = "RegistryRefused: cannot log in with ***1; attempt 1, next at 12:00:15 UTC (in 15 s)"
    assert chain("refused") in ([(WEB, "fails", refused)], [(WEB, "fails", refused.replace("***1", "hunter2-planted"))])
    assert chain("waits") == [
        (WEB, f"needs {DB}", ""),
        (DB, "is not installed", "there is no resource of that name"),
    ]
    assert chain("db runs")[0] == (WEB, f"waits for {DB}", "")
    assert chain("broken") == [(WEB, "fails", "WorkloadFailed: Deployment prod/web crashes")]
    assert chain("removing") == [(WEB, "is being removed", "uninstalling")]


def test_a_ready_package_has_no_causes() -> None:
    found = explained("ready")
    assert found is not None
    assert found.ready


def test_before_the_first_and_after_the_last_event_there_is_no_explanation() -> None:
    story = Install()
    before = T0 - timedelta(seconds=1)
    assert explain_at(story.recorder.rings, WEB, before) is None
    assert explain_recorded(story.log.read(), WEB, before) is None
    assert explained("gone") is None
    assert explain_at(Rings(lambda _: unmasked), WEB, T0) is None


def test_a_package_whose_events_begin_later_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Install()
    ring = story.recorder.rings.get(DB)
    assert ring is not None
    later = (T0 + timedelta(hours=1)).timestamp()
    ring._newer.base = {key: replace(kept, time=later) for key, kept in ring.lasts.items()}
    found = explain_at(story.recorder.rings, WEB, story.times["db runs"])
    assert found is not None
    assert any(
        text.startswith(f"the recorded events of {DB} begin only at 2026-01-01T13:00:00Z") for text in found.also
    )
