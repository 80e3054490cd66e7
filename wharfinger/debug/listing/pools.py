"""The list of pools: `get pools` and `pools dump`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from wharfinger.debug.client.unknown_names import nearest_hint
from wharfinger.debug.encoding.records import record_to_json
from wharfinger.debug.listing.listing import Column, Listing, NotListedError, Row, Selection
from wharfinger.formats.json.value import JsonValue

if TYPE_CHECKING:
    from wharfinger.runtime.daemon_details import WarmPoolSnapshot
from wharfinger.runtime.inspector import Inspector

_COLUMNS: Final = tuple(
    map(
        Column,
        ("NAME", "STATE", "SIZE", "READY", "RESERVED", "WAITING", "STARTED", "RESTARTS", "MEMORY", "PROBLEM"),
    )
)
_MIB: Final = 1024 * 1024
_PODS: Final = "pods"


def pools_list() -> Listing:
    """Return the list of pools: of idle processes for runs of hooks, of hooks that keep running, and of pods."""
    return Listing(
        "pools",
        _COLUMNS,
        _read,
        _document,
        when_empty="no pools: `wharfinger run --warm-hooks N` opens one for each interpreter of hooks, and --worker-pools one "
        "for each WorkerPool",
        labelled=False,
    )


async def _read(inspector: Inspector, selection: Selection) -> tuple[Row, ...]:
    pools, name = await inspector.pools(), selection.name
    if name is not None:
        known = [pool.name for pool in pools]
        pools = tuple(pool for pool in pools if pool.name == name)
        if not pools:
            raise NotListedError(f"no pool named {name!r}; {nearest_hint(name, known, 'wharfinger get pools')}")
    return tuple(_row(pool) for pool in pools)


def _row(pool: "WarmPoolSnapshot") -> Row:
    numbers = (pool.size, pool.ready, pool.reserved, pool.waiting, pool.started, pool.restarts)
    memory = f"{pool.memory_bytes / _MIB:.0f}Mi" if pool.memory_limit_bytes else ""
    cells = (pool.name, pool.state, *map(str, numbers), memory, pool.problem)
    namespace = pool.name.partition("/")[0] if pool.kind == _PODS else ""
    return Row((pool.name,), pool.name, cells, record_to_json(pool, without={"name"}), namespace)


def _document(rows: Sequence[Row], _selection: Selection) -> JsonValue:
    return {"pools": {row.name: row.document for row in rows}}
