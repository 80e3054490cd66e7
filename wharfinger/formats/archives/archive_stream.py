"""The bytes of a tar, gzipped or not, read in bounded pieces and limited in total.

A few hundred bytes of gzip can become a gigabyte. The stream inflates at most one chunk at a time, and raises an error as soon as
the output is over the allowed size or ratio. So any input takes only the memory of a few chunks. A gzip stream must be complete,
and its checksums are verified. It may have several members, and zeros may pad its end.
"""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from wharfinger.formats.errors import ArchiveError

_CHUNK_IN: Final = 16 * 1024
_CHUNK_OUT: Final = 64 * 1024
_GZIP_MAGIC: Final = b"\x1f\x8b"
_OTHER_MAGIC: Final = {b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ": "xz"}
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
_RATIO_FREE: Final = 1024 * 1024
"""The output size, in bytes, up to which the compression ratio is not checked. A small output does no harm at any ratio."""


class Readable(Protocol):
    """A source of bytes: ``read`` returns up to ``size`` bytes, and an empty result only at the end.

    Any file that is open for reading bytes is such a source.
    """

    def read(self, size: int, /) -> bytes: ...


class ExtractionStoppedError(Exception):
    """The unpacking stopped because ``should_stop`` returned True; the files on disk are partial."""


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """Limits: bytes read from the source, bytes after inflating, gzip members, and the maximum output per byte of input."""

    max_read: int
    max_bytes: int
    max_members: int
    max_ratio: int


class ArchiveStream:
    """A reader over ``stream`` that inflates gzip; it calls ``should_stop`` once per chunk.

    Raises ArchiveError for damage and limits, ExtractionStoppedError, and what ``stream.read`` raises.
    """

    def __init__(self, stream: Readable, limits: StreamLimits, *, what: str, should_stop: Callable[[], bool]) -> None:
        self._stream = stream
        self._limits = limits
        self._what = what
        self._should_stop = should_stop
        self._pending = b""
        self._member: _Member | None = None
        self._members = 0
        self._buffer = bytearray()
        self._started = False
        self.is_gzip = False
        self.bytes_read = 0
        self.bytes_out = 0

    def read_exactly(self, size: int) -> bytes:
        """Return ``size`` bytes; ``size`` may be a few chunks at most. Raises ArchiveError if the stream ends earlier."""
        found = self.read_up_to(size)
        if len(found) < size:
            raise ArchiveError(f"{self._what}: truncated: it ends {size - len(found)} bytes before it should")
        return found

    def read_up_to(self, size: int) -> bytes:
        """Return ``size`` bytes, fewer only at the end of the stream."""
        while len(self._buffer) < size:
            chunk = self._next_chunk()
            if not chunk:
                break
            self._buffer += chunk
        found = bytes(self._buffer[:size])
        del self._buffer[:size]
        return found

    def pieces(self, size: int) -> Iterator[bytes]:
        """Yield ``size`` bytes in chunks. Raises ArchiveError if the stream ends earlier."""
        while size:
            piece = self.read_exactly(min(size, _CHUNK_OUT))
            size -= len(piece)
            yield piece

    def drain(self) -> None:
        """Read to the end, to verify the checksum there; the bytes are counted and dropped."""
        self._buffer.clear()
        while self._next_chunk():
            pass

    def _next_chunk(self) -> bytes:
        if self._should_stop():
            raise ExtractionStoppedError(f"{self._what}: stopped")
        if not self._started:
            self._start()
        chunk = self._inflate() if self.is_gzip else self._raw()
        self.bytes_out += len(chunk)
        if self.bytes_out > self._limits.max_bytes:
            raise ArchiveError(f"{self._what}: unpacks to more than {self._limits.max_bytes} bytes")
        if self.bytes_out > max(_RATIO_FREE, self.bytes_read * self._limits.max_ratio):
            raise ArchiveError(f"{self._what}: unpacks to more than {self._limits.max_ratio} times its size")
        return chunk

    def _start(self) -> None:
        self._started = True
        head = b""
        while len(head) < 6 and (more := self._read()):
            head += more
        self._pending = head
        self.is_gzip = head.startswith(_GZIP_MAGIC)
        for magic, name in _OTHER_MAGIC.items():
            if head.startswith(magic):
                raise ArchiveError(f"{self._what}: compressed with {name}; only gzip is read")

    def _read(self) -> bytes:
        data = self._stream.read(_CHUNK_IN)
        self.bytes_read += len(data)
        if self.bytes_read > self._limits.max_read:
            raise ArchiveError(f"{self._what}: more than {self._limits.max_read} bytes")
        return data

    def _raw(self) -> bytes:
        """Return the bytes that were read ahead, or the next chunk if there are none; empty at the end."""
        data, self._pending = self._pending, b""
        return data or self._read()

    def _inflate(self) -> bytes:
        """Return the next chunk of output; empty at the end of the last member."""
        while member := self._member or self._next_member():
            self._member = member
            data = self._raw()
            try:
                found = member.inflate(data)
            except zlib.error as error:
                raise ArchiveError(f"{self._what}: damaged gzip: {error}") from error
            self._pending = member.rest
            if member.is_done:
                self._member = None
            elif not data and not found:
                raise ArchiveError(f"{self._what}: truncated gzip")
            if found:
                return found
        return b""

    def _next_member(self) -> "_Member | None":
        """Return a new gzip member; None at the end of the input. Zeros that pad the end are skipped."""
        head = self._raw()
        while head and len(head) < len(_GZIP_MAGIC) and (more := self._read()):
            head += more
        if self._members and not head.strip(b"\0"):
            while head and not head.strip(b"\0"):
                head = self._read()
            if not head:
                return None
        if not head.startswith(_GZIP_MAGIC):
            raise ArchiveError(f"{self._what}: other data follows the gzip stream")
        self._members += 1
        if self._members > self._limits.max_members:
            raise ArchiveError(f"{self._what}: more than {self._limits.max_members} gzip members")
        self._pending = head
        return _Member()


class _Member:
    """One gzip member being inflated."""

    def __init__(self) -> None:
        self._inflater = zlib.decompressobj(_GZIP_WINDOW)

    @property
    def is_done(self) -> bool:
        return self._inflater.eof

    @property
    def rest(self) -> bytes:
        """The input that has not been used yet; it belongs to this member or to the next one."""
        return self._inflater.unused_data if self._inflater.eof else self._inflater.unconsumed_tail

    def inflate(self, data: bytes) -> bytes:
        return self._inflater.decompress(data, _CHUNK_OUT)
