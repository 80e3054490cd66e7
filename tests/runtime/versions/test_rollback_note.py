"""The note about a rollback in `status.rollback`, with the desired version and the running version."""

import pytest

from wharfinger.formats.json.value import JsonValue
from wharfinger.runtime.versions.rollback_note import (
    FAILED,
    NO_WAY_BACK,
    RollbackNote,
    read_rollback_note,
    rollback_object,
)

BACK = RollbackNote(3, "1.0.0", "2.0.0", FAILED, "HookFailed: no")
STUCK = RollbackNote(0, "", "2.0.0", NO_WAY_BACK, "no revision")


@pytest.mark.parametrize("note", [BACK, STUCK])
def test_a_note_survives_a_round_trip(note: RollbackNote) -> None:
    assert read_rollback_note(rollback_object(note)) == note


def test_a_note_is_described_in_one_line() -> None:
    assert BACK.is_back
    assert BACK.line == "rolled back from 2.0.0 to revision 3 (1.0.0): HookFailed: no"
    same = RollbackNote(1, "2.0.0", "2.0.0", FAILED, "a request")
    assert same.line == "rolled back to revision 1 (2.0.0) and its settings: a request"
    assert not STUCK.is_back
    assert STUCK.line == "the package cannot return from 2.0.0 to a former revision: no revision"


@pytest.mark.parametrize("written", [None, "text", {}, {"revision": "3"}, {"revision": True}])
def test_an_invalid_note_is_ignored(written: JsonValue) -> None:
    assert read_rollback_note(written) is None


def test_invalid_texts_of_a_note_are_ignored() -> None:
    assert read_rollback_note({"revision": 1, "version": 2}) == RollbackNote(1, "", "", "", "")
