"""Nodes of the scheduler, encoded as JSON and decoded again."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.debug.support.samples import NODE_SNAPSHOTS, NODES, WAITING_NODE
from wharfinger.debug.encoding.node import node_to_json, nodes_from_json, nodes_to_json
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError
from wharfinger.runtime.scheduler_details import NodeSnapshot


def through_json(value: JsonValue) -> JsonValue:
    loaded: JsonValue = json.loads(json.dumps(value))
    return loaded


def test_the_dump_of_the_scheduler_has_the_documented_shape() -> None:
    assert nodes_to_json(NODES) == {
        "nodes": {
            "ingress": {
                "version": "1.2.3",
                "order": 10,
                "state": "active",
                "decision": {"kind": "Enable", "reason": "DynamicallyEnabled", "message": ""},
                "dependencies": {},
                "declared_order": 0,
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
                "declared_order": 0,
            },
        }
    }


def test_a_node_with_all_fields_has_the_documented_shape() -> None:
    assert node_to_json(WAITING_NODE) == {
        "version": "2.0.0",
        "order": 999,
        "state": "idle",
        "decision": {"kind": "Enable", "reason": "EnabledByDefault", "message": "waits for prod.shop"},
        "dependencies": {
            "metrics": {"constraint": "", "optional": True},
            "prod.shop": {"constraint": "~1.2", "optional": False},
        },
        "declared_order": 500,
        "run": 4,
        "failed": True,
        "since": "2026-05-17T12:30:45.123456Z",
        "lacks": [
            {"kind": "package", "name": "prod.shop", "state": "idle"},
            {"kind": "tier", "name": "000010", "state": "waiting"},
        ],
        "votes": [
            {"verdict": "Enable", "reason": "EnabledByDefault", "message": ""},
            {"verdict": "Disable", "reason": "ByScript", "message": "the script said no"},
        ],
        "groups": [
            {
                "kind": "anyOf",
                "name": "database",
                "members": {
                    "mysql": {"constraint": ">=8", "optional": False},
                    "postgres": {"constraint": "", "optional": False},
                },
            },
            {"kind": "noneOf", "name": "old", "members": {"legacy": {"constraint": "<1", "optional": False}}},
        ],
        "dependents": ["prod.front", "test.front"],
        "subscriptions": ["ingress"],
    }
    assert nodes_from_json(through_json(nodes_to_json([WAITING_NODE]))) == (WAITING_NODE,)


def test_a_node_of_an_older_daemon_is_read() -> None:
    older: JsonObject = {"nodes": {"a": {"version": "", "order": 7, "state": "idle"}}}
    (node,) = nodes_from_json(older)
    assert node == NodeSnapshot("a", "", 7, "idle", "", "", "", (), declared_order=7)


def test_keys_of_a_newer_daemon_are_ignored() -> None:
    newer: JsonObject = {"nodes": {"prod.web": {**node_to_json(WAITING_NODE), "invented": {"later": True}}}}
    assert nodes_from_json(newer) == (WAITING_NODE,)


@given(st.lists(NODE_SNAPSHOTS, max_size=3, unique_by=lambda node: node.name))
def test_nodes_survive_a_round_trip(nodes: list[NodeSnapshot]) -> None:
    expected = tuple(sorted(nodes, key=lambda node: node.name))
    assert nodes_from_json(through_json(nodes_to_json(nodes))) == expected


@pytest.mark.parametrize(
    ("node", "why"),
    [
        ({"state": None}, "node: state: required"),
        ({"state": "idle", "dependencies": {"b": {"constraint": ""}}}, "dependencies: optional: required"),
        ({"state": "idle", "order": "x"}, "order: expected an integer"),
        ({"state": "idle", "declared_order": "x"}, "declared_order: expected an integer"),
        ({"state": "idle", "run": True}, "run: Expected `int`, got `bool`"),
        ({"state": "idle", "failed": 1}, "failed: Expected `bool`, got `int`"),
        ({"state": "idle", "since": "yesterday"}, "since: expected a time with a time zone, found 'yesterday'"),
        ({"state": "idle", "since": 1}, "since: expected a string"),
        ({"state": "idle", "lacks": {}}, "lacks: expected a list"),
        ({"state": "idle", "lacks": [1]}, "lacks: expected an object"),
        ({"state": "idle", "lacks": [{}]}, "kind: required"),
        ({"state": "idle", "votes": ["Enable"]}, "votes: expected an object"),
        ({"state": "idle", "votes": [{}]}, "verdict: required"),
        ({"state": "idle", "groups": [[]]}, "groups: expected an object"),
        (
            {"state": "idle", "groups": [{"kind": "allOf", "name": "x", "members": {}}]},
            "groups: kind: 'allOf' is not one of anyOf, noneOf",
        ),
        ({"state": "idle", "groups": [{"kind": "anyOf", "members": []}]}, "members: expected an object"),
        ({"state": "idle", "groups": [{"kind": "anyOf", "members": {"a": 1}}]}, "dependencies: expected an object"),
        ({"state": "idle", "dependents": [1]}, "dependents: Expected `str`, got `int`"),
        ({"state": "idle", "subscriptions": "a"}, "subscriptions: expected a list"),
    ],
)
def test_an_unexpected_shape_is_reported_with_its_field(node: JsonObject, why: str) -> None:
    with pytest.raises(ShapeError, match=why):
        nodes_from_json({"nodes": {"a": {**node_to_json(WAITING_NODE), **node}}})


def test_nodes_that_are_not_an_object_are_refused() -> None:
    with pytest.raises(ShapeError, match="nodes: expected an object"):
        nodes_from_json({"nodes": []})


KEYS = st.sampled_from(
    ["order", "state", "since", "lacks", "votes", "groups", "kind", "members", "dependents", "failed"]
)
NEARLY: st.SearchStrategy[JsonValue] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=3)
    | st.sampled_from(["anyOf", "2026-01-01T00:00:00Z"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=15,
)


@given(NEARLY, st.dictionaries(KEYS, NEARLY))
def test_the_reader_raises_only_shape_errors(value: JsonValue, keys: JsonObject) -> None:
    sound = node_to_json(WAITING_NODE)
    shapes: list[JsonValue] = [value, {"nodes": value}, {"nodes": {"a": {**sound, **keys}}}]
    for shape in shapes:
        with suppress(ShapeError):
            nodes_from_json(shape)
