"""The form of a file of the flight recorder: a first line, and then frames, each with its length and checksum.

======  ===========================================================
bytes   content
======  ===========================================================
4       the length of the record, big-endian
4       CRC-32 of the length and the record, big-endian
length  the record (:mod:`wharfinger.runtime.recording.record`)
======  ===========================================================

A daemon that was killed, or a full disk, leaves an incomplete frame at the end of a file; it is no error (`Torn`). A frame with a
wrong checksum is damage (`Damage`); what follows it in the file cannot be read, because its place is not known. Pure.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

MAGIC: Final = b"wharfinger flight recording 1\n"
PREFIX: Final = "flight-"
SUFFIX: Final = ".log"
MAX_RECORD: Final = 512 * 1024 * 1024
"""The largest record in bytes; the state of a scheduler with ten thousand packages takes some tens of MB."""
_HEAD: Final = 8


@dataclass(frozen=True, slots=True)
class Torn:
    """The file ends within a frame, which begins at ``offset``."""

    offset: int


@dataclass(frozen=True, slots=True)
class Damage:
    """The bytes at ``offset`` are not a frame; the rest of the file is not read."""

    offset: int
    problem: str


Found: TypeAlias = bytes | Torn | Damage


def frame(record: bytes) -> bytes:
    """Return a record as a frame."""
    length = len(record).to_bytes(4, "big")
    return length + zlib.crc32(record, zlib.crc32(length)).to_bytes(4, "big") + record


def read_frames(data: bytes) -> Iterator[Found]:
    """Yield the records of a file in order; last a Torn or a Damage if the file does not end with a complete frame."""
    if not data.startswith(MAGIC):
        if MAGIC.startswith(data):
            yield Torn(0)
        else:
            yield Damage(0, "expected the first line of a flight recording, found something else")
        return
    offset = len(MAGIC)
    while offset < len(data):
        length = int.from_bytes(data[offset : offset + 4], "big")
        end = offset + _HEAD + length
        if length > MAX_RECORD:
            yield Damage(offset, f"expected a record of at most {MAX_RECORD} bytes, found a length of {length}")
            return
        if len(data) - offset < _HEAD or end > len(data):
            yield Torn(offset)
            return
        record = data[offset + _HEAD : end]
        if zlib.crc32(record, zlib.crc32(data[offset : offset + 4])) != int.from_bytes(
            data[offset + 4 : offset + 8], "big"
        ):
            yield Damage(offset, "the checksum of a record does not match it")
            return
        yield record
        offset = end


def file_name(number: int) -> str:
    """Return the name of the file with this number."""
    return f"{PREFIX}{number:08d}{SUFFIX}"


def file_number(name: str) -> int | None:
    """Return the number of the file with this name; None for any other file."""
    digits = name.removeprefix(PREFIX).removesuffix(SUFFIX)
    is_one = name.startswith(PREFIX) and name.endswith(SUFFIX) and digits.isascii() and digits.isdigit()
    return int(digits) if is_one else None
