"""Frames in the flight recorder's files: written records are read, an incomplete last frame is accepted, and
damage is detected.
"""

from hypothesis import given
from hypothesis import strategies as st

from wharfinger.runtime.recording.log_file import (
    MAGIC,
    MAX_FRAME,
    Damage,
    Torn,
    file_name,
    file_number,
    frame,
    read_frames,
)

RECORDS = st.lists(st.binary(max_size=60), max_size=6)


def written(records: list[bytes]) -> bytes:
    return MAGIC + b"".join(frame(each) for each in records)


@given(RECORDS)
def test_written_records_are_read(records: list[bytes]) -> None:
    assert list(read_frames(written(records))) == records


@given(RECORDS, st.integers(0, 400))
def test_a_truncated_file_gives_its_complete_records(records: list[bytes], cut: int) -> None:
    data = written(records)[:cut]
    found = list(read_frames(data))
    complete = [each for each in found if isinstance(each, bytes)]
    assert complete == records[: len(complete)]
    rest = found[len(complete) :]
    assert all(isinstance(each, Torn) for each in rest)
    assert len(rest) == (0 if data in [written(records[:count]) for count in range(len(records) + 1)] else 1)


@given(RECORDS, st.integers(0), st.integers(1, 255))
def test_a_changed_byte_is_never_read_as_a_record(records: list[bytes], place: int, change: int) -> None:
    data = bytearray(written(records))
    data[place % len(data)] ^= change
    found = list(read_frames(bytes(data)))
    complete = [each for each in found if isinstance(each, bytes)]
    assert complete == records[: len(complete)]
    assert len(complete) < len(records) or not records or isinstance(found[-1], Damage | Torn)


@given(st.binary(max_size=200))
def test_any_invalid_bytes_end_the_reading(data: bytes) -> None:
    for each in (data, MAGIC + data):
        found = list(read_frames(each))
        assert all(isinstance(one, bytes) for one in found[:-1])


def test_a_length_beyond_the_limit_is_damage() -> None:
    (found,) = read_frames(MAGIC + (MAX_FRAME + 1).to_bytes(4, "big") + bytes(4))
    assert isinstance(found, Damage)
    assert str(MAX_FRAME) in found.problem


def test_files_are_numbered() -> None:
    assert file_number(file_name(12)) == 12
    assert [file_number(name) for name in ("flight-x.log", "other.log", "flight-1", "flight-²²²²²²²².log")] == [
        None
    ] * 4
