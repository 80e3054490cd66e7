"""Random numbered graphs, for tests of graph layouts."""

from hypothesis import strategies as st

from wharfinger.debug.graph.layers import Edge


@st.composite
def numbered_graphs(draw: st.DrawFn) -> tuple[int, list[Edge]]:
    """Draw a number of nodes, and edges between them, which may be loops, duplicates and parts of cycles."""
    count = draw(st.integers(1, 12))
    ends = st.integers(0, count - 1)
    return count, draw(st.lists(st.builds(Edge, ends, ends, st.booleans()), max_size=30))
