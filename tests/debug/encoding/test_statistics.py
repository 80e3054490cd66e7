"""The statistics of a daemon, encoded as JSON and decoded again."""

import json
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.debug.support.samples import STATISTICS, all_statistics
from wharfinger.debug.encoding.statistics import statistics_from_json, statistics_to_json
from wharfinger.formats.json.value import JsonValue, ShapeError
from wharfinger.runtime.daemon_details import StatisticsSnapshot


def test_statistics_have_the_documented_shape() -> None:
    assert statistics_to_json(STATISTICS) == {
        "queues": {
            "queues": 3,
            "tasks": 12,
            "running": 2,
            "backing_off": 4,
            "parked": 1,
            "retired": 5210,
            "dropped": 17,
            "failures": 40,
            "bugs": 0,
        },
        "slots": {
            "work": {"limit": 16, "used": 6, "waiting": 3},
            "renders": {"limit": 2, "used": 2, "waiting": 3},
            "api": {"limit": 32, "used": 1, "waiting": 0},
        },
        "trying_crds": ["ingress", "metrics"],
        "schedules": {"crontabs": 3, "ticks": 17, "next_due": "2026-05-17T12:30:45.123456Z"},
        "monitors": {
            "monitors": 12,
            "listed": 11,
            "objects": 340,
            "watches": 14,
            "waiting": 2,
            "events": 900,
            "dropped": 1,
        },
        "filters": {"workers": 2, "requests": 1200, "replaced": 1},
        "rules": {"workers": 1, "requests": 30, "replaced": 0},
        "store": {"locked": 2, "temporary": 1, "pinned": 4},
        "objects": {
            "health": "Degraded, 2 errors",
            "objects": 40,
            "pending": 3,
            "refreshing": 1,
            "failing": 1,
            "slow": 2,
            "pruned": 7,
            "prune_errors": 1,
        },
    }
    uncounted = statistics_to_json(replace(STATISTICS, filters=None, rules=None, store=None))
    assert not {"filters", "rules", "store"} & uncounted.keys()


@given(all_statistics())
def test_statistics_survive_a_round_trip(statistics: StatisticsSnapshot) -> None:
    assert statistics_from_json(json.loads(json.dumps(statistics_to_json(statistics)))) == statistics


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("queues", {}, "queues: queues: required"),
        ("queues", [], "queues: expected an object"),
        ("monitors", {"monitors": "1"}, "monitors: Expected `int`, got `str`"),
        ("filters", 1, "filters: expected an object"),
        ("slots", {"work": {"limit": True}}, "limit: Expected `int`, got `bool`"),
        ("slots", [], "slots: expected an object"),
        ("trying_crds", [1], "trying_crds: Expected `str`, got `int`"),
        (
            "schedules",
            {"crontabs": 1, "ticks": 1, "next_due": "soon"},
            "next_due: expected a time with a time zone",
        ),
    ],
)
def test_an_unexpected_shape_is_reported_with_its_field(key: str, value: JsonValue, why: str) -> None:
    with pytest.raises(ShapeError, match=why):
        statistics_from_json({**statistics_to_json(STATISTICS), key: value})


def test_keys_of_a_newer_daemon_are_ignored() -> None:
    newer: JsonValue = {
        **statistics_to_json(STATISTICS),
        "invented": 1,
        "store": {"locked": 2, "temporary": 1, "pinned": 4, "x": 5},
    }
    assert statistics_from_json(newer) == STATISTICS


JSON: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["limit", "used", "x"]), inner),
    max_leaves=6,
)


@given(st.sampled_from(sorted(statistics_to_json(STATISTICS))), JSON)
def test_the_reader_raises_only_shape_errors(key: str, value: JsonValue) -> None:
    with suppress(ShapeError):
        statistics_from_json({**statistics_to_json(STATISTICS), key: value})
    with suppress(ShapeError):
        statistics_from_json(value)
