"""Snapshots, encoded as JSON and decoded again."""

import json
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.debug.support.samples import PACKAGES, POOLS, TASKS, settings_answers, task
from wharfinger.debug.encoding.encoding import (
    answer_from_json,
    answer_to_json,
    pools_from_json,
    pools_to_json,
    queue_from_json,
    queue_to_json,
    queues_from_json,
    queues_to_json,
)
from wharfinger.debug.encoding.records import record_to_json
from wharfinger.formats.json.value import JsonValue, ShapeError, find
from wharfinger.runtime.inspector import (
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
def test_queues_survive_a_round_trip(tasks: list[TaskSnapshot]) -> None:
    queue = QueueSnapshot("name", tuple(tasks))
    assert queue_from_json("name", through_json(queue_to_json(queue))) == queue
    assert queues_from_json(through_json(queues_to_json([queue]))) == (queue,)


def test_pools_survive_a_round_trip_sorted_by_name() -> None:
    assert pools_from_json(through_json(pools_to_json(reversed(POOLS)))) == POOLS
    assert find(pools_to_json(POOLS), "pools", "/usr/bin/python3 #2", "problem") == "it has no os.fork"


def test_queues_are_sorted_by_name() -> None:
    queues = queues_from_json(queues_to_json(p.queue for p in reversed(PACKAGES)))
    assert [queue.name for queue in queues] == [p.name for p in PACKAGES]


Reader = Callable[[JsonValue], object]


@pytest.mark.parametrize(
    ("read", "value", "why"),
    [
        (queues_from_json, {"queues": 1}, "queues: expected an object"),
        (pools_from_json, {"pools": 1}, "pools: expected an object"),
        (pools_from_json, {"pools": {"a": {}}}, "pool"),
        (queues_from_json, {"queues": {"a": {"tasks": {}}}}, "tasks: expected a list"),
        (queues_from_json, {"queues": {"a": {"tasks": [{"running": True}]}}}, "tasks: index: required"),
        (
            queues_from_json,
            {"queues": {"a": {"tasks": [{**record_to_json(task(1)), "next_retry_seconds": True}]}}},
            "next_retry_seconds: Expected `float`, got `bool`",
        ),
    ],
)
def test_an_unexpected_shape_is_reported_with_its_field(read: Reader, value: JsonValue, why: str) -> None:
    with pytest.raises(ShapeError, match=why):
        read(value)


READERS: tuple[Reader, ...] = (queues_from_json, answer_from_json)
KEYS = st.sampled_from(["version", "started", "queues", "running", "tasks"])
NEARLY: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just("2026-01-01T00:00:00Z"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=15,
)


@given(NEARLY)
def test_readers_raise_only_shape_errors(value: JsonValue) -> None:
    for read in READERS:
        with suppress(ShapeError):
            read(value)


@given(answer=settings_answers())
def test_answers_about_settings_survive_a_round_trip(answer: SettingsAnswer) -> None:
    assert answer_from_json(through_json(answer_to_json(answer))) == answer


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([], "answer: expected an object"),
        ({}, "verdict: required"),
        ({"verdict": "Perhaps"}, "verdict: 'Perhaps' is not one of Valid, Invalid, Unknown"),
        ({"verdict": "Valid", "version": "1", "warnings": 1}, "warnings: expected a list"),
        ({"verdict": "Invalid", "version": "1", "problems": [1]}, "problems: expected an object"),
        ({"verdict": "Invalid", "version": "1", "problems": [{"path": 1}]}, "path: Expected `str`, got `int`"),
        ({"verdict": "Unknown", "message": []}, "why: Expected `str`, got `array`"),
    ],
)
def test_malformed_answers_about_settings_are_refused(value: JsonValue, says: str) -> None:
    with pytest.raises(ShapeError, match=says):
        answer_from_json(value)
