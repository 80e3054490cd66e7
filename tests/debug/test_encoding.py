"""Snapshots to JSON and back."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.debug.samples import DAEMON, MOMENT, NODE_SNAPSHOTS, NODES, PACKAGES, TASKS, packages, settings_answers
from wharfinger.debug.encoding import (
    answer_from_json,
    answer_to_json,
    daemon_from_json,
    daemon_to_json,
    duration,
    nodes_from_json,
    nodes_to_json,
    package_from_json,
    package_to_json,
    packages_from_json,
    packages_to_json,
    queue_from_json,
    queue_to_json,
    queues_from_json,
    queues_to_json,
)
from wharfinger.formats.json_value import JsonObject, JsonValue, ShapeError
from wharfinger.runtime.inspector import (
    ConditionSnapshot,
    DaemonSnapshot,
    NodeSnapshot,
    PackageSnapshot,
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


def test_the_dump_of_packages_has_the_documented_shape() -> None:
    dump = packages_to_json(PACKAGES)
    assert {kind: list(found) for kind, found in dump.items() if isinstance(found, dict)} == {
        "apps": ["prod.shop", "test.shop"],
        "modules": ["ingress"],
    }
    assert package_to_json(PACKAGES[0]) == {
        "name": "ingress",
        "kind": "Module",
        "namespace": "",
        "definition": {"name": "shop", "version": "1.2.3", "digest": PACKAGES[0].digest},
        "installed": {"version": "1.2.3", "digest": PACKAGES[0].digest},
        "release_revision": 3,
        "status": {
            "state": "Ready",
            "message": "all objects are healthy",
            "tip": "nothing to do",
            "conditions": [
                {
                    "type": "Loaded",
                    "status": "True",
                    "reason": "Loaded",
                    "message": "",
                    "lastTransitionTime": "2026-05-17T12:30:45.123456Z",
                }
            ],
        },
        "settings": {"replicas": 2},
        "values": {"replicas": 2, "internal": {"ready": True}},
        "hooks": [
            {
                "name": "hooks/001-config.sh",
                "bindings": ["onStartup 10", "kubernetes configmaps", "schedule nightly 0 3 * * *"],
                "runs": 3,
                "last_run": "2026-05-17T12:30:45.123456Z",
                "last_error": "exit 1",
            },
            {"name": "hooks/002-later.py", "bindings": [], "runs": 0},
        ],
        "queue": {"length": 0},
    }


def test_the_dump_of_the_scheduler_has_the_documented_shape() -> None:
    assert nodes_to_json(NODES) == {
        "nodes": {
            "ingress": {
                "version": "1.2.3",
                "order": 10,
                "state": "active",
                "decision": {"kind": "Enable", "reason": "DynamicallyEnabled", "message": ""},
                "dependencies": {},
            },
            "prod.shop": {
                "version": "1.2.3",
                "order": 999,
                "state": "idle",
                "decision": {"kind": "Enable", "reason": "EnabledByDefault", "message": "waits for ingress"},
                "dependencies": {
                    "ingress": {"constraint": ">=1.2", "optional": False},
                    "metrics": {"constraint": "", "optional": True},
                },
            },
        }
    }


def test_secrets_are_not_part_of_the_dump() -> None:
    assert package_to_json(replace(PACKAGES[0], secrets=("hunter2",))) == package_to_json(PACKAGES[0])


def test_a_package_of_an_older_daemon_is_read() -> None:
    older = {
        key: item for key, item in package_to_json(PACKAGES[0]).items() if key not in {"installed", "values", "hooks"}
    }
    read = package_from_json(older)
    assert (read.name, read.installed_version, read.values, read.hooks) == ("ingress", "", {}, ())


@given(st.lists(NODE_SNAPSHOTS, max_size=3, unique_by=lambda node: node.name))
def test_nodes_come_back(nodes: list[NodeSnapshot]) -> None:
    expected = tuple(sorted(nodes, key=lambda node: node.name))
    assert nodes_from_json(through_json(nodes_to_json(nodes))) == expected


@given(packages())
def test_packages_come_back(package: PackageSnapshot) -> None:
    assert package_from_json(through_json(package_to_json(package))) == package
    assert packages_from_json(through_json(packages_to_json([package]))) == (package,)


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
    )
)
def test_the_daemon_comes_back(daemon: DaemonSnapshot) -> None:
    assert daemon_from_json(through_json(daemon_to_json(daemon))) == daemon


def test_times_travel_in_utc() -> None:
    elsewhere = MOMENT.astimezone(timezone(timedelta(hours=3)))
    condition = ConditionSnapshot("A", "True", "", "", elsewhere)
    sent = package_to_json(replace(PACKAGES[0], conditions=(condition,)))
    assert package_from_json(sent).conditions[0].last_transition == MOMENT


def test_everything_is_sorted_by_name() -> None:
    assert [p.name for p in packages_from_json(packages_to_json(reversed(PACKAGES)))] == [p.name for p in PACKAGES]
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
        (package_from_json, {}, "name"),
        (package_from_json, {"name": "a"}, "kind"),
        (package_from_json, {"name": "a", "kind": "Module", "settings": []}, "settings: expected an object"),
        (package_from_json, {"name": "a", "kind": "Module", "status": {"conditions": ["x"]}}, "condition: expected"),
        (package_from_json, {"name": "a", "kind": "Module", "values": 1}, "values: expected an object"),
        (package_from_json, {"name": "a", "kind": "Module", "hooks": [1]}, "hook: expected an object"),
        (
            package_from_json,
            {"name": "a", "kind": "Module", "hooks": [{"name": "h", "bindings": [1]}]},
            "bindings: exp",
        ),
        (package_from_json, {"name": "a", "kind": "Module", "hooks": [{"name": "h", "last_run": 1}]}, "last_run"),
        (nodes_from_json, {"nodes": []}, "nodes: expected an object"),
        (nodes_from_json, {"nodes": {"a": {}}}, "state"),
        (
            nodes_from_json,
            {"nodes": {"a": {"state": "idle", "dependencies": {"b": {}}}}},
            "optional: expected a boolean",
        ),
        (packages_from_json, {"apps": [1]}, "apps: expected an object"),
        (packages_from_json, {"modules": {"a": 1}}, "name"),
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


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0ms"),
        (0.25, "250ms"),
        (0.9994, "999ms"),
        (0.9996, "1.0s"),
        (59.94, "59.9s"),
        (59.96, "1m00s"),
        (245, "4m05s"),
        (3599.6, "1h00m"),
        (10_940, "3h02m"),
        (86_400 * 2 + 3600 * 7, "2d07h"),
        (-14.2, "-14.2s"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@given(st.floats(0, 1e9))
def test_durations_are_near_enough(seconds: float) -> None:
    text = duration(seconds)
    units = {"d": 86400, "h": 3600, "m": 60, "s": 1}
    read = 0.0
    if text.endswith("ms"):
        read = float(text[:-2]) / 1000
    else:
        number = ""
        for character in text:
            if character in units:
                read += float(number) * units[character]
                number = ""
            else:
                number += character
    assert read == pytest.approx(seconds, rel=0.05, abs=0.001)


def test_moments_are_kept_to_the_microsecond() -> None:
    assert daemon_from_json(daemon_to_json(DAEMON)).started == datetime(2026, 5, 17, 12, 30, 45, 123456, tzinfo=UTC)


READERS: tuple[Reader, ...] = (
    daemon_from_json,
    packages_from_json,
    package_from_json,
    queues_from_json,
    nodes_from_json,
)
KEYS = st.sampled_from(
    ["name", "kind", "apps", "nodes", "hooks", "state", "dependencies", "bindings", "last_run", "tasks"]
)
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
