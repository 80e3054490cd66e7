"""The words with which the history of a package describes recorded events and states."""

import pytest

from tests.runtime.support.recorded import T0, Story
from wharfinger.formats.json.value import JsonValue
from wharfinger.runtime.recording.canonical import normal, unmasked
from wharfinger.runtime.recording.history import history_of
from wharfinger.runtime.recording.past import Past
from wharfinger.runtime.recording.record import EventRecord
from wharfinger.runtime.recording.status_form import status_changes
from wharfinger.runtime.recording.wording import Words, state_of, words_of, words_of_status
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.versions.rollback_note import RollbackNote


def words(machine: str, event: JsonValue, effects: JsonValue = None, past: Past | None = None) -> Words:
    record = EventRecord(1, 0.0, machine, "shop.web", event, None, None, effects or [])
    return words_of(record, past or Past())


@pytest.mark.parametrize(
    ("machine", "event", "effects", "expected"),
    [
        ("lifecycle", ["Begin", ["=Operation", "UPDATE"], 4], [["CancelScope", 3, "update superseded"]],
         Words("update begins", "cancels operation 3: update superseded")),
        ("lifecycle", ["Begin", ["=Operation", "VOTE"], 4], [["Refused", ["=Refusal", "NOT_REMOVING"]]],
         Words("vote begins", "refused: not removing")),
        ("lifecycle", ["BeginReconciliation", 4, "SettingsChanged"], [["BeginScope", 4, None]],
         Words("reconciliation begins as operation 4", "SettingsChanged")),
        ("scheduler", ["Failed", "shop.web", 3], [], Words("run 3 failed")),
        ("scheduler", ["IntentSet", "shop.web", False], [["Disable", "shop.web", "DynamicallyDisabled", "m", True]],
         Words("the user wants it off", "uninstall: DynamicallyDisabled")),
        ("scheduler", ["IntentSet", "shop.web", None], [], Words("the user does not request that it is on or off")),
        ("scheduler", ["mention", "Completed", "shop.db"], [["Schedule", "shop.web", 3, "Scheduled"]],
         Words("shop.db: completed", "run 3 is ordered: Scheduled")),
        ("scheduler", ["ScriptVoted", "shop.web", False, "no"], [["Decided", "shop.web", False, "DisabledByScript", "no"]],
         Words("its enabled script voted no", "off: DisabledByScript: no")),
        ("queue", ["Failed", 3, "timed out", True, 1.0, 0.5], [], Words("run 3 failed permanently", "timed out")),
        ("queue", ["ScopeCancelled", 1, "removal started"], [["Dropped", 1, "removal started"]],
         Words("an operation is cancelled", "removal started")),
        ("queue", ["Draining", "the daemon is stopping", False], [], Words("the queue drains", "the daemon is stopping", False)),
        ("queue", ["Enqueued", 1, "Load", 1, 0.0, "main"], [], Words("Load is queued", decides=False)),
        ("package", ["RunOrdered", 3, "Loaded"], [["BeginReconciliation", 3, "Loaded"]],
         Words("run 3 is ordered", "Loaded; asks for reconciliation")),
        ("package", ["DisableOrdered", "Unwanted", True], [], Words("has to be uninstalled", "Unwanted", decides=False)),
        ("package", ["StageFailed", ["=Stage", "APPLIED"], ["Failure", ["=Reason", "APPLY_FAILED"], "no", True, None]],
         [["GiveWay", 3, True]], Words("ManifestsApplied failed", "ApplyFailed: no")),
        ("package", ["NodeRefused", ["Failure", ["=Reason", "DEPENDENCY_CYCLE"], "a cycle", True, None], True, None], [],
         Words("its definition was refused", "DependencyCycle: a cycle", decides=False)),
        ("package", ["EventHookDone", "a.sh", "main", "exit 1"], [], Words("a.sh: event hook done", "exit 1")),
        ("package", ["ValuesChanged", "a.sh"], [["Tell", ["SchedulerRescheduled", "shop.web", "HookValuesChanged"]]],
         Words("a.sh: values changed", "asks to run again: HookValuesChanged")),
        ("package", ["OthersTurned", ["()"], True], [["RepeatVote", ["()"]]], Words("others turned", "asks for another vote")),
        ("journal", ["Complete", ["=Operation", "UPDATE"], "Load", ""], [], Words("complete update Load ", decides=False)),
    ],
)  # fmt: skip
def test_events_are_described_in_words(machine: str, event: JsonValue, effects: JsonValue, expected: Words) -> None:
    assert words(machine, event, effects) == expected


@pytest.mark.parametrize(
    ("revision", "said"), [(3, "returns to revision 3 (1.0.0)"), (0, "cannot return to a former revision")]
)
def test_a_rollback_is_described_in_words(revision: int, said: str) -> None:
    note = RollbackNote(revision, "1.0.0", "2.0.0", "UpgradeFailed", "broken")
    before = statuses.fresh(1, T0)
    changed = status_changes(before, statuses.rolled_back(before, note, T0), unmasked)
    assert words_of_status({"status": normal(changed)}) == Words(said, "UpgradeFailed: 2.0.0: broken")


def test_a_run_is_described_by_the_name_of_its_task() -> None:
    past = Past(lanes={"main": ["Running", "Download", 1, [3, False], [2, 0, ""], 1, [2]]})
    assert words("queue", ["Finished", 3], past=past).event == "Download succeeded"
    assert state_of("queue", past) == "main: Download runs (attempt 2), 1 wait"


def test_every_event_of_many_stories_has_words() -> None:
    for seed in range(8):
        story = Story(seed).tell(150)
        for name in story.recorder.rings.names():
            history = history_of(story.recorder.rings, name)
            assert history is not None
            assert all(event.event and event.after for event in history.events)
