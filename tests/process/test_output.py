"""The limits on the output of a child process: the first bytes of stdout and the last bytes of stderr are kept."""

from hypothesis import given
from hypothesis import strategies as st

from wharfinger.process.output import CappedOutput, TailBuffer

chunks = st.lists(st.binary(max_size=40), max_size=30)


@given(chunks, st.integers(0, 200))
def test_a_cap_passes_the_first_bytes_and_notices_the_first_excess_byte(parts: list[bytes], limit: int) -> None:
    cap = CappedOutput(limit)

    passed = b"".join(cap.admit(part) for part in parts)

    whole = b"".join(parts)
    assert passed == whole[:limit]
    assert cap.passed == len(passed)
    assert cap.exceeded == (len(whole) > limit)


@given(chunks, st.integers(0, 200))
def test_a_tail_retains_the_last_bytes(parts: list[bytes], limit: int) -> None:
    tail = TailBuffer(limit)
    for part in parts:
        tail.add(part)
        assert len(tail._kept) <= 2 * limit + len(part)

    whole = b"".join(parts)
    assert tail.value() == whole[max(0, len(whole) - limit) :]
    tail.add(b"more")
    assert tail.value() == (whole + b"more")[max(0, len(whole) + 4 - limit) :]
