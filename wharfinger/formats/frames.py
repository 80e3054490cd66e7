"""Frames, in which the daemon and some of its worker processes exchange messages.

A frame is the length of the message in four bytes (big-endian), followed by the message.
"""

from typing import Final

from wharfinger.formats.errors import FormatError

LENGTH_BYTES: Final = 4
MAX_FRAME_BYTES: Final = 64 * 1024 * 1024
"""The size of the largest message that may be sent. A reader may have a lower limit."""


class FrameError(FormatError):
    """A message is too large."""


def framed(payload: bytes) -> bytes:
    """Return the payload with its length before it. Raises FrameError if the payload exceeds MAX_FRAME_BYTES."""
    if len(payload) > MAX_FRAME_BYTES:
        raise FrameError(f"{len(payload)} bytes do not fit into one message")
    return len(payload).to_bytes(LENGTH_BYTES, "big") + payload


class FrameReader:
    """A parser that splits a stream of bytes into frames. A message may have at most ``max_bytes``."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._pending = bytearray()

    def feed(self, data: bytes) -> None:
        """Add bytes of the stream, of any length."""
        self._pending += data

    def take(self) -> bytes | None:
        """Return the next message, or None if it is not complete yet. Raises FrameError as soon as a length is over the limit."""
        if len(self._pending) < LENGTH_BYTES:
            return None
        length = int.from_bytes(self._pending[:LENGTH_BYTES], "big")
        if length > self.max_bytes:
            raise FrameError(f"a message of {length} bytes is over the limit of {self.max_bytes}")
        end = LENGTH_BYTES + length
        if len(self._pending) < end:
            return None
        payload = bytes(self._pending[LENGTH_BYTES:end])
        del self._pending[:end]
        return payload
