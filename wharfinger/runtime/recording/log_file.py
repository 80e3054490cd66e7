"""The format of a file of the flight recorder: a first line, and then frames, each with its length and checksum.

======  ======================================================================
bytes   content
======  ======================================================================
4       the length of the records, big-endian
4       CRC-32 of the length and the records, big-endian
length  records, one a line (:mod:`wharfinger.runtime.recording.record`)
======  ======================================================================

If the daemon is killed or the disk is full, the last frame of a file may be incomplete (`Torn`); this is not an error. A frame
with a wrong checksum is damaged (`Damage`); then the rest of the file cannot be read, because it is not known where the next
frame begins. Pure.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

MAGIC: Final = b"wharfinger flight recording 1\n"
PREFIX: Final = "flight-"
SUFFIX: Final = ".log"
MAX_FRAME: Final = 512 * 1024 * 1024
"""The limit on the size of a frame's records in bytes; the state of a scheduler with ten thousand packages takes some tens of
MB.
"""
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


def frame(records: bytes) -> bytes:
    """Return the records with the head of a frame before them."""
    return frame_head([records]) + records


def frame_head(parts: Sequence[bytes]) -> bytes:
    """Return the head of a frame: the length and the checksum of its records, whose bytes are in ``parts``."""
    length = sum(map(len, parts)).to_bytes(4, "big")
    checksum = zlib.crc32(length)
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return length + checksum.to_bytes(4, "big")


def read_frames(data: bytes) -> Iterator[Found]:
    """Yield the records of each frame of a file, in order.

    If the file does not end with a complete frame, a Torn or a Damage is yielded last.
    """
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
        if length > MAX_FRAME:
            yield Damage(offset, f"expected records of at most {MAX_FRAME} bytes, found a length of {length}")
            return
        if len(data) - offset < _HEAD or end > len(data):
            yield Torn(offset)
            return
        records = data[offset + _HEAD : end]
        if zlib.crc32(records, zlib.crc32(data[offset : offset + 4])) != int.from_bytes(
            data[offset + 4 : offset + 8], "big"
        ):
            yield Damage(offset, "the checksum of a frame does not match its records")
            return
        yield records
        offset = end


def file_name(number: int) -> str:
    """Return the name of the file with this number."""
    return f"{PREFIX}{number:08d}{SUFFIX}"


def file_number(name: str) -> int | None:
    """Return the number of the file with this name; None for any other file."""
    digits = name.removeprefix(PREFIX).removesuffix(SUFFIX)
    is_one = name.startswith(PREFIX) and name.endswith(SUFFIX) and digits.isascii() and digits.isdigit()
    return int(digits) if is_one else None
