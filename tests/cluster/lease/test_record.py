"""Leases as they are read and written."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scale import scaled
from wharfinger.cluster.lease.record import MAX_FENCE, Claim, LeaseRecord, lease_spec, read_lease, whole_seconds
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError

NOW = datetime(2026, 1, 1, 0, 0, 0, 5, tzinfo=UTC)
OURS = Claim("us", 4, 15)


def lease(spec: JsonValue, **metadata: JsonValue) -> JsonObject:
    return {"metadata": {"uid": "u", "resourceVersion": "7", **metadata}, "spec": spec}


def test_a_written_lease_is_read_back() -> None:
    spec = lease_spec(OURS, None, NOW)
    assert spec == {
        "holderIdentity": "us",
        "leaseDurationSeconds": 15,
        "leaseTransitions": 4,
        "renewTime": "2026-01-01T00:00:00.000005Z",
        "acquireTime": "2026-01-01T00:00:00.000005Z",
    }
    assert read_lease(lease(spec)) == LeaseRecord("u", "7", "us", 4, 15, 1767225600000005)


def test_a_renewal_retains_the_acquire_time_and_a_release_has_no_holder() -> None:
    before = read_lease(lease(lease_spec(OURS, None, NOW)))
    assert "acquireTime" not in lease_spec(OURS, before, NOW)
    assert lease_spec(Claim("", 4, 15), before, NOW)["holderIdentity"] is None


@given(st.datetimes(), st.datetimes())
def test_each_renewal_changes_the_mark_whatever_the_clock_shows(first: datetime, second: datetime) -> None:
    before = read_lease(lease(lease_spec(OURS, None, first.replace(tzinfo=UTC))))
    after = read_lease(lease(lease_spec(OURS, before, second.replace(tzinfo=UTC)), resourceVersion="8"))
    assert after.mark != before.mark
    assert after.renewed_us > before.renewed_us


def test_a_label_does_not_change_the_mark() -> None:
    spec = lease_spec(OURS, None, NOW)
    assert read_lease(lease(spec)).mark == read_lease(lease(spec, resourceVersion="9", labels={"a": "b"})).mark


@pytest.mark.parametrize(
    "time", ["", "yesterday", "2026-01-01", "0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59+00:00"]
)
def test_invalid_times_are_read_as_zero(time: str) -> None:
    record = read_lease(lease({"renewTime": time}))
    assert record.renewed_us == 0 or time == "2026-01-01"
    assert read_lease(lease(lease_spec(OURS, record, NOW))).mark != record.mark


def test_a_time_at_the_end_of_the_calendar_still_changes_the_mark() -> None:
    for micros in ("58.999999", "59.000000", "00.000000", "00.000001"):
        record = read_lease(lease({"renewTime": f"9999-12-31T00:00:{micros}Z"}))
        assert read_lease(lease(lease_spec(OURS, record, NOW))).mark != record.mark


@pytest.mark.parametrize(
    "obj",
    [
        lease({"holderIdentity": 5}),
        lease({"leaseTransitions": -1}),
        lease({"leaseTransitions": MAX_FENCE + 1}),
        lease({"leaseDurationSeconds": "15"}),
        lease({"leaseDurationSeconds": -5}),
        {"metadata": {"uid": 5}},
    ],
)
def test_malformed_leases_are_refused(obj: JsonObject) -> None:
    with pytest.raises(ShapeError):
        read_lease(obj)


JSON: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FIELDS = ["holderIdentity", "leaseTransitions", "leaseDurationSeconds", "renewTime"]


@pytest.mark.slow
@settings(max_examples=scaled(5_000, 200))
@given(st.dictionaries(st.sampled_from(FIELDS), JSON), JSON)
def test_any_lease_is_read_or_refused(spec: JsonObject, uid: JsonValue) -> None:
    try:
        record = read_lease(lease(spec, uid=uid))
    except FormatError:
        return
    assert read_lease(lease(lease_spec(OURS, record, NOW + timedelta(days=1)), uid=uid)).mark != record.mark


def test_durations_are_rounded_up_to_whole_seconds() -> None:
    assert [whole_seconds(seconds) for seconds in (0.01, 1, 1.2, 15)] == [1, 1, 2, 15]
