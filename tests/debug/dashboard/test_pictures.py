"""The drawings of graphs on pages."""

from dataclasses import replace

from tests.debug.support.dashboard_samples import NODES
from tests.debug.support.samples import package
from tests.debug.support.top_samples import PACKAGES
from wharfinger.debug.dashboard.overview_page import MOST_DRAWN
from wharfinger.debug.dashboard.pictures import MOST_KEPT, Pictures


async def test_packages_in_the_drawing_link_to_their_pages() -> None:
    picture = await Pictures().picture(NODES, PACKAGES)
    assert picture is not None
    assert '<a href="package?name=prod.shop"' in picture.svg
    assert "<style>" not in picture.svg
    assert "prod.shop" in picture.text


async def test_the_neighbours_of_a_package_are_drawn() -> None:
    pictures = Pictures()
    one = await pictures.picture(NODES, PACKAGES, "legacy")
    assert one is not None
    assert "prod.busy" not in one.svg
    assert await pictures.picture(NODES, PACKAGES, "nothing") is None


async def test_a_drawing_is_cached_until_the_graph_changes() -> None:
    pictures = Pictures()
    first = await pictures.picture(NODES, PACKAGES)
    assert await pictures.picture(NODES, PACKAGES) is first
    changed = (replace(PACKAGES[0], state="Failed"), *PACKAGES[1:])
    assert await pictures.picture(NODES, changed) is not first
    for number in range(MOST_KEPT + 5):
        name = f"a.p{number}"
        assert await pictures.picture((), (package(name),), name) is not None
    assert len(pictures._kept) == MOST_KEPT


async def test_too_many_packages_are_not_drawn() -> None:
    many = tuple(package(f"a.p{number}") for number in range(MOST_DRAWN + 1))
    assert await Pictures().picture((), many) is None
    assert await Pictures().picture((), ()) is None
