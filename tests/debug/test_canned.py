"""The fake of these tests keeps the contract, and the contract notices who does not."""

from dataclasses import replace

import pytest

from tests.debug.canned import CannedInspector
from tests.debug.inspector_contract import check_inspector
from tests.debug.samples import DAEMON, PACKAGES, WAITING, package, task
from wharfinger.runtime.inspector import PackageSnapshot, QueueSnapshot


async def test_the_contract_is_kept() -> None:
    await check_inspector(CannedInspector())
    await check_inspector(CannedInspector(contents=()))


@pytest.mark.parametrize(
    "contents",
    [
        (PACKAGES[1], PACKAGES[1]),
        (replace(PACKAGES[1], kind="Thing"),),
        (replace(PACKAGES[1], namespace=""),),
        (replace(PACKAGES[1], name="other.shop"),),
        (replace(PACKAGES[1], queue=QueueSnapshot("other", ())),),
        (package(tasks=(task(2),)),),
        (package(tasks=(replace(WAITING, running=True),)),),
        (package(tasks=(replace(WAITING, error=""),)),),
        (replace(PACKAGES[1], conditions=(replace(PACKAGES[1].conditions[0], status="Yes"),)),),
    ],
)
async def test_the_contract_notices(contents: tuple[PackageSnapshot, ...]) -> None:
    with pytest.raises(AssertionError):
        await check_inspector(CannedInspector(contents=contents))


async def test_the_contract_notices_an_unsorted_or_miscounting_inspector() -> None:
    class Unsorted(CannedInspector):
        async def packages(self) -> tuple[PackageSnapshot, ...]:
            return tuple(reversed(await super().packages()))

    with pytest.raises(AssertionError):
        await check_inspector(Unsorted())
    with pytest.raises(AssertionError):
        await check_inspector(CannedInspector(base=replace(DAEMON, ready=True, draining=True)))
