import pytest

from tests.debug.support.canned import CannedInspector
from tests.debug.support.listed import listed
from tests.debug.support.samples import POOLS
from wharfinger.debug.listing.listing import NotListedError


async def test_pools_are_listed_and_unknown_pools_refused() -> None:
    first = (await listed(CannedInspector(), "pools")).splitlines()[1]
    assert first.split() == ["/usr/bin/python3", "serving", "4", "3", "1", "0", "90", "1", "32Mi"]
    assert await listed(CannedInspector(), "pools", None, "name") == "".join(f"{pool.name}\n" for pool in POOLS)
    with pytest.raises(NotListedError, match="no pool named 'x'; `wharfinger get pools` lists all"):
        await listed(CannedInspector(), "pools", "x")
