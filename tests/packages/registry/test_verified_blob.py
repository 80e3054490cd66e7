import io
import math

import pytest
import trio
from trio.testing import MockClock

from wharfinger.packages.digest import digest_of
from wharfinger.packages.errors import DigestError, RegistryError
from wharfinger.packages.registry.registry import Descriptor
from wharfinger.packages.registry.verified_blob import LeastSpeed, ReadChunks, VerifiedBlob


def chunks(data: bytes, size: int = 3) -> ReadChunks:
    source = io.BytesIO(data)

    async def read() -> bytes:
        await trio.lowlevel.checkpoint()
        return source.read(size)

    return ReadChunks(read)


async def whole(data: bytes, descriptor: Descriptor) -> bytes:
    blob = VerifiedBlob(chunks(data), descriptor, "the thing")
    return b"".join([chunk async for chunk in blob])


def of(data: bytes, size: int | None = None) -> Descriptor:
    return Descriptor("a/b", digest_of(data), len(data) if size is None else size)


@pytest.mark.parametrize("data", [b"", b"abc", b"abcdefgh"])
async def test_bytes_with_the_announced_digest_are_returned(data: bytes) -> None:
    assert await whole(data, of(data)) == data


@pytest.mark.parametrize(
    ("data", "descriptor", "why"),
    [
        (b"abcd", of(b"abce"), "another digest"),
        (b"abcd", of(b"abcd", 3), "more than the 3 bytes"),
        (b"abcd", of(b"abcd", 5), "4 bytes instead of 5"),
        (b"", of(b"a"), "0 bytes instead of 1"),
        (b"a", of(b""), "more than the 0 bytes"),
    ],
)
async def test_bytes_with_another_size_or_digest_are_an_error(data: bytes, descriptor: Descriptor, why: str) -> None:
    with pytest.raises(DigestError, match=f"the thing: .*{why}") as caught:
        await whole(data, descriptor)
    assert caught.value.transient


async def test_bytes_beyond_the_announced_size_are_not_returned() -> None:
    got = bytearray()
    with pytest.raises(DigestError):
        async for chunk in VerifiedBlob(chunks(b"abcdefgh"), of(b"abcdefgh", 7), "the thing"):
            got += chunk
    assert got == b"abcdef"


class Drip:
    """A source that sends ``chunk`` every ``every`` seconds and never ends."""

    def __init__(self, chunk: bytes, every: float) -> None:
        self.chunk = chunk
        self.every = every

    async def read(self) -> bytes:
        await trio.sleep(self.every)
        return self.chunk


async def seconds_until_cut(blob: VerifiedBlob) -> float:
    began = trio.current_time()
    with pytest.raises(RegistryError, match="the transfer is too slow") as caught:
        async for _ in blob:
            pass
    assert caught.value.transient
    return trio.current_time() - began


async def test_a_transfer_without_data_is_aborted_after_the_window(autojump_clock: MockClock) -> None:
    blob = VerifiedBlob(ReadChunks(Drip(b"", math.inf).read), of(b"abc"), "the thing", LeastSpeed(1024, 10))
    assert await seconds_until_cut(blob) == pytest.approx(10)


async def test_a_dripping_transfer_is_aborted_after_the_window(autojump_clock: MockClock) -> None:
    """The size of the blob does not matter: 300 KB at 100 B/s must be aborted after 20 s. An earlier version took 78 s."""
    drip = Drip(b"x" * 100, 1)
    blob = VerifiedBlob(ReadChunks(drip.read), of(b"x" * 300_487), "the thing", LeastSpeed(16 * 1024, 20))
    with pytest.raises(
        RegistryError, match=r"the thing: the transfer is too slow: \d+ of 300487 bytes so far, less than 16 "
    ):
        async for _ in blob:
            pass
    assert trio.current_time() == pytest.approx(20)


async def test_a_transfer_that_becomes_slow_is_aborted_within_two_windows(autojump_clock: MockClock) -> None:
    drip = Drip(b"x" * 2048, 1)
    blob = VerifiedBlob(ReadChunks(drip.read), of(b"x" * 10**6), "the thing", LeastSpeed(1024, 10))
    for _ in range(100):
        await anext(blob)
    drip.chunk = b"x"
    assert await seconds_until_cut(blob) <= 20


async def test_a_transfer_at_the_minimum_speed_is_not_aborted(autojump_clock: MockClock) -> None:
    data = b"x" * 1024 * 100
    source = io.BytesIO(data)

    async def read() -> bytes:
        await trio.sleep(0.99)
        return source.read(1024)

    blob = VerifiedBlob(ReadChunks(read), of(data), "the thing", LeastSpeed(1024, 10))
    assert b"".join([chunk async for chunk in blob]) == data


async def test_a_slow_reader_does_not_abort_the_transfer(autojump_clock: MockClock) -> None:
    blob = VerifiedBlob(chunks(b"abcdef"), of(b"abcdef"), "the thing", LeastSpeed(1024, 10))
    got = b""
    async for chunk in blob:
        got += chunk
        await trio.sleep(60)
    assert got == b"abcdef"
