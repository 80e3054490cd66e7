"""`wharfinger replay`, and commands that read a recording: their expected outputs and exit codes, without a daemon."""

import argparse
import json
from datetime import timedelta
from pathlib import Path

import pytest

from tests.programs import attempt, wharfinger
from tests.runtime.support.recorded import Story
from tests.runtime.support.recorded_install import T0, WEB, Install
from wharfinger.__main__ import main
from wharfinger.runtime.recording.commands import add_replay, explanation_from, history_from
from wharfinger.runtime.recording.flight_log import FILES, prepared
from wharfinger.runtime.recording.log_file import MAGIC, file_name, frame
from wharfinger.runtime.recording.record import EventRecord, encoded, read_record
from wharfinger.runtime.recording.recordings import RecordingError, files_of


def replay(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    add_replay(parser)
    args = parser.parse_args(arguments)
    code = args.handler(args)
    assert isinstance(code, int)
    return code


def test_an_unchanged_recording_replays_identically(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Install().write(tmp_path / "flight")
    assert replay(str(folder)) == 0
    assert capsys.readouterr().out == "38 events of 2 packages: identical\n"
    assert replay(str(folder / file_name(1)), "-o", "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["identical"], told["events"], told["differences"], told["unread"]) == (True, 38, [], [])


def changed(story: Install, folder: Path) -> Path:
    """Write the recording with one change: after the step that scheduled web, the state of web is ``active`` instead."""
    folder.mkdir()
    records = []
    for data in story.log.records:
        record, kept = read_record(data), data
        if isinstance(record, EventRecord) and record.machine == "scheduler" and b'["scheduled",2,false]' in data:
            kept = data.replace(b'["scheduled",2,false]', b'["active"]')
        records.append(kept)
    (folder / file_name(1)).write_bytes(MAGIC + b"".join(map(frame, records)))
    return folder


def test_a_changed_recording_is_reported_as_different(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = changed(Install(), tmp_path / "flight")
    assert replay(str(folder)) == 1
    assert capsys.readouterr().out == (Path(__file__).parent / "goldens" / "replay_differs.txt").read_text()
    assert replay(str(folder), "-o", "json") == 1
    (difference,) = json.loads(capsys.readouterr().out)["differences"]
    assert (difference["machine"], difference["what"]) == ("scheduler", "the state[3].shop.web[1]")


def test_an_empty_recording_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / file_name(1)
    for data in (b"", MAGIC):
        file.write_bytes(data)
        assert replay(str(tmp_path)) == 1
        assert "0 events of 0 packages: the recording has no events to replay\n" in capsys.readouterr().out


def test_damaged_and_missing_recordings_are_errors_and_torn_ones_are_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Install().write(tmp_path / "flight")
    file = folder / file_name(1)
    data = file.read_bytes()
    file.write_bytes(data[:-5])
    assert replay(str(folder)) == 0, "a daemon that was killed leaves such a file"
    assert "not read from byte" in capsys.readouterr().out
    file.write_bytes(data[:1000] + b"\xff" + data[1001:])
    assert replay(str(folder)) == 1
    assert "the checksum of a frame does not match its records" in capsys.readouterr().out
    assert replay(str(tmp_path / "nothing")) == 1
    assert capsys.readouterr().err == f"error: {tmp_path}/nothing: cannot be read: No such file or directory\n"


@pytest.mark.parametrize("damaged", [True, False])
async def test_records_after_an_unread_part_are_no_difference(
    damaged: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The file after the unread part begins with whole states. They may differ from the states after the last record that was
    read.
    """
    log = await prepared(tmp_path, lambda: 1_767_225_600.0, FILES * 16 * 1024)
    story = Story(1, log=log)
    while log.file < 6:
        story.tell(60)
        await log.flush()
    log.disk.close()
    file = files_of(tmp_path)[1]
    data = file.read_bytes()
    half = len(data) // 2
    file.write_bytes(data[:half] + (b"\xff" + data[half + 1 :] if damaged else b""))
    assert replay(str(tmp_path)) == int(damaged)
    out = capsys.readouterr().out
    assert "not read from byte" in out
    assert "differ" not in out


def test_history_and_why_read_a_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = Install()
    folder = story.write(tmp_path / "flight")
    assert main(["history", WEB, "--all", "--recording", str(folder)]) == 0
    golden = (Path(__file__).parent / "goldens" / "history.txt").read_text()
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == golden.splitlines()
    at = story.times["waits"].isoformat()
    assert main(["why", WEB, "--at", at, "--recording", str(folder)]) == 3
    assert capsys.readouterr().out.startswith("shop.web  needs shop.db")
    assert main(["why", WEB, "--at", story.times["ready"].isoformat(), "--recording", str(folder)]) == 0
    capsys.readouterr()
    for arguments, problem in (
        (
            ["why", WEB, "--recording", str(folder)],
            "error: --recording explains the state at a past time; add --at TIME",
        ),
        (["why", WEB, "--at", (T0 - timedelta(days=1)).isoformat(), "--recording", str(folder)], "is recorded before"),
        (["history", "shop.other", "--recording", str(folder)], "no event of 'shop.other' is recorded"),
        (["history", WEB, "--recording", str(tmp_path / "nothing")], "cannot be read"),
        (["why", WEB, "--at", at, "--recording", str(tmp_path / "nothing")], "cannot be read"),
    ):
        assert main(arguments) == 1
        assert problem in capsys.readouterr().err


def test_a_recording_of_another_form_is_an_error(tmp_path: Path) -> None:
    (tmp_path / file_name(1)).write_bytes(MAGIC + frame(b"{}"))
    with pytest.raises(RecordingError, match="another version"):
        history_from(tmp_path, WEB)
    bad = EventRecord(1, 1.0, "queue", f"{WEB}#1", ["Unknown"], None, [], [])
    (tmp_path / file_name(1)).write_bytes(MAGIC + frame(encoded(bad)))
    with pytest.raises(RecordingError, match="another version"):
        explanation_from(tmp_path, WEB, T0 + timedelta(days=365))


@pytest.mark.slow
def test_no_state_depends_on_the_hashes_of_a_process(tmp_path: Path) -> None:
    """The iteration order of sets differs between processes, and no state may depend on it."""
    for seed in range(20):
        (tmp_path / file_name(seed + 1)).write_bytes(Story(seed).tell(150).log.as_file())
    for hashes in ("1", "2"):
        done = attempt(*wharfinger("replay", str(tmp_path)), env={"PYTHONHASHSEED": hashes})
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
