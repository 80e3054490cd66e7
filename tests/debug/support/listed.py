"""A helper that formats a list of an Inspector as `wharfinger get` does."""

from wharfinger.debug.listing.listing import Selection, listed_text
from wharfinger.debug.listing.lists import listing_of
from wharfinger.debug.listing.packages import ARROW
from wharfinger.kube.selectors import parse_label_selector
from wharfinger.runtime.inspector import Inspector


async def listed(
    inspector: Inspector,
    what: str,
    name: str | None = None,
    output: str = "table",
    columns: int | None = None,
    *,
    arrow: str = ARROW,
    namespace: str = "",
    labels: str = "",
    headers: bool = True,
) -> str:
    """Return the output of `wharfinger get` for a list."""
    listing = listing_of(what, arrow)
    selection = Selection(name, namespace, parse_label_selector(labels) if labels else None)
    rows = await listing.rows(inspector, selection)
    return listed_text(listing, rows, selection, output, columns, headers=headers)
