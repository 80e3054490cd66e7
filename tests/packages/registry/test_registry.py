"""The registry in memory, which other tests use. It fulfills the contract of registries."""

import pytest

from tests.packages.support.memory_registry import MemoryRegistry
from tests.packages.support.registry_contract import CONTRACT, READ_CONTRACT, Check, ReadCheck, push


@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: str(check.__name__))
async def test_an_empty_memory_registry_fulfils_the_contract(check: Check) -> None:
    await check(MemoryRegistry())


@pytest.mark.parametrize("check", READ_CONTRACT, ids=lambda check: str(check.__name__))
async def test_a_memory_registry_with_an_artifact_fulfils_the_contract(check: ReadCheck) -> None:
    registry = MemoryRegistry()
    await push(registry, "1.0.0")
    await check(registry)
