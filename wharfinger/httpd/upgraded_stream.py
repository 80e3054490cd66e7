"""The stream of a connection that was upgraded from HTTP to another protocol."""

import trio


class UpgradedStream(trio.abc.Stream):
    """A stream that begins with bytes that were received already. Closing it closes the connection."""

    def __init__(self, stream: trio.abc.Stream, received: bytes) -> None:
        self._stream = stream
        self._received = received

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        if not self._received:
            return await self._stream.receive_some(max_bytes)
        await trio.lowlevel.checkpoint()
        size = len(self._received) if max_bytes is None else max_bytes
        found, self._received = self._received[:size], self._received[size:]
        return found

    async def aclose(self) -> None:
        await self._stream.aclose()
