"""Any numbered graph, for what lays one out."""

from hypothesis import strategies as st

from wharfinger.debug.graph.layers import Edge


@st.composite
def numbered_graphs(draw: st.DrawFn) -> tuple[int, list[Edge]]:
    """How many nodes, and the edges between them: loops, doubles and cycles included."""
    count = draw(st.integers(1, 12))
    ends = st.integers(0, count - 1)
    return count, draw(st.lists(st.builds(Edge, ends, ends, st.booleans()), max_size=30))
