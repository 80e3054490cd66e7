"""Explanations and the daemon's snapshot, encoded as JSON and decoded again."""

import json
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.debug.support.samples import DAEMON, JSON_VALUES, WHY, WHY_READY, explanations
from wharfinger.debug.encoding.records import record_from_json, record_to_json
from wharfinger.formats.json.value import JsonValue, ShapeError
from wharfinger.runtime.daemon_details import DaemonSnapshot, LeaderSnapshot
from wharfinger.runtime.scheduler_details import ExplanationSnapshot


def read(value: JsonValue) -> ExplanationSnapshot:
    return record_from_json(value, ExplanationSnapshot, "explanation")


def read_daemon(value: JsonValue) -> DaemonSnapshot:
    return record_from_json(value, DaemonSnapshot, "daemon")


def test_an_explanation_has_the_documented_shape() -> None:
    assert record_to_json(WHY) == {
        "name": "prod.shop",
        "ready": False,
        "causes": [
            {"subject": "prod.shop", "state": "waits for ingress", "since": "2026-05-17T12:30:45.123456Z"},
            {
                "subject": "ingress",
                "state": "fails",
                "message": "PackageHookFailed: hooks/a.sh: exit status 3; attempt 4",
            },
        ],
        "remedy": "look at the hook's lines in the daemon's log",
        "also": ["prod.shop needs metrics"],
    }
    assert record_to_json(WHY_READY) == {"name": "ingress", "ready": True, "causes": []}


@given(explanations())
def test_explanations_survive_a_round_trip(explanation: ExplanationSnapshot) -> None:
    assert read(json.loads(json.dumps(record_to_json(explanation)))) == explanation


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ([], "explanation: expected an object"),
        ({"ready": True}, "name: required"),
        ({"name": "a"}, "ready: required"),
        ({"name": "a", "ready": 1}, "ready: Expected `bool`, got `int`"),
        ({"name": "a", "ready": True, "causes": {}}, "causes: expected a list"),
        ({"name": "a", "ready": True, "causes": [1]}, "causes: expected an object"),
        ({"name": "a", "ready": True, "causes": [{"subject": "a"}]}, "causes: state: required"),
        (
            {"name": "a", "ready": True, "causes": [{"subject": "a", "state": "b", "since": "soon"}]},
            "since: expected a time with a time zone, found 'soon'",
        ),
        ({"name": "a", "ready": True, "causes": [], "also": [1]}, "also: Expected `str`, got `int`"),
    ],
)
def test_an_unexpected_shape_is_reported_with_its_field(value: JsonValue, why: str) -> None:
    with pytest.raises(ShapeError, match=why):
        read(value)


def test_keys_of_a_newer_daemon_are_ignored() -> None:
    assert read({**record_to_json(WHY), "invented": 1}) == WHY


@given(st.sampled_from(["name", "ready", "causes", "remedy", "also"]), JSON_VALUES)
def test_the_reader_raises_only_shape_errors(key: str, value: JsonValue) -> None:
    with suppress(ShapeError):
        read({**record_to_json(WHY), key: value})
    with suppress(ShapeError):
        read({**record_to_json(WHY), "causes": [value]})
    with suppress(ShapeError):
        read(value)


@given(
    st.builds(
        DaemonSnapshot,
        version=st.text(),
        pid=st.integers(1, 2**22),
        started=st.datetimes(timezones=st.just(UTC)),
        ready=st.booleans(),
        cluster=st.text(),
        packages=st.integers(0, 2**31),
        draining=st.booleans(),
        standby=st.text(),
        leader=st.builds(LeaderSnapshot, leader=st.text(), fence=st.integers(0, 2**31), leads=st.booleans()),
        stale_watches=st.lists(st.text(), max_size=3).map(tuple),
    )
)
def test_the_daemon_survives_a_round_trip(daemon: DaemonSnapshot) -> None:
    assert read_daemon(json.loads(json.dumps(record_to_json(daemon)))) == daemon


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("started", "yesterday", "started: expected a time with a time zone, found 'yesterday'"),
        ("started", "2026-05-17T12:30:45", "started: expected a time with a time zone, found "),
        ("started", None, "daemon: started: required"),
        ("ready", "yes", "ready: Expected `bool`, got `str`"),
        ("pid", 1.5, "pid: Expected `int`, got `float`"),
    ],
)
def test_a_wrong_value_of_the_daemon_is_reported_with_its_field(key: str, value: JsonValue, why: str) -> None:
    with pytest.raises(ShapeError, match=why):
        read_daemon({**record_to_json(DAEMON), key: value})


def test_times_keep_their_microseconds() -> None:
    assert read_daemon(record_to_json(DAEMON)).started == datetime(2026, 5, 17, 12, 30, 45, 123456, tzinfo=UTC)
