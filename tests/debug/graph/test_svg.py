"""Graphs as SVG pictures."""

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

from hypothesis import given

from tests.debug.support.graph_samples import GRAPH, GRAPHS
from wharfinger.debug.graph.look import class_of
from wharfinger.debug.graph.model import EdgeKind, Graph, GraphEdge, GraphNode, NodeState, surroundings_of
from wharfinger.debug.graph.svg import graph_to_svg
from wharfinger.formats.terminal_text import printable

SVG = "{http://www.w3.org/2000/svg}"
STATES = {class_of(state) for state in NodeState}
KINDS = {class_of(kind) for kind in EdgeKind}
WORDS = {EdgeKind.NEEDS_IF_THERE: "needs if there", EdgeKind.ANY_OF: "any of"}


def drawing(graph: Graph) -> ET.Element:
    """Return the part of a picture below its legend."""
    root = read(graph)
    last = root[-1]
    assert last.tag == f"{SVG}g"
    return last


def read(graph: Graph) -> ET.Element:
    document = graph_to_svg(graph)
    assert document.isascii()
    return ET.fromstring(document)  # noqa: S314 - no foreign XML


def classes(element: ET.Element) -> set[str]:
    return set(element.get("class", "").split())


def boxes(graph: Graph) -> list[ET.Element]:
    return [each for each in drawing(graph) if each.find(f"{SVG}rect[@class='box']") is not None]


def lines(graph: Graph) -> list[ET.Element]:
    return [each for each in drawing(graph) if each.find(f"{SVG}path[@class='line']") is not None]


def title(element: ET.Element) -> str:
    return element.findtext(f"{SVG}title") or ""


def test_boxes_show_name_state_and_reason() -> None:
    shown = {title(box).split(";")[0]: [text.text for text in box.iter(f"{SVG}text")] for box in boxes(GRAPH)}
    assert shown["Module ingress"] == ["ingress", "1.0.0, active, Ready"]
    assert shown["legacy"] == ["legacy", "0.9.0, off", "somebody said no"]
    assert shown["prod.web"] == ["prod.web", "2.0.0, waiting", "waits for prod.shop (scheduled)"]
    assert shown["metrics"] == ["metrics", "absent"]
    assert title(boxes(GRAPH)[-1]) == (
        "prod.web; 2.0.0, waiting; order 999; since 2026-05-17 12:30:45Z; "
        "waits for prod.shop (scheduled); waits for prod.shop"
    )


def test_lines_are_described_in_words() -> None:
    assert sorted(title(line) for line in lines(GRAPH)) == [
        "prod.shop needs ingress (>=1)",
        "prod.web any of mysql (database: >=8)",
        "prod.web any of postgres (database)",
        "prod.web excludes legacy (old: <1)",
        "prod.web needs if there metrics",
        "prod.web needs prod.shop (~1.2), and waits for it",
        "prod.web subscribes ingress",
    ]
    assert [title(line) for line in lines(GRAPH) if "held" in classes(line)] == [
        "prod.web needs prod.shop (~1.2), and waits for it"
    ]


def test_a_picture_has_a_title_and_a_description_for_screen_readers() -> None:
    root = read(GRAPH)
    assert root.get("role") == "img"
    named = {each.get("id"): each.text for each in root if each.get("id")}
    assert (root.get("aria-labelledby") or "").split() == list(named)
    assert named["title"] == "Packages"
    assert named["desc"] == (
        "8 packages: 1 active, 1 scheduled, 1 waiting, 1 off, 1 not loaded, 3 absent."
        " 7 edges: 2 needs, 1 needs-if-there, 2 any-of, 1 excludes, 1 subscribes."
    )
    assert read(Graph((), ())).findtext(f"{SVG}desc") == "0 packages: none. 0 edges: none."


def test_the_legend_lists_only_states_and_edges_that_occur() -> None:
    def legend(graph: Graph) -> list[str | None]:
        return [text.text for each in read(graph)[:-1] for text in each.iter(f"{SVG}text")][1:]

    assert legend(GRAPH) == [
        *("active", "scheduled", "waiting", "off", "not loaded", "absent"),
        *("needs", "needs if there", "any of", "excludes", "subscribes", "waited for"),
    ]
    assert legend(Graph((GraphNode("a", NodeState.FAILED),), ())) == ["failed"]


def test_the_requested_package_is_marked() -> None:
    found = surroundings_of(GRAPH, "prod.shop")
    assert found is not None
    assert [title(box).split(";")[0] for box in boxes(found) if "focus" in classes(box)] == ["prod.shop"]
    assert read(found).findtext(f"{SVG}title") == "Packages around prod.shop"


def test_constraints_are_written_if_there_is_room() -> None:
    labels = [each.text for each in drawing(GRAPH) if each.tag == f"{SVG}text"]
    assert {">=1", "~1.2", "old: <1"} <= set(labels)
    target = GraphNode("t", NodeState.ACTIVE)
    many = tuple(GraphNode(f"s{at}", NodeState.ACTIVE) for at in range(70))
    edges = tuple(GraphEdge(node.name, "t", EdgeKind.NEEDS, constraint=">=1") for node in many)
    assert [each for each in drawing(Graph((*many, target), edges)) if each.tag == f"{SVG}text"] == []


def test_a_long_name_is_cut_in_its_box_and_whole_in_its_title() -> None:
    node = GraphNode("x" * 300, NodeState.ACTIVE, message="y " * 200)
    (box,) = boxes(Graph((node,), ()))
    name = box.findtext(f"{SVG}text") or ""
    assert (len(name), name[-1]) == (42, "…")
    assert "x" * 300 in title(box)
    assert "y " * 199 in title(box)
    rect = box.find(f"{SVG}rect")
    assert rect is not None
    assert float(rect.get("width", "0")) > 26 + 42 * 7.2


def test_a_package_that_refers_to_itself_has_a_loop() -> None:
    graph = Graph((GraphNode("a", NodeState.ACTIVE),), (GraphEdge("a", "a", EdgeKind.SUBSCRIBES),))
    (line,) = lines(graph)
    assert title(line) == "a subscribes a"
    assert classes(line) == {"subscribes"}


def test_segments_of_a_long_line_join() -> None:
    nodes = tuple(GraphNode(name, NodeState.ACTIVE) for name in "abc")
    chain = tuple(
        GraphEdge(source, target, kind)
        for source, target, kind in (
            ("b", "a", EdgeKind.NEEDS),
            ("c", "a", EdgeKind.ANY_OF),
            ("c", "b", EdgeKind.NEEDS),
        )
    )
    drawn = {title(line): next(line.iter(f"{SVG}path")).get("d", "") for line in lines(Graph(nodes, chain))}
    assert re.fullmatch(r"M\d+,\d+ C\d+,\d+ \d+,\d+ \d+,\d+", drawn["b needs a"])
    assert re.fullmatch(r"M\d+,\d+ C\S+ \S+ \S+ L\d+,\d+ C\S+ \S+ \d+,\d+", drawn["c any of a"])


@given(GRAPHS)
def test_any_graph_is_drawn_well_formed_and_complete(graph: Graph) -> None:
    assert graph_to_svg(graph) == graph_to_svg(graph)
    nodes, edges = boxes(graph), lines(graph)
    assert [classes(box) - {"focus"} for box in nodes] == [{class_of(node.state)} for node in graph.nodes]
    for box, node in zip(nodes, graph.nodes, strict=True):
        assert title(box).startswith(printable(f"{node.kind} {node.name}".lstrip() + f"; {node.caption}"))
    expected = sorted(
        printable(f"{edge.source} {WORDS.get(edge.kind, edge.kind.value)} {edge.target}") for edge in graph.edges
    )
    assert len(edges) == len(expected)
    assert all(shown.startswith(words) for shown, words in zip(sorted(map(title, edges)), expected, strict=True))


@given(GRAPHS)
def test_a_picture_contains_no_scripts_and_no_links(graph: Graph) -> None:
    allowed = {"svg", "title", "desc", "style", "rect", "text", "g", "path", "circle"}
    for element in read(replace(graph, focus=None)).iter():
        assert element.tag.removeprefix(SVG) in allowed
        assert not any(name.startswith("on") or "href" in name for name in element.attrib)
        assert element.tag == f"{SVG}style" or "url(" not in " ".join(element.attrib.values())


def test_packages_are_links_in_a_picture_for_a_page() -> None:
    document = graph_to_svg(GRAPH, lambda name: f"/package?name={name}&x")
    root = ET.fromstring(document)  # noqa: S314 - no foreign XML
    assert (root.get("role"), root.get("class"), root.find(f"{SVG}style")) == ("group", "graph", None)
    links = {link.get("href"): link.get("aria-label", "") for link in root.iter(f"{SVG}a")}
    assert links["/package?name=prod.web&x"].startswith("prod.web; 2.0.0, waiting")
    assert len(links) == sum(node.state is not NodeState.ABSENT for node in GRAPH.nodes)
