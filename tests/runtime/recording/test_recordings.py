"""Recordings on disk: the order of files, and unreadable parts."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.runtime.support.recorded import Story
from wharfinger.formats.errors import FormatError
from wharfinger.runtime.recording.log_file import MAGIC, file_name, frame
from wharfinger.runtime.recording.record import FORMAT, EventRecord, HeadRecord, encoded
from wharfinger.runtime.recording.recordings import RecordingError, Unread, files_of, read_recording
from wharfinger.runtime.recording.replay import Replay, replayed


def test_a_folder_is_read_in_the_order_of_file_numbers(tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("not a recording")
    for number in (10, 2, 1):
        (tmp_path / file_name(number)).write_bytes(
            MAGIC + frame(encoded(HeadRecord(number, 1.0, FORMAT, "1", 1, first=True)))
        )
    assert [getattr(each, "number", None) for each in read_recording(tmp_path)] == [1, 2, 10]
    assert files_of(tmp_path / file_name(2)) == (tmp_path / file_name(2),)


def test_other_files_and_folders_are_errors_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(
        RecordingError, match="found none; give the folder that the daemon's option --flight-recorder names"
    ):
        files_of(tmp_path)
    with pytest.raises(RecordingError, match="missing: cannot be read: No such file"):
        files_of(tmp_path / "missing")
    file = tmp_path / file_name(1)
    file.write_bytes(MAGIC + frame(b"[]"))
    with pytest.raises(RecordingError, match="another version of wharfinger"):
        list(read_recording(tmp_path))
    file.write_bytes(MAGIC + frame(encoded(HeadRecord(0, 1.0, FORMAT + 1, "9.9.9", 1, first=True))))
    with pytest.raises(
        RecordingError, match=rf"found {FORMAT + 1}, of wharfinger 9\.9\.9; replay it with that version"
    ):
        list(read_recording(tmp_path))


def test_damage_is_reported_and_the_next_file_is_read(tmp_path: Path) -> None:
    data = Story(1).tell(30).log.as_file()
    (tmp_path / file_name(1)).write_bytes(data[:200] + b"\xff" + data[201:])
    (tmp_path / file_name(2)).write_bytes(data[:-3])
    found = list(read_recording(tmp_path))
    damage, torn = [each for each in found if isinstance(each, Unread)]
    assert (damage.damaged, torn.damaged) == (True, False)
    assert any(isinstance(each, EventRecord) for each in found)


DATA = Story(4).tell(60).log.as_file()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(DATA) - 1), st.integers(0, 255)), max_size=4), st.integers(0, len(DATA)))
def test_a_damaged_recording_never_crashes_the_replay(tmp_path: Path, changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(DATA)
    for place, byte in changes:
        data[place] = byte
    file = tmp_path / file_name(1)
    file.write_bytes(data[: cut or None])
    records = [each for each in read_recording(file) if not isinstance(each, Unread)]
    differences = list(replayed(records, Replay()))
    assert differences == [], "a record with a valid checksum is unchanged"


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(0), st.binary(min_size=1, max_size=3)), min_size=1, max_size=3), st.randoms())
def test_forged_records_are_refused_or_differ_but_never_crash(
    tmp_path: Path, changes: list[tuple[int, bytes]], random: object
) -> None:
    records = list(Story(4).tell(40).log.records)
    for place, new in changes:
        old = bytearray(records[place % len(records)])
        at = place // 7 % len(old)
        old[at : at + len(new)] = new
        records[place % len(records)] = bytes(old)
    file = tmp_path / file_name(1)
    file.write_bytes(MAGIC + b"".join(map(frame, records)))
    try:
        list(replayed([each for each in read_recording(file) if not isinstance(each, Unread)], Replay()))
    except (RecordingError, FormatError) as error:
        assert "expected" in str(error)
