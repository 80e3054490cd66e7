"""The encoding of records as bytes, and the refusal of invalid bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.runtime.recording.canonical import CanonicalError
from wharfinger.runtime.recording.record import (
    FORMAT,
    EventRecord,
    GapRecord,
    HeadRecord,
    Record,
    StateRecord,
    Why,
    encoded,
    read_record,
)


@pytest.mark.parametrize(
    "record",
    [
        EventRecord(1, 2.5, "queue", "shop.web#1", ["Finished", 1], None, [1, None, {}], []),
        StateRecord(2, 3.0, "status", "shop.web", {"a": None}, Why.RENEWED),
        HeadRecord(0, 4.0, FORMAT, "1.2.3", 77, first=True),
        GapRecord(0, 5.0, 12),
    ],
)
def test_a_record_survives_a_round_trip(record: Record) -> None:
    assert read_record(encoded(record)) == record


@given(st.binary(max_size=60) | st.sampled_from([b"[]", b'["e",1]', b'["s",1,2,"a","b",null,"never"]', b'["h",true]']))
def test_invalid_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(CanonicalError, match="expected a record"):
        read_record(data)
