"""The stream of an archive: input in pieces, verified gzip, and limits that are checked before memory is used."""

import gzip
import io
import itertools
import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.archives.archive_stream import ArchiveStream, ExtractionStoppedError, StreamLimits
from wharfinger.formats.errors import ArchiveError

NOISE = random.Random(7).randbytes(200_000)  # noqa: S311 - data that does not compress
GENEROUS = StreamLimits(max_read=10**8, max_bytes=10**8, max_members=1000, max_ratio=2000)


class Trickle:
    """A stream that returns at most ``step`` bytes at a time, as a pipe may do. ``given`` is the number of returned bytes."""

    def __init__(self, data: bytes, step: int) -> None:
        self._data = io.BytesIO(data)
        self._step = step
        self.given = 0

    def read(self, size: int, /) -> bytes:
        found = self._data.read(min(self._step, size))
        self.given += len(found)
        return found


def opened(data: bytes, limits: StreamLimits = GENEROUS, *, step: int = 10**9) -> ArchiveStream:
    return ArchiveStream(Trickle(data, step), limits, what="layer", should_stop=lambda: False)


def everything(stream: ArchiveStream) -> bytes:
    return b"".join(iter(lambda: stream.read_up_to(10_000), b""))


@pytest.mark.parametrize("data", [b"", b"x", NOISE, b"\0" * 100_000], ids=["none", "one", "noise", "zeros"])
@pytest.mark.parametrize("step", [1_000_000_000, 1, 7_000])
def test_plain_and_gzip_give_the_same_bytes(data: bytes, step: int) -> None:
    data = data[: 2_000 if step == 1 else None]

    plain, zipped = opened(data, step=step), opened(gzip.compress(data), step=step)

    assert everything(plain) == everything(zipped) == data
    assert (plain.is_gzip, zipped.is_gzip) == (False, True)
    assert plain.bytes_read == plain.bytes_out == zipped.bytes_out == len(data)


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=5), st.integers(0, 40))
def test_gzip_members_and_zero_padding_are_read_as_one_stream(parts: list[bytes], padding: int) -> None:
    data = b"".join(gzip.compress(part) for part in parts) + b"\0" * padding

    for step in (10**9, 1):
        assert everything(opened(data, step=step)) == b"".join(parts)


def test_data_after_zero_padding_is_refused() -> None:
    assert everything(opened(gzip.compress(b"x") + b"\0" * 100_000)) == b"x"
    with pytest.raises(ArchiveError, match="other data follows"):
        everything(opened(gzip.compress(b"x") + b"\0" * 100_000 + b"y"))


@pytest.mark.parametrize("rest", [b"y", b"\0y", b"\x1f", b"plain text behind"])
def test_other_data_behind_gzip_is_refused(rest: bytes) -> None:
    with pytest.raises(ArchiveError, match="other data follows the gzip stream"):
        everything(opened(gzip.compress(b"x") + rest))


def test_truncated_gzip_is_refused() -> None:
    whole = gzip.compress(NOISE[:300])

    for length in range(2, len(whole)):
        with pytest.raises(ArchiveError, match="layer: truncated gzip"):
            everything(opened(whole[:length]))


def test_gzip_with_a_flipped_bit_is_refused_or_has_the_same_data() -> None:
    whole = gzip.compress(NOISE[:60], mtime=0)
    survived = 0
    for place, bit in itertools.product(range(10, len(whole)), range(8)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << bit
        try:
            assert everything(opened(bytes(damaged))) == NOISE[:60]
        except ArchiveError as error:
            assert str(error).startswith(("layer: damaged gzip", "layer: truncated gzip"))
        else:
            survived += 1
    assert survived <= 8  # the padding bits of the last byte have no meaning


@pytest.mark.parametrize(("magic", "name"), [(b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ\0", "xz")])
def test_unsupported_compressions_are_refused_by_name(magic: bytes, name: str) -> None:
    with pytest.raises(ArchiveError, match=f"compressed with {name}; only gzip is read"):
        opened(magic + b"rest").read_up_to(1)


def test_read_exactly_refuses_a_stream_that_ends_early() -> None:
    stream = opened(b"abcdef")

    assert stream.read_exactly(2) == b"ab"
    assert b"".join(stream.pieces(3)) == b"cde"
    with pytest.raises(ArchiveError, match="layer: truncated: it ends 4 bytes before it should"):
        stream.read_exactly(5)


def test_pieces_have_at_most_the_size_of_a_chunk() -> None:
    assert [len(piece) for piece in opened(NOISE).pieces(150_000)] == [65536, 65536, 150_000 - 2 * 65536]


def test_drain_verifies_the_rest_of_the_stream() -> None:
    stream = opened(gzip.compress(NOISE))
    stream.read_exactly(10)
    stream.drain()
    assert stream.bytes_out == len(NOISE)

    stream = opened(gzip.compress(NOISE)[:-1])
    stream.read_exactly(10)
    with pytest.raises(ArchiveError, match="truncated"):
        stream.drain()


def test_input_over_the_limit_is_refused() -> None:
    limits = StreamLimits(max_read=100_000, max_bytes=10**8, max_members=10, max_ratio=2000)

    for data in (NOISE, gzip.compress(NOISE), gzip.compress(b"") + b"\0" * 10**6):
        with pytest.raises(ArchiveError, match="more than 100000 bytes"):
            everything(opened(data, limits))


@pytest.mark.slow
@pytest.mark.unmeasured
def test_the_output_limit_stops_a_bomb_at_once() -> None:
    source = Trickle(gzip.compress(b"\0" * 300_000_000), 4096)
    limits = StreamLimits(max_read=10**9, max_bytes=5_000_000, max_members=10, max_ratio=2000)
    stream = ArchiveStream(source, limits, what="layer", should_stop=lambda: False)

    with pytest.raises(ArchiveError, match="unpacks to more than 5000000 bytes"):
        everything(stream)
    assert stream.bytes_out < 5_000_000 + 70_000
    assert source.given < 30_000


def test_the_ratio_limit_applies_beyond_the_first_mebibyte() -> None:
    limits = StreamLimits(max_read=10**9, max_bytes=10**9, max_members=10, max_ratio=50)

    assert len(everything(opened(gzip.compress(b"\0" * 1024 * 1024), limits))) == 1024 * 1024
    with pytest.raises(ArchiveError, match="unpacks to more than 50 times its size"):
        everything(opened(gzip.compress(b"\0" * 8_000_000), limits))
    assert len(everything(opened(gzip.compress(NOISE * 10), limits))) == 2_000_000


def test_a_bomb_inside_an_archive_is_not_unpacked() -> None:
    inner = gzip.compress(b"\0" * 10_000_000)

    assert everything(opened(gzip.compress(inner))) == inner


def test_too_many_gzip_members_are_refused() -> None:
    limits = StreamLimits(max_read=10**8, max_bytes=10**8, max_members=5, max_ratio=2000)
    empty = gzip.compress(b"")

    assert everything(opened(empty * 5, limits)) == b""
    with pytest.raises(ArchiveError, match="more than 5 gzip members"):
        everything(opened(empty * 6, limits))


def test_a_full_chunk_of_output_may_leave_more_pending() -> None:
    # Deflate retains output that did not fit into a chunk. A reader must get it without more input.
    for size in range(65536 - 3, 65536 * 2 + 3, 65536):
        assert everything(opened(gzip.compress(b"\0" * size))) == b"\0" * size


def test_should_stop_is_called_for_each_chunk() -> None:
    answers = iter([False, False, True])
    stream = ArchiveStream(io.BytesIO(NOISE), GENEROUS, what="layer", should_stop=lambda: next(answers))

    with pytest.raises(ExtractionStoppedError, match="layer: stopped"):
        stream.drain()
    assert 0 < stream.bytes_out < len(NOISE)


def test_an_error_of_the_source_is_passed_on() -> None:
    class Broken:
        def read(self, size: int, /) -> bytes:
            raise ConnectionResetError("gone")

    with pytest.raises(ConnectionResetError):
        ArchiveStream(Broken(), GENEROUS, what="x", should_stop=lambda: False).read_up_to(1)


@given(st.binary(max_size=100))
def test_any_bytes_after_a_gzip_head_are_read_or_refused(data: bytes) -> None:
    body = zlib.compressobj(wbits=-15)
    deflated = body.compress(data) + body.flush()
    for source in (
        b"\x1f\x8b" + data,
        b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + data,
        b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + deflated,
    ):
        with pytest.raises(ArchiveError):
            everything(opened(source))
