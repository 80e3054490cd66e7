import io
import math

import pytest
import trio

from wharfinger.packages.digest import digest_of
from wharfinger.packages.errors import DigestError, RegistryError
from wharfinger.packages.registry import Descriptor
from wharfinger.packages.verified_blob import ReadChunks, VerifiedBlob


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
async def test_what_is_right_comes_through(data: bytes) -> None:
    assert await whole(data, of(data)) == data


@pytest.mark.parametrize(
    ("data", "descriptor", "why"),
    [
        (b"abcd", of(b"abce"), "another digest"),
        (b"abcd", of(b"abcd", 3), "more bytes than the 3"),
        (b"abcd", of(b"abcd", 5), "4 bytes instead of 5"),
        (b"", of(b"a"), "0 bytes instead of 1"),
        (b"a", of(b""), "more bytes than the 0"),
    ],
)
async def test_what_is_wrong_ends_with_an_error(data: bytes, descriptor: Descriptor, why: str) -> None:
    with pytest.raises(DigestError, match=f"the thing: .*{why}") as caught:
        await whole(data, descriptor)
    assert caught.value.transient


async def test_nothing_beyond_the_announced_size_is_handed_out() -> None:
    got = bytearray()
    with pytest.raises(DigestError):
        async for chunk in VerifiedBlob(chunks(b"abcdefgh"), of(b"abcdefgh", 7), "the thing"):
            got += chunk
    assert got == b"abcdef"


async def test_a_transfer_has_an_end(autojump_clock: trio.testing.MockClock) -> None:
    async def never() -> bytes:
        await trio.sleep(math.inf)
        return b""

    blob = VerifiedBlob(ReadChunks(never), of(b"abc"), "the thing", trio.current_time() + 10)
    with pytest.raises(RegistryError, match="too slow, 0 of 3 bytes") as caught:
        await anext(blob)
    assert caught.value.transient
    assert trio.current_time() == pytest.approx(10)
