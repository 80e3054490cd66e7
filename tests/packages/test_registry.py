"""The registry in memory that other tests use is one by the contract."""

import pytest

from tests.packages.memory_registry import MemoryRegistry
from tests.packages.registry_contract import CONTRACT, Check


@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: str(check.__name__))
async def test_contract_in_memory(check: Check) -> None:
    await check(MemoryRegistry())
