"""Sizes and orders that are computed from the state of the live view."""

from tests.debug.support.top_samples import NOW, OVERVIEW
from wharfinger.debug.top.lists import ListKind, Sorting
from wharfinger.debug.top.view import View


def test_a_view_has_at_least_one_row() -> None:
    view = View(OVERVIEW, 80, 24, NOW)
    assert (view.list_lines, view.page_lines) == (19, 22)
    tiny = View(OVERVIEW, 1, 1, NOW)
    assert (tiny.list_lines, tiny.page_lines) == (1, 1)


def test_each_list_has_its_own_sorting() -> None:
    view = View(OVERVIEW, 80, 24, NOW, sortings={ListKind.HOOKS: Sorting(2)})
    assert view.sorting == Sorting()
    assert View(OVERVIEW, 80, 24, NOW, shown=ListKind.HOOKS, sortings=view.sortings).sorting == Sorting(2)
