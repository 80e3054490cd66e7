"""Snapshots to JSON and back."""

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.debug.support.samples import DAEMON, PACKAGES, TASKS, settings_answers
from wharfinger.debug.encoding.encoding import (
    answer_from_json,
    answer_to_json,
    daemon_from_json,
    daemon_to_json,
    queue_from_json,
    queue_to_json,
    queues_from_json,
    queues_to_json,
)
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError
from wharfinger.runtime.inspector import (
    DaemonSnapshot,
    QueueSnapshot,
    SettingsAnswer,
    TaskSnapshot,
)


def through_json(value: JsonValue) -> JsonValue:
    loaded: JsonValue = json.loads(json.dumps(value))
    return loaded


def test_the_dump_of_queues_has_the_documented_shape() -> None:
    empty = QueueSnapshot("ingress", ())
    assert queues_to_json([PACKAGES[1].queue, empty]) == {
        "queues": {
            "prod.shop": {
                "length": 2,
                "tasks": [
                    {
                        "index": 1,
                        "name": "Task1",
                        "lane": "main",
                        "attempt": 1,
                        "running": False,
                        "enqueued": "12.5s",
                        "enqueued_seconds": 12.5,
                        "next_retry": "14.2s",
                        "next_retry_seconds": 14.25,
                        "error": "connection refused",
                        "cause": "version changed",
                    },
                    {
                        "index": 2,
                        "name": "Task2",
                        "lane": "main",
                        "attempt": 2,
                        "running": False,
                        "enqueued": "25.0s",
                        "enqueued_seconds": 25.0,
                    },
                ],
            },
            "ingress": {"length": 0},
        }
    }


@given(st.lists(TASKS, max_size=4))
def test_queues_come_back(tasks: list[TaskSnapshot]) -> None:
    queue = QueueSnapshot("name", tuple(tasks))
    assert queue_from_json("name", through_json(queue_to_json(queue))) == queue
    assert queues_from_json(through_json(queues_to_json([queue]))) == (queue,)


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
    )
)
def test_the_daemon_comes_back(daemon: DaemonSnapshot) -> None:
    assert daemon_from_json(through_json(daemon_to_json(daemon))) == daemon


def test_queues_are_sorted_by_name() -> None:
    queues = queues_from_json(queues_to_json(p.queue for p in reversed(PACKAGES)))
    assert [queue.name for queue in queues] == [p.name for p in PACKAGES]


def test_keys_of_a_newer_daemon_are_ignored() -> None:
    newer: JsonObject = {**daemon_to_json(DAEMON), "invented": {"later": True}}
    assert daemon_from_json(newer) == DAEMON


Reader = Callable[[JsonValue], object]


@pytest.mark.parametrize(
    ("read", "value", "why"),
    [
        (daemon_from_json, {**daemon_to_json(DAEMON), "started": "yesterday"}, "not a time"),
        (daemon_from_json, {**daemon_to_json(DAEMON), "started": "2026-05-17T12:30:45"}, "no time zone"),
        (daemon_from_json, {**daemon_to_json(DAEMON), "started": None}, "started"),
        (daemon_from_json, {**daemon_to_json(DAEMON), "ready": "yes"}, "ready: expected a boolean"),
        (daemon_from_json, {**daemon_to_json(DAEMON), "pid": 1.5}, "pid: expected an integer"),
        (daemon_from_json, [], "version|started"),
        (queues_from_json, {"queues": 1}, "queues: expected an object"),
        (queues_from_json, {"queues": {"a": {"tasks": {}}}}, "tasks: expected a list"),
        (queues_from_json, {"queues": {"a": {"tasks": [{"running": True}]}}}, "enqueued_seconds: expected a number"),
        (
            queues_from_json,
            {"queues": {"a": {"tasks": [{"running": True, "enqueued_seconds": 1, "next_retry_seconds": True}]}}},
            "next_retry_seconds: expected a number",
        ),
    ],
)
def test_another_shape_is_named(read: Reader, value: JsonValue, why: str) -> None:
    with pytest.raises(ShapeError, match=why):
        read(value)


def test_moments_are_kept_to_the_microsecond() -> None:
    assert daemon_from_json(daemon_to_json(DAEMON)).started == datetime(2026, 5, 17, 12, 30, 45, 123456, tzinfo=UTC)


READERS: tuple[Reader, ...] = (daemon_from_json, queues_from_json)
KEYS = st.sampled_from(["version", "started", "queues", "running", "tasks"])
NEARLY: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just("2026-01-01T00:00:00Z"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=15,
)


@given(NEARLY)
def test_nothing_but_a_shape_error_comes_out_of_a_reader(value: JsonValue) -> None:
    for read in READERS:
        with suppress(ShapeError):
            read(value)


@given(answer=settings_answers())
def test_answers_about_settings_come_back_as_they_were(answer: SettingsAnswer) -> None:
    assert answer_from_json(through_json(answer_to_json(answer))) == answer


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([], "answer: expected an object"),
        ({}, "verdict: required"),
        ({"verdict": "Perhaps"}, "verdict: 'Perhaps' is none of Valid, Invalid, Unknown"),
        ({"verdict": "Valid", "warnings": 1}, "warnings: expected a list"),
        ({"verdict": "Invalid", "problems": [1]}, "problems: expected an object"),
        ({"verdict": "Invalid", "problems": [{"path": 1}]}, "path: expected a string"),
        ({"verdict": "Unknown", "message": []}, "message: expected a string"),
    ],
)
def test_what_is_no_answer_about_settings(value: JsonValue, says: str) -> None:
    with pytest.raises(ShapeError, match=says):
        answer_from_json(value)
