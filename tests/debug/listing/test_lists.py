import pytest

from tests.debug.support.canned import CannedInspector
from tests.debug.support.listed import listed
from wharfinger.debug.listing.lists import LISTS, list_named, listing_of


@pytest.mark.parametrize(
    ("typed", "what"),
    [
        ("packages", "packages"),
        ("APP", "applications"),
        ("applications.wharfinger.dev", "applications"),
        ("wmod", "modules"),
        ("pkgrepo", "repositories"),
        ("pkgidx", "versions"),
        ("monitor", "watches"),
        ("objects", "resources"),
        ("hook", "hooks"),
        ("queue", "queues"),
        ("pool", "pools"),
        ("nonsense", "nonsense"),
    ],
)
def test_lists_are_found_by_short_names(typed: str, what: str) -> None:
    assert list_named(typed) == what


@pytest.mark.parametrize("what", LISTS)
async def test_every_list_can_be_printed_in_every_format(what: str) -> None:
    listing, inspector = listing_of(what), CannedInspector()
    assert listing.what == what
    for output in ("table", "wide", "name", "json", "yaml", "jsonpath={.*}"):
        assert isinstance(await listed(inspector, what, None, output), str)
    table = await listed(inspector, what, None, "wide")
    if table:
        assert table.splitlines()[0].split() == [column.title for column in listing.columns]
