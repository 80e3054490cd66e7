"""A blob that is hashed while it streams: whoever reads it to its end has what its descriptor promises."""

import hashlib
import math
from collections.abc import AsyncIterator, Awaitable, Callable

import trio

from wharfinger.packages.errors import DigestError, RegistryError
from wharfinger.packages.registry import Descriptor


class VerifiedBlob:
    """The chunks of a blob; iteration ends with DigestError unless size and digest are the descriptor's."""

    def __init__(self, chunks: AsyncIterator[bytes], blob: Descriptor, what: str, deadline: float = math.inf) -> None:
        self._chunks = chunks
        self._blob = blob
        self._what = what
        self._deadline = deadline
        self._hash = hashlib.sha256()
        self._size = 0

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Itself: a blob is read once."""
        return self

    async def __anext__(self) -> bytes:
        """The next chunk. Raises DigestError, or RegistryError where the transfer breaks off or takes too long."""
        try:
            with trio.fail_at(self._deadline):
                chunk = await anext(self._chunks, None)
        except trio.TooSlowError as error:
            raise RegistryError(
                f"{self._what}: the transfer is too slow, {self._size} of {self._blob.size} bytes", transient=True
            ) from error
        if chunk is None:
            self._check_end()
            raise StopAsyncIteration
        self._size += len(chunk)
        if self._size > self._blob.size:
            raise DigestError(
                f"{self._what}: more bytes than the {self._blob.size} its descriptor announces", transient=True
            )
        self._hash.update(chunk)
        return chunk

    def _check_end(self) -> None:
        if self._size != self._blob.size:
            raise DigestError(f"{self._what}: {self._size} bytes instead of {self._blob.size}", transient=True)
        if self._hash.hexdigest() != self._blob.digest.hex:
            raise DigestError(f"{self._what}: the bytes received have another digest", transient=True)


class ReadChunks:
    """What ``read`` answers, again and again up to an empty answer. No generator: those must be closed where they end early."""

    def __init__(self, read: Callable[[], Awaitable[bytes]]) -> None:
        self._read = read

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Itself."""
        return self

    async def __anext__(self) -> bytes:
        """The next chunk."""
        chunk = await self._read()
        if not chunk:
            raise StopAsyncIteration
        return chunk
