"""The part of a child's output that is kept: the first bytes of stdout, the last bytes of stderr, within their limits.

stdout is the program's result, which is useless if it is incomplete. So stdout is cut at the limit, and the run is ended. stderr
explains what the program did, and an error is usually at its end. So stderr is read to its end, and its last bytes are kept. Both
classes are pure, and their memory is bounded.
"""


class CappedOutput:
    """A filter that passes on the first ``limit`` bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.passed = 0
        self.exceeded = False

    def admit(self, chunk: bytes) -> bytes:
        """Return the part of ``chunk`` that still fits; set ``exceeded`` if a part did not."""
        fitting = chunk[: self.limit - self.passed]
        self.passed += len(fitting)
        if len(fitting) < len(chunk):
            self.exceeded = True
        return fitting


class TailBuffer:
    """A buffer that keeps the last ``limit`` bytes that were added; it needs at most twice as much memory, plus one chunk."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._kept = bytearray()

    def add(self, chunk: bytes) -> None:
        """Append ``chunk``. Bytes are rarely moved, because trimming waits until the buffer has more than twice the limit."""
        self._kept += chunk
        if len(self._kept) > 2 * self.limit:
            self._trim()

    def value(self) -> bytes:
        """Return the last bytes, at most ``limit`` of them."""
        self._trim()
        return bytes(self._kept)

    def _trim(self) -> None:
        del self._kept[: max(0, len(self._kept) - self.limit)]
