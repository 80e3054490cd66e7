"""The chunks of a blob from several responses: an interrupted transfer is resumed where it stopped.

The rest of the blob is requested with ``Range`` (RFC 9110 §14). A server without support for ranges sends the whole blob again,
and the bytes that were received before are skipped. Each of these requests renews an expired login, so a token that expires in
the middle of a layer costs only one more request. After MAX_EMPTY attempts in a row without new bytes, the error is raised. The
reader (:mod:`~wharfinger.packages.registry.verified_blob`) verifies the bytes of all responses.
"""

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Final

from wharfinger.packages.errors import DigestError, RegistryError
from wharfinger.packages.registry.connection import OpenAnswer, RegistryConnection, RegistryRequest
from wharfinger.packages.registry.registry import Descriptor

MAX_EMPTY: Final = 2
_RANGE: Final = re.compile(r"bytes (?P<start>[0-9]{1,20})-[0-9]{1,20}/(?P<size>[0-9]{1,20}|\*)\Z")


class ResumedChunks:
    """The bytes of a blob in order. It is not a generator, because a generator must be closed if its reader stops early."""

    def __init__(
        self, connection: RegistryConnection, ask: RegistryRequest, blob: Descriptor, stack: AsyncExitStack
    ) -> None:
        """``stack`` holds the open response; the caller closes the stack."""
        self._connection = connection
        self._ask = ask
        self._blob = blob
        self._outer = stack
        self._stack = AsyncExitStack()
        self._chunks: AsyncIterator[bytes] | None = None
        self._offset = 0
        self._skip = 0
        self._empty = 0

    async def begin(self) -> None:
        """Request the blob. Raises PackageError."""
        self._outer.push_async_callback(self._close)
        await self._request()

    def __aiter__(self) -> "ResumedChunks":
        """Return itself."""
        return self

    async def __anext__(self) -> bytes:
        """Return the next bytes. Raises RegistryError if the transfer cannot be continued."""
        while True:
            try:
                if self._chunks is None:
                    await self._request()
                chunk = await anext(self._chunks, None) if self._chunks is not None else None
            except RegistryError as error:
                if not error.transient or self._empty >= MAX_EMPTY or self._offset >= self._blob.size:
                    raise
                self._empty += 1
                await self._close()
                continue
            if chunk is None:
                raise StopAsyncIteration
            chunk, self._skip = chunk[self._skip :], max(0, self._skip - len(chunk))
            if chunk:
                self._offset += len(chunk)
                self._empty = 0
                return chunk

    async def _request(self) -> None:
        """Open the response that continues at the offset."""
        ask = self._ask
        if self._offset:
            ask = replace(ask, accepted=(200, 206), headers=(("Range", f"bytes={self._offset}-"),))
        incoming = await self._stack.enter_async_context(self._connection.exchange(ask))
        self._skip = self._skipped(incoming)
        self._chunks = incoming.chunks

    def _skipped(self, incoming: OpenAnswer) -> int:
        """Return the number of bytes of this response that were received before. Raises DigestError if the response has other
        bytes than requested, or announces another size.
        """
        if incoming.status == 206:
            match = _RANGE.match(incoming.headers.get("content-range", ""))
            if match is None or int(match["start"]) != self._offset or match["size"] not in {"*", str(self._blob.size)}:
                raise DigestError(
                    f"{self._ask.what}: requested the bytes from {self._offset} on, but the registry sent other bytes",
                    transient=True,
                )
            return 0
        announced = incoming.headers.get("content-length", "")
        if announced.isdecimal() and int(announced[:20]) != self._blob.size:
            raise DigestError(
                f"{self._ask.what}: the registry announces {announced[:20]} bytes, the manifest {self._blob.size}",
                transient=True,
            )
        return self._offset

    async def _close(self) -> None:
        self._chunks = None
        await self._stack.aclose()
