"""The flight recorder's log on disk: file modes, rotation, a bounded size, and a full disk, which only causes lost records."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.runtime.support.recorded import Story
from wharfinger.runtime.recording import flight_log as module
from wharfinger.runtime.recording.flight_log import DEFAULT_BYTES, FILES, open_flight_log, prepared
from wharfinger.runtime.recording.record import EventRecord, GapRecord, HeadRecord, Lines, StateRecord, Why, encoded
from wharfinger.runtime.recording.recordings import Unread, files_of, read_recording
from wharfinger.runtime.recording.replay import Replay, replayed

DATA = encoded(EventRecord(1, 1.0, "journal", "shop.web", ["Forget"], None, {}, [])) + b"\n"
RECORD = Lines(DATA, 1)


def now() -> float:
    return 1_767_225_600.0


async def test_records_are_on_disk_when_the_log_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "flight"
    old = os.umask(0)
    try:
        async with open_flight_log(folder, now) as log:
            log.append(RECORD)
            log.append(lambda: DATA[:-1])
    finally:
        os.umask(old)
    (file,) = files_of(folder)
    assert (folder.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)
    head, *records = read_recording(folder)
    assert isinstance(head, HeadRecord)
    assert head.first
    assert len(records) == 2
    assert (log.counters.records, log.counters.lost, log.counters.failing) == (2, 0, False)
    assert log.counters.bytes == file.stat().st_size


async def test_the_size_is_bounded_and_each_file_is_replayed_alone(tmp_path: Path) -> None:
    most = FILES * 16 * 1024
    log = await prepared(tmp_path, now, most)
    story = Story(1, log=log)
    for _ in range(16):
        story.tell(60)
        await log.flush()
    log.disk.close()
    files = files_of(tmp_path)
    assert files[0].name != "flight-00000001.log", "the oldest files are deleted"
    assert 2 < len(files) <= FILES + 1
    assert sum(file.stat().st_size for file in files) <= most
    for file in files:
        records = [each for each in read_recording(file) if not isinstance(each, Unread)]
        assert list(replayed(records, Replay())) == []
    assert log.counters.lost == 0


async def test_the_mode_of_an_existing_folder_is_not_changed(tmp_path: Path) -> None:
    """Other programs may use the folder too, for example if it contains all logs. So the daemon must not change its mode."""
    tmp_path.chmod(0o755)
    for folder, mode in ((tmp_path, 0o755), (tmp_path / "new", 0o700)):
        async with open_flight_log(folder, now) as log:
            log.append(RECORD)
        assert folder.stat().st_mode & 0o777 == mode
        assert {file.stat().st_mode & 0o777 for file in files_of(folder)} == {0o600}


async def test_a_start_continues_the_numbers_of_the_files(tmp_path: Path) -> None:
    for _ in range(3):
        async with open_flight_log(tmp_path, now) as log:
            log.append(RECORD)
    assert [file.name for file in files_of(tmp_path)] == [f"flight-0000000{number}.log" for number in (1, 2, 3)]


class _FullDisk:
    """A replacement of `os.write`. While ``full`` is true, it writes only the few bytes that still fit, and then fails."""

    def __init__(self, write: Callable[[int, memoryview], int]) -> None:
        self.full = False
        self.room = 5
        self._write = write

    def __call__(self, descriptor: int, data: memoryview) -> int:
        if not self.full:
            return self._write(descriptor, data)
        room, self.room = self.room, 0
        if room:
            return self._write(descriptor, data[:room])
        raise OSError(errno.ENOSPC, "No space left on device")


async def test_a_full_disk_loses_records_and_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = _FullDisk(os.write)
    monkeypatch.setattr(os, "write", disk)
    log = await prepared(tmp_path, now, DEFAULT_BYTES)
    story = Story(2, log=log).tell(40)
    await log.flush()
    written = log.counters.records
    assert written > 10
    disk.full = True
    for attempt in range(3):
        story.tell(20)
        await log.flush()
        assert log.counters.failing, attempt
        story.tell(5)
        log.recover()
    lost = log.counters.lost
    assert lost > 60
    assert sum(file.stat().st_size == 0 for file in files_of(tmp_path)) <= 1, "a full disk is not filled with files"
    disk.full = False
    story.tell(20)
    await log.flush()
    assert log.counters.failing is False
    story.tell(20)
    await log.flush()
    log.disk.close()
    assert log.counters.records > written
    assert caplog.text.count("No space left on device") == 1
    found = list(read_recording(tmp_path))
    assert any(isinstance(each, Unread) and not each.damaged for each in found), "the file of the full disk is torn"
    (gap,) = [each for each in found if isinstance(each, GapRecord)]
    assert gap.lost == lost
    assert list(replayed([each for each in found if not isinstance(each, Unread)], Replay())) == []


async def test_a_record_that_cannot_be_encoded_is_the_only_one_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The thread of the log encodes the state of the scheduler, and a text in this state may contain a lone surrogate, which
    cannot be encoded.
    """
    broken = StateRecord(1, 1.0, "scheduler", "", {"name": "\udcff"}, Why.BEGINS)
    async with open_flight_log(tmp_path, now) as log:
        log.append(RECORD, lambda: encoded(broken), lambda: encoded(broken), RECORD)
    assert (log.counters.records, log.counters.lost, log.counters.failing) == (2, 2, False)
    assert len(list(read_recording(tmp_path))) == 3, "with the head"
    assert caplog.text.count("cannot be made") == 1


async def test_a_disk_that_is_too_slow_loses_records_and_begins_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_PENDING", 5 * len(DATA))
    log = await prepared(tmp_path, now, DEFAULT_BYTES)
    for _ in range(20):
        log.append(RECORD)
    assert log.counters.lost == 14
    await log.flush()
    log.append(RECORD)
    assert log.counters.lost == 15, "the file has a gap already; the next one is not begun yet"
    log.recover()
    log.append(RECORD)
    await log.flush()
    log.disk.close()
    found = list(read_recording(tmp_path))
    (gap,) = [each for each in found if isinstance(each, GapRecord)]
    assert gap.lost == log.counters.lost == 15
    assert len(files_of(tmp_path)) == 2


async def test_a_folder_that_cannot_be_used_is_an_error_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        async with open_flight_log(tmp_path / "file", now):
            raise AssertionError("opened")
