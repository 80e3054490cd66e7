"""Graphs of packages as JSON."""

import json

from hypothesis import given

from tests.debug.support.graph_samples import GRAPH, GRAPHS
from wharfinger.debug.graph.json import graph_to_json
from wharfinger.debug.graph.model import Graph, surroundings_of
from wharfinger.debug.printing.output import render_json
from wharfinger.formats.json.value import find, find_list, find_str
from wharfinger.formats.terminal_text import is_safe


def test_the_graph_around_a_package_has_the_documented_shape() -> None:
    found = surroundings_of(GRAPH, "prod.shop")
    assert found is not None
    shape = graph_to_json(found)
    assert shape["focus"] == "prod.shop"
    nodes = {find_str(node, "name"): node for node in find_list(shape, "nodes")}
    assert nodes["ingress"] == {
        "name": "ingress",
        "state": "active",
        "kind": "Module",
        "version": "1.0.0",
        "order": 10,
        "status": "Ready",
        "since": "2026-05-17T12:30:45.123456Z",
    }
    assert nodes["prod.web"] == {
        "name": "prod.web",
        "state": "waiting",
        "version": "2.0.0",
        "order": 999,
        "message": "waits for prod.shop",
        "waits_for": ["prod.shop (scheduled)"],
        "since": "2026-05-17T12:30:45.123456Z",
    }
    assert find_list(shape, "edges") == [
        {"source": "prod.shop", "target": "ingress", "kind": "needs", "constraint": ">=1"},
        {"source": "prod.web", "target": "ingress", "kind": "subscribes"},
        {"source": "prod.web", "target": "prod.shop", "kind": "needs", "constraint": "~1.2", "waited_for": True},
    ]


def test_the_graph_of_all_packages_has_no_focus() -> None:
    shape = graph_to_json(GRAPH)
    assert "focus" not in shape
    assert {find_str(node, "name"): find_str(node, "state") for node in find_list(shape, "nodes")} == {
        "ingress": "active",
        "legacy": "off",
        "metrics": "absent",
        "mysql": "absent",
        "postgres": "absent",
        "prod.new": "not loaded",
        "prod.shop": "scheduled",
        "prod.web": "waiting",
    }
    assert {
        "source": "prod.web",
        "target": "legacy",
        "kind": "excludes",
        "group": "old",
        "constraint": "<1",
    } in find_list(shape, "edges")
    assert graph_to_json(Graph((), ())) == {"nodes": [], "edges": []}


@given(GRAPHS)
def test_any_graph_is_encoded_completely(graph: Graph) -> None:
    document = render_json(graph_to_json(graph))
    assert document == render_json(graph_to_json(graph))
    assert is_safe(document, allow="\n")
    read = json.loads(document)
    shown = [node.name.replace("\ud800", "?") for node in graph.nodes]
    assert [find(node, "name") for node in read["nodes"]] == shown
    names = {node.name: name for node, name in zip(graph.nodes, shown, strict=True)}
    assert [(find(each, "source"), find(each, "target"), find(each, "kind")) for each in read["edges"]] == [
        (names[edge.source], names[edge.target], edge.kind) for edge in graph.edges
    ]
