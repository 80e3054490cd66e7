"""The parts of the nodes of a syntax tree."""

from wharfinger.control_plane.cel.syntax.nodes import children
from wharfinger.control_plane.cel.syntax.parser import parse


def test_every_node_lists_its_parts() -> None:
    for text, count in (
        ("a.b", 1),
        ("f(1, 2)", 2),
        ("[1, 2]", 2),
        ("{1: 2}", 2),
        ("[1].all(x, x > 0)", 5),
        ("a", 0),
        ("1.f(2)", 2),
    ):
        assert len(children(parse(text).root)) == count
