"""The reading of recordings: the records of a file, or of all files of a folder, in the order in which they were written.

A recording can be read offline, and also while the daemon writes it, so the end of the last file may be incomplete. Only one
file is in memory at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from wharfinger.formats.errors import FormatError
from wharfinger.runtime.recording.log_file import PREFIX, SUFFIX, Damage, Torn, file_number, read_frames
from wharfinger.runtime.recording.record import FORMAT, HeadRecord, Record, lines_of, read_record


class RecordingError(Exception):
    """A recording cannot be read; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Unread:
    """The part of a file from ``offset`` on, which cannot be read. ``damaged`` is False if the only fault is that the last
    frame is incomplete.
    """

    path: Path
    offset: int
    problem: str
    damaged: bool


Read: TypeAlias = Record | Unread


def files_of(path: Path) -> tuple[Path, ...]:
    """Return the files of a recording in order: the files of a folder, or ``path`` itself if it is a file. Raises
    RecordingError.
    """
    try:
        if not path.is_dir():
            path.stat()
            return (path,)
        found = [(number, each) for each in path.iterdir() if (number := file_number(each.name)) is not None]
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read: {error.strerror}") from error
    if not found:
        raise RecordingError(
            f"{path}: expected files {PREFIX}…{SUFFIX}, found none; give the folder that the daemon's option "
            "--flight-recorder names"
        )
    return tuple(each for _, each in sorted(found))


def read_recording(path: Path) -> Iterator[Read]:
    """Yield the records of a file or a folder, and an Unread for each part that could not be read. Raises RecordingError."""
    for file in files_of(path):
        try:
            data = file.read_bytes()
        except FileNotFoundError:
            continue  # the daemon has deleted its oldest file meanwhile
        except OSError as error:
            raise RecordingError(f"{file}: cannot be read: {error.strerror}") from error
        for found in read_frames(data):
            match found:
                case Torn(offset):
                    yield Unread(file, offset, "the file ends within a frame", damaged=False)
                case Damage(offset, problem):
                    yield Unread(file, offset, problem, damaged=True)
                case bytes():
                    yield from (_record(file, line) for line in lines_of(found))


def _record(file: Path, data: bytes) -> Record:
    try:
        record = read_record(data)
    except FormatError as error:
        raise RecordingError(f"{file}: {error}; was it written by another version of wharfinger?") from error
    if isinstance(record, HeadRecord) and record.format != FORMAT:
        raise RecordingError(
            f"{file}: expected a recording of format {FORMAT}, found {record.format}, of wharfinger {record.version}; replay it "
            "with that version"
        )
    return record
