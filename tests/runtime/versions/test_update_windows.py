"""Update windows: local times, windows across midnight, clock changes, and invalid windows."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.runtime.versions.update_windows import DAYS, read_windows


def opening(value: JsonObject, now: str) -> str:
    found = read_windows(value, "spec.update").opening(datetime.fromisoformat(now))
    assert found is not None
    return found.astimezone(UTC).isoformat()


NIGHT: JsonObject = {"windows": [{"days": ["Fri"], "from": "22:00", "to": "04:00"}], "timeZone": "Europe/Berlin"}
TWO_THIRTY: JsonObject = {"windows": [{"from": "02:30", "to": "02:45"}], "timeZone": "Europe/Berlin"}

CASES: tuple[tuple[str, JsonObject, str, str], ...] = (
    ("before it", NIGHT, "2026-11-27T20:59:59+00:00", "2026-11-27T21:00:00+00:00"),
    ("its first moment", NIGHT, "2026-11-27T21:00:00+00:00", "2026-11-27T21:00:00+00:00"),
    ("after midnight it is still Friday's", NIGHT, "2026-11-28T02:59:59+00:00", "2026-11-28T02:59:59+00:00"),
    ("its end", NIGHT, "2026-11-28T03:00:00+00:00", "2026-12-04T21:00:00+00:00"),
    ("Thursday's night is none", NIGHT, "2026-11-26T23:00:00+00:00", "2026-11-27T21:00:00+00:00"),
    ("every day", {"windows": [{}]}, "2026-11-26T23:00:00+00:00", "2026-11-26T23:00:00+00:00"),
    ("until midnight", {"windows": [{"from": "23:00"}]}, "2026-11-26T00:00:00+00:00", "2026-11-26T23:00:00+00:00"),
    (
        "the nearest",
        {"windows": [{"days": ["Sun"]}, {"days": ["Sat"]}]},
        "2026-11-26T00:00:00+00:00",
        "2026-11-28T00:00:00+00:00",
    ),
    ("summer's clock", TWO_THIRTY, "2026-07-01T00:00:00+00:00", "2026-07-01T00:30:00+00:00"),
    ("a time that the clock skips", TWO_THIRTY, "2026-03-29T00:00:00+00:00", "2026-03-29T01:30:00+00:00"),
    ("a time that comes twice", TWO_THIRTY, "2026-10-25T00:00:00+00:00", "2026-10-25T00:30:00+00:00"),
)


@pytest.mark.parametrize(("name", "value", "now", "opens"), CASES)
def test_the_next_opening_of_a_window_is_computed(name: str, value: JsonObject, now: str, opens: str) -> None:
    assert opening(value, now) == opens


def test_without_windows_there_is_no_opening() -> None:
    assert read_windows({}, "spec.update").opening(datetime(2026, 1, 1, tzinfo=UTC)) is None


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"timeZone": "Berlin"}, "spec.update.timeZone: expected a time zone such as Europe/Berlin, found 'Berlin'"),
        ({"timeZone": "../etc"}, "spec.update.timeZone"),
        ({"windows": [{"from": "24:00"}]}, "spec.update.windows[0].from: expected a time such as 22:30, found '24:00'"),
        ({"windows": [{"to": "4"}]}, "spec.update.windows[0].to"),
        ({"windows": [{"days": ["Monday"]}]}, "spec.update.windows[0].days: expected one of Mon, Tue"),
        ({"windows": [{"from": "04:00", "to": "04:00"}]}, "expected an end that differs from the start"),
        ({"windows": [{}] * 51}, "expected at most 50 windows, found 51"),
    ],
)
def test_invalid_windows_are_refused(value: JsonObject, said: str) -> None:
    with pytest.raises(FormatError) as raised:
        read_windows(value, "spec.update")
    assert said in str(raised.value)


CLOCK = st.builds("{:02}:{:02}".format, st.integers(0, 23), st.integers(0, 59))
ZONES = st.sampled_from(("UTC", "Europe/Berlin", "America/New_York", "Pacific/Apia", "Australia/Lord_Howe"))


@given(
    st.lists(st.tuples(st.sets(st.sampled_from(DAYS)), CLOCK, CLOCK), min_size=1, max_size=3),
    ZONES,
    st.integers(0, 2 * 365 * 24 * 60),
)
def test_every_window_opens_within_eight_days(drawn: list[tuple[set[str], str, str]], zone: str, minutes: int) -> None:
    """The next opening is not in the past, and the window is open at that time."""
    now = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    entries: list[JsonValue] = [
        {"days": [*sorted(days)], "from": start, "to": end} for days, start, end in drawn if start != end
    ]
    if not entries:
        return
    windows = read_windows({"windows": entries, "timeZone": zone}, "x")
    opens = windows.opening(now)
    assert opens is not None
    assert now <= opens <= now + timedelta(days=8)
    assert windows.opening(opens) == opens
