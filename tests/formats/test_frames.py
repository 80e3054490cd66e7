import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.frames import MAX_FRAME_BYTES, FrameError, FrameReader, framed


@given(st.lists(st.binary(max_size=50), max_size=5), st.data())
def test_frames_are_read_from_pieces_of_any_size(payloads: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(map(framed, payloads))
    reader, got = FrameReader(50), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        reader.feed(stream[:size])
        stream = stream[size:]
        while (payload := reader.take()) is not None:
            got.append(payload)
    assert got == payloads


def test_a_frame_over_the_limit_is_refused_at_its_length() -> None:
    reader = FrameReader(10)
    reader.feed(framed(b"x" * 10))
    assert reader.take() == b"x" * 10
    reader.feed((11).to_bytes(4, "big"))
    with pytest.raises(FrameError, match="11 bytes is over the limit of 10"):
        reader.take()


def test_a_payload_that_is_too_large_is_not_sent() -> None:
    with pytest.raises(FrameError, match="do not fit"):
        framed(bytes(MAX_FRAME_BYTES + 1))
