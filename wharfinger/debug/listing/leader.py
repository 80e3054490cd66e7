"""The list `get leader`, whose only row is the leading daemon."""

from collections.abc import Sequence
from typing import Final

from wharfinger.debug.encoding.records import record_to_json
from wharfinger.debug.listing.listing import Column, Listing, Row, Selection
from wharfinger.formats.json.value import JsonValue
from wharfinger.runtime.inspector import Inspector

_COLUMNS: Final = tuple(map(Column, ("LEASE", "LEADER", "FENCE", "THIS DAEMON", "ROLE")))


def leader_list() -> Listing:
    """Return the list with the leader, as the queried daemon last read it from the Lease; empty before the first read."""
    return Listing(
        "leader",
        _COLUMNS,
        _read,
        _document,
        when_empty="no leader is known: the daemon has not read the Lease yet",
        namespaced=False,
        labelled=False,
    )


async def _read(inspector: Inspector, _selection: Selection) -> tuple[Row, ...]:
    found = (await inspector.daemon()).leader
    if not found.lease:
        return ()
    leader, role = found.leader or "(none)", "leader" if found.leads else "standby"
    cells = (found.lease, leader, str(found.fence), found.identity, role)
    return (Row((found.lease,), leader, cells, record_to_json(found)),)


def _document(rows: Sequence[Row], _selection: Selection) -> JsonValue:
    return rows[0].document if rows else {}
