"""A blob that is hashed while it streams: a caller that reads it to its end gets exactly the bytes of its descriptor."""

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import trio

from wharfinger.packages.errors import DigestError, RegistryError
from wharfinger.packages.registry.registry import Descriptor


@dataclass(frozen=True, slots=True)
class LeastSpeed:
    """The lowest accepted speed of a transfer. A transfer is ended if it is slower than ``bytes_per_s`` over a period of
    ``window_s`` seconds.
    """

    bytes_per_s: float = 16 * 1024
    window_s: float = 20.0

    def __str__(self) -> str:
        """Return the description of a slower transfer: ``less than 16 KiB/s over 20 s``."""
        return f"less than {self.bytes_per_s / 1024:g} KiB/s over {self.window_s:g} s"


class VerifiedBlob:
    """The chunks of a blob; iteration ends with DigestError unless size and digest match the descriptor.

    If a least speed is required, only the time spent waiting for the sender counts, so that a reader with a slow disk does not
    cause an error.
    """

    def __init__(
        self, chunks: AsyncIterator[bytes], blob: Descriptor, what: str, least: LeastSpeed | None = None
    ) -> None:
        self._chunks = chunks
        self._blob = blob
        self._what = what
        self._least = least
        self._waited = 0.0
        self._brought = 0
        self._hash = hashlib.sha256()
        self._size = 0

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Return itself: a blob is read once."""
        return self

    async def __anext__(self) -> bytes:
        """Return the next chunk. Raises DigestError, or RegistryError if the transfer is interrupted or too slow."""
        chunk = await self._received()
        if chunk is None:
            self._check_end()
            raise StopAsyncIteration
        self._size += len(chunk)
        if self._size > self._blob.size:
            raise DigestError(
                f"{self._what}: more than the {self._blob.size} bytes that its descriptor announces", transient=True
            )
        self._hash.update(chunk)
        return chunk

    async def _received(self) -> bytes | None:
        least = self._least
        if least is None:
            return await anext(self._chunks, None)
        began = trio.current_time()
        try:
            with trio.fail_after(max(0.0, least.window_s - self._waited)):
                chunk = await anext(self._chunks, None)
        except trio.TooSlowError as error:
            raise RegistryError(
                f"{self._what}: the transfer is too slow: {self._size} of {self._blob.size} bytes so far, {least}; check "
                "the registry and the network, or lower --download-least-speed",
                transient=True,
            ) from error
        self._waited += trio.current_time() - began
        self._brought += len(chunk or b"")
        if self._brought >= least.bytes_per_s * least.window_s:
            self._waited, self._brought = 0.0, 0
        return chunk

    def _check_end(self) -> None:
        if self._size != self._blob.size:
            raise DigestError(f"{self._what}: {self._size} bytes instead of {self._blob.size}", transient=True)
        if self._hash.hexdigest() != self._blob.digest.hex:
            raise DigestError(f"{self._what}: the bytes received have another digest", transient=True)


class ReadChunks:
    """An asynchronous iterator over the results of ``read``, up to the first empty result. It is not a generator, because a
    generator must be closed if its consumer stops early.
    """

    def __init__(self, read: Callable[[], Awaitable[bytes]]) -> None:
        self._read = read

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Return itself."""
        return self

    async def __anext__(self) -> bytes:
        """Return the next chunk."""
        chunk = await self._read()
        if not chunk:
            raise StopAsyncIteration
        return chunk
