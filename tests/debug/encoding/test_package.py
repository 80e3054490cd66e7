"""Packages, encoded as JSON and decoded again."""

import json
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.debug.support.samples import BUSY, MOMENT, PACKAGES, packages
from wharfinger.debug.encoding.package import package_from_json, package_to_json, packages_from_json, packages_to_json
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, find_object
from wharfinger.runtime.inspector import ConditionSnapshot, PackageSnapshot

STATUS = find_object(package_to_json(PACKAGES[0]), "status")


def through_json(value: JsonValue) -> JsonValue:
    loaded: JsonValue = json.loads(json.dumps(value))
    return loaded


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


def test_running_operations_of_a_package_have_the_documented_shape() -> None:
    document = package_to_json(BUSY)
    status = document["status"]
    assert isinstance(status, dict)
    assert {key: status[key] for key in ("suspended", "maintenance", "progress", "warnings")} == {
        "suspended": True,
        "maintenance": "NoResourceReconciliation",
        "progress": {"completed": 3, "remaining": 1, "waiting_for": ["Deployment prod/busy"]},
        "warnings": ["settings.old: is deprecated"],
    }
    more = ("waits_for", "operations", "monitors", "crds", "unmatched_overrides", "urls", "drift")
    assert {key: document[key] for key in more} == {
        "waits_for": ["renders"],
        "operations": [
            {
                "operation": "reconciliation",
                "completed": ["beforeHelm/hooks/a.sh"],
                "in_flight": ["apply/1"],
                "interrupted": ["afterHelm/1/b"],
            }
        ],
        "monitors": [
            {
                "hook": "hooks/001-config.sh",
                "binding": "configmaps",
                "listed": True,
                "locked": False,
                "objects": 7,
                "watches": 1,
                "waiting": 2,
                "events": 40,
                "dropped": 1,
                "last_error": "no such field",
            }
        ],
        "crds": {"established": True, "kinds": ["example.com/v1/Thing"]},
        "unmatched_overrides": ["Deployment gone"],
        "urls": ["https://web.example"],
        "drift": ["Deployment.apps prod/busy: /spec/replicas is set by kubectl"],
    }
    assert not {*more} & package_to_json(PACKAGES[0]).keys()
    assert package_to_json(replace(BUSY, crds=None))["crds"] == {"established": False, "kinds": []}


def test_secrets_are_not_part_of_the_dump() -> None:
    assert package_to_json(replace(PACKAGES[0], secrets=("hunter2",))) == package_to_json(PACKAGES[0])


def test_a_package_of_an_older_daemon_is_read() -> None:
    older = {
        key: item for key, item in package_to_json(PACKAGES[0]).items() if key not in {"installed", "values", "hooks"}
    }
    read = package_from_json(older)
    assert (read.name, read.installed_version, read.values, read.hooks) == ("ingress", "", {}, ())


@given(packages())
def test_packages_survive_a_round_trip(package: PackageSnapshot) -> None:
    assert package_from_json(through_json(package_to_json(package))) == package
    assert packages_from_json(through_json(packages_to_json([package]))) == (package,)


def test_times_are_sent_in_utc() -> None:
    elsewhere = MOMENT.astimezone(timezone(timedelta(hours=3)))
    condition = ConditionSnapshot("A", "True", "", "", elsewhere)
    sent = package_to_json(replace(PACKAGES[0], conditions=(condition,)))
    assert package_from_json(sent).conditions[0].last_transition == MOMENT


def test_packages_are_sorted_by_name() -> None:
    assert [p.name for p in packages_from_json(packages_to_json(reversed(PACKAGES)))] == [p.name for p in PACKAGES]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"name": None}, "name"),
        ({"kind": None}, "package: kind: required"),
        ({"settings": []}, "settings: expected an object"),
        ({"status": {"conditions": ["x"]}}, "package: state: required"),
        ({"status": {**STATUS, "conditions": ["x"]}}, "conditions: expected an object"),
        ({"values": 1}, "values: expected an object"),
        ({"hooks": [1]}, "hooks: expected an object"),
        ({"hooks": [{"name": "h", "bindings": [1], "runs": 1}]}, "bindings: Expected `str`, got `int`"),
        ({"hooks": [{"name": "h", "bindings": [], "runs": 1, "last_run": 1}]}, "last_run: expected a string"),
        ({"status": {**STATUS, "suspended": 1}}, "suspended: Expected `bool`, got `int`"),
        ({"status": {**STATUS, "progress": 1}}, "progress: expected an object"),
        ({"status": {**STATUS, "warnings": [1]}}, "warnings: Expected `str`, got `int`"),
        ({"crds": []}, "crds: expected an object"),
        ({"crds": {}}, "established: expected a boolean"),
        ({"operations": [1]}, "operations: expected an object"),
        ({"operations": [{}]}, "operations: operation: required"),
        ({"monitors": [{"hook": "h", "binding": "b"}]}, "monitors: listed: required"),
    ],
)
def test_an_unexpected_shape_of_a_package_is_reported_with_its_field(value: JsonObject, why: str) -> None:
    with pytest.raises(ShapeError, match=why):
        package_from_json({**package_to_json(PACKAGES[0]), **value})


@pytest.mark.parametrize(
    ("value", "why"), [({"apps": [1]}, "apps: expected an object"), ({"modules": {"a": 1}}, "name")]
)
def test_an_unexpected_shape_of_the_dump_is_reported_with_its_field(value: JsonValue, why: str) -> None:
    with pytest.raises(ShapeError, match=why):
        packages_from_json(value)


KEYS = st.sampled_from(
    ["name", "kind", "apps", "hooks", "bindings", "last_run", "status", "crds", "operations", "monitors", "progress"]
)
NEARLY: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just("2026-01-01T00:00:00Z"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=15,
)


@given(NEARLY)
def test_readers_raise_only_shape_errors(value: JsonValue) -> None:
    named: JsonValue = {**value, "name": "a", "kind": "Module"} if isinstance(value, dict) else value
    for each in (value, named):
        with suppress(ShapeError):
            package_from_json(each)
        with suppress(ShapeError):
            packages_from_json(each)
