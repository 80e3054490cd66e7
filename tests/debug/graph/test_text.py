"""Graphs as text for a terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.debug.support.graph_samples import GRAPH, GRAPHS
from wharfinger.debug.graph.model import EdgeKind, Graph, GraphEdge, GraphNode, NodeState, surroundings_of
from wharfinger.debug.graph.text import ASCII, UNICODE, Branches, graph_to_text
from wharfinger.formats.terminal_text import is_safe, printable
from wharfinger.formats.text_width import width


def test_packages_are_listed_by_order() -> None:
    assert (
        graph_to_text(GRAPH, None)
        == """\
order 10: 1 package, 1 active
  ingress: 1.0.0, active, Ready
order 20: 1 package
  legacy: 0.9.0, off
  └─ somebody said no
order 999: 2 packages
  prod.shop: 1.2.3, scheduled
  └─ needs ingress >=1 (active)
  prod.web: 2.0.0, waiting, since 2026-05-17 12:30:45Z
  ├─ waits for prod.shop (scheduled)
  ├─ subscribes to ingress (active)
  ├─ excludes old: legacy <1 (off)
  ├─ optionally needs metrics (absent)
  ├─ needs any of database: mysql >=8 (absent)
  ├─ needs any of database: postgres (absent)
  └─ needs prod.shop ~1.2 (scheduled, waited for)
not in the scheduler: 1 package
  prod.new: 1.2.3, not loaded, Ready
  └─ all objects are healthy
named by others, but absent: 3 packages
  metrics: absent
  mysql: absent
  postgres: absent
"""
    )


def test_a_narrow_ascii_terminal_gets_wrapped_ascii_lines() -> None:
    found = surroundings_of(GRAPH, "prod.shop")
    assert found is not None
    assert (
        graph_to_text(found, 34, ASCII)
        == """\
order 10: 1 package, 1 active
  ingress: 1.0.0, active, Ready
order 999: 2 packages
  prod.shop (requested): 1.2.3,
    scheduled
  `- needs ingress >=1 (active)
  prod.web: 2.0.0, waiting, since
    2026-05-17 12:30:45Z
  |- waits for prod.shop
  |    (scheduled)
  |- subscribes to ingress
  |    (active)
  `- needs prod.shop ~1.2
       (scheduled, waited for)
"""
    )


def test_an_empty_graph_is_an_empty_text() -> None:
    assert graph_to_text(Graph((), ()), 80) == ""


def test_a_name_longer_than_a_line_is_broken() -> None:
    graph = Graph((GraphNode("漢" * 40, NodeState.ABSENT),), ())
    lines = graph_to_text(graph, 40).splitlines()
    assert [width(line) for line in lines[1:]] == [40, 40, 18]
    assert "".join(line.strip() for line in lines[1:]) == "漢" * 40 + ": absent"


@given(GRAPHS, st.sampled_from([ASCII, UNICODE]))
def test_any_graph_is_complete_and_without_control_characters(graph: Graph, branches: Branches) -> None:
    document = graph_to_text(graph, None, branches)
    assert document == graph_to_text(graph, None, branches)
    assert is_safe(document, allow="\n")
    lines = document.splitlines()
    for node in graph.nodes:
        shown, mark = printable(node.name) or '""', " (requested)" if node.name == graph.focus else ""
        assert any(line.startswith(f"  {shown}{mark}: {printable(node.caption)}") for line in lines)
    told = sum(bool(node.waits_for or node.message) for node in graph.nodes)
    drawn = [line for line in lines if line.startswith((f"  {branches.middle}", f"  {branches.last}"))]
    assert len(drawn) == len(graph.edges) + told


@given(GRAPHS, st.integers(30, 100))
def test_every_line_fits_the_terminal(graph: Graph, columns: int) -> None:
    document = graph_to_text(graph, columns)
    assert max((width(line) for line in document.splitlines()), default=0) <= columns
    whole = "".join(graph_to_text(graph, None).replace("│", "").split())
    assert "".join(document.replace("│", "").split()) == whole


@pytest.mark.parametrize("kind", EdgeKind)
def test_each_edge_shows_the_state_of_its_target(kind: EdgeKind) -> None:
    nodes = (GraphNode("a", NodeState.ACTIVE, order=1), GraphNode("b", NodeState.FAILED, order=1))
    document = graph_to_text(Graph(nodes, (GraphEdge("a", "b", kind),)), 80)
    assert document.splitlines()[2].startswith("  └─ ")
    assert document.splitlines()[2].endswith(" b (failed)")
