"""The contract of ClusterClient, which the HTTP client fulfills in memory and over loopback TCP."""

from pathlib import Path

import pytest

from tests.cluster.support.client_contract import CONTRACT
from tests.cluster.support.clusters import loopback_cluster, memory_cluster


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CONTRACT)
async def test_the_contract_holds_in_memory(name: str) -> None:
    async with memory_cluster() as client:
        await CONTRACT[name](client)


@pytest.mark.sampled(12)
@pytest.mark.unmeasured
@pytest.mark.parametrize("name", CONTRACT)
async def test_the_contract_holds_over_loopback(name: str, tmp_path: Path) -> None:
    async with loopback_cluster(tmp_path) as client:
        await CONTRACT[name](client)
