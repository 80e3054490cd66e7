"""The positions of all parts of a drawing of a graph."""

from hypothesis import given
from hypothesis import strategies as st

from tests.debug.support.layouts import numbered_graphs
from wharfinger.debug.graph.layers import Edge
from wharfinger.debug.graph.layout import Box, Layout, Size, lay_out


def test_two_boxes_and_a_line_are_laid_out() -> None:
    layout = lay_out([Size(100, 44), Size(60, 44)], [Edge(0, 1)])
    right, left = layout.boxes
    assert (left.x, left.y, right.y) == (0, 0, 0)
    assert right.x > left.x + left.width
    assert layout.lines == (((right.x, 22), (left.x + left.width, 22)),)
    assert (layout.width, layout.height) == (right.x + right.width, 44)


def test_an_empty_graph_has_an_empty_layout() -> None:
    assert lay_out([], []) == Layout(0, 0, (), ())


def test_an_edge_to_the_same_node_has_no_line() -> None:
    layout = lay_out([Size(100, 44)], [Edge(0, 0)])
    assert layout.boxes == (Box(0, 0, 100, 44),)
    assert layout.lines == ((),)


def test_an_edge_over_a_column_goes_straight_through_it() -> None:
    layout = lay_out([Size(50, 44)] * 3, [Edge(1, 0), Edge(2, 1), Edge(2, 0)])
    start, enter, leave, end = layout.lines[2]
    middle = layout.boxes[1]
    assert (start.x, end.x) == (layout.boxes[2].x, layout.boxes[0].x + 50)
    assert (enter.x, leave.x) == (middle.x + middle.width, middle.x)
    assert enter.y == leave.y
    assert not middle.y <= enter.y <= middle.y + middle.height


def test_a_box_stands_before_the_middle_of_its_dependents() -> None:
    layout = lay_out([Size(50, 44)] * 6, [Edge(at, 0) for at in range(1, 6)])
    middles = sorted(box.y + box.height // 2 for box in layout.boxes[1:])
    assert abs(layout.boxes[0].y + 22 - middles[2]) <= 1


def test_packages_without_dependencies_form_a_wide_block() -> None:
    layout = lay_out([Size(150, 44)] * 100, [])
    assert layout.height < 2 * layout.width < 6 * layout.height
    check(layout)


def test_small_components_are_placed_beside_a_large_component() -> None:
    star = [Edge(at, 0) for at in range(1, 10)]
    alone = lay_out([Size(150, 44)] * 10, star)
    layout = lay_out([Size(150, 44)] * 15, star)
    assert layout.height == alone.height
    check(layout)


def test_a_complete_graph_is_laid_out() -> None:
    count = 60
    drawn = [Edge(at, before) for at in range(count) for before in range(at)]
    layout = lay_out([Size(100, 44)] * count, drawn)
    check(layout)
    assert all(len(line) >= 2 for line in layout.lines)


SIZES = st.builds(Size, st.integers(20, 300), st.integers(20, 90))


def test_lines_of_a_moved_part_end_at_the_middle_of_their_boxes() -> None:
    heights = [20, 89, 20, 20, 53, 23, 27, 20, 20, 20, 47, 20]
    drawn = [Edge(1, 5), Edge(1, 10), Edge(4, 6)]
    layout = lay_out([Size(20, height) for height in heights], drawn)
    for edge, line in zip(drawn, layout.lines, strict=True):
        target = layout.boxes[edge.target]
        assert abs(line[-1].y - (target.y + target.height / 2)) <= 1


@given(numbered_graphs(), st.data())
def test_any_graph_is_laid_out(graph: tuple[int, list[Edge]], data: st.DataObject) -> None:
    count, drawn = graph
    sizes = data.draw(st.lists(SIZES, min_size=count, max_size=count))
    layout = lay_out(sizes, drawn)
    assert layout == lay_out(sizes, drawn)
    check(layout)
    for box, size in zip(layout.boxes, sizes, strict=True):
        assert box.width >= size.width
        assert box.height == size.height
    for edge, line in zip(drawn, layout.lines, strict=True):
        source, target = layout.boxes[edge.source], layout.boxes[edge.target]
        if edge.source == edge.target:
            assert line == ()
            continue
        assert len(line) % 2 == 0
        assert line[0].x in {source.x, source.x + source.width}
        assert line[-1].x in {target.x, target.x + target.width}
        assert abs(line[0].y - (source.y + source.height / 2)) <= 1
        assert abs(line[-1].y - (target.y + target.height / 2)) <= 1
        leftwards = line[-1].x < line[0].x
        assert [point.x for point in line] == sorted((point.x for point in line), reverse=leftwards)
        for enter, leave in zip(line[1:-1:2], line[2:-1:2], strict=True):
            assert enter.y == leave.y


def check(layout: Layout) -> None:
    """Check that boxes are inside the picture and do not overlap, and that no line crosses a box of a column that it passes."""
    for at, box in enumerate(layout.boxes):
        assert box.x >= 0
        assert box.y >= 0
        assert box.x + box.width <= layout.width + 1
        assert box.y + box.height <= layout.height + 1
        for other in layout.boxes[:at]:
            apart_x = box.x + box.width <= other.x or other.x + other.width <= box.x
            apart_y = box.y + box.height <= other.y or other.y + other.height <= box.y
            assert apart_x or apart_y
    through = {
        (min(enter.x, leave.x), max(enter.x, leave.x), enter.y)
        for line in layout.lines
        for enter, leave in zip(line[1:-1:2], line[2:-1:2], strict=True)
    }
    for left, right, y in through:
        for box in layout.boxes:
            assert not (box.x < right and left < box.x + box.width and box.y < y < box.y + box.height)
