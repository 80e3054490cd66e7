"""The note in a package's status about the choice of a version."""

from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.json.value import JsonValue
from wharfinger.runtime.versions.version_chooser import Choice, Why
from wharfinger.runtime.versions.version_note import VersionNote, moved_note, note_object, note_of, read_note
from wharfinger.runtime.versions.version_policy import read_version

RANGE = read_version({"spec": {"versionRange": "^1"}})[1]
WAITS = Choice("1.0.0", Why.AWAITS_APPROVAL, "1.1.0 is available", pending="1.1.0")
NEWEST = Choice("1.0.0", Why.NEWEST, "1.0.0 is the newest")


def test_only_available_versions_and_moved_tags_have_a_line() -> None:
    assert note_of(RANGE, WAITS, "").line == "1.1.0 is available"
    assert note_of(RANGE, NEWEST, "").line == ""
    assert note_of(RANGE, NEWEST, "the tag has moved").line == "1.0.0 is the newest; the tag has moved"
    assert moved_note("1.0.0", "the tag has moved").line == "the tag has moved"


def test_a_waiting_version_outranks_a_moved_tag() -> None:
    assert note_of(RANGE, WAITS, "moved").reason == "AwaitsApproval"
    assert note_of(RANGE, NEWEST, "moved").reason == "TagMoved"


TEXT = st.text(max_size=5)


@given(st.builds(VersionNote, TEXT, st.text(min_size=1, max_size=5), TEXT, TEXT, TEXT))
def test_a_note_survives_a_round_trip(note: VersionNote) -> None:
    assert read_note(note_object(note)) == note


@given(st.none() | st.integers() | st.dictionaries(st.sampled_from(("chosen", "reason")), st.integers() | st.just("")))
def test_an_invalid_note_is_ignored(written: JsonValue) -> None:
    assert read_note(written) is None
