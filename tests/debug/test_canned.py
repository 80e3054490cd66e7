"""The canned Inspector, which satisfies the contract of Inspectors. The contract detects violations."""

from dataclasses import replace
from datetime import datetime

import pytest

from tests.debug.support.canned import CannedInspector
from tests.debug.support.inspector_contract import check_inspector
from tests.debug.support.samples import (
    BUSY,
    DAEMON,
    HOOK,
    NODES,
    OPERATION,
    PACKAGES,
    RENDERED,
    STATISTICS,
    WAITING,
    WHY,
    WHY_READY,
    package,
    task,
)
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.schemas.problem import Problem
from wharfinger.runtime.daemon_details import SlotsSnapshot, StatisticsSnapshot
from wharfinger.runtime.inspector import (
    InvalidSettings,
    PackageSnapshot,
    ProgressSnapshot,
    QueueSnapshot,
    RenderSnapshot,
    SettingsAnswer,
    UnknownSettings,
)
from wharfinger.runtime.scheduler_details import ExplanationSnapshot, NodeSnapshot


async def test_the_canned_inspector_satisfies_the_contract() -> None:
    await check_inspector(CannedInspector())
    await check_inspector(CannedInspector(contents=(BUSY,)))
    await check_inspector(CannedInspector(contents=()))
    await check_inspector(CannedInspector(base=replace(DAEMON, ready=False), counted=None))


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
        (replace(PACKAGES[1], hooks=(HOOK, HOOK)),),
        (replace(PACKAGES[1], hooks=(replace(HOOK, runs=0),)),),
        (package(tasks=(replace(task(1, running=False), waits_for="a slot: api"),)),),
        (package(tasks=(replace(task(1), parked=True),)),),
        (package(tasks=(replace(WAITING, parked=True),)),),
        (package(tasks=(replace(task(1, running=False), parked=True, cause=""),)),),
        (replace(BUSY, operations=(OPERATION, OPERATION)),),
        (replace(BUSY, operations=(replace(OPERATION, interrupted=OPERATION.completed),)),),
        (replace(BUSY, hooks=()),),
        (replace(BUSY, progress=ProgressSnapshot(3, 0, ())),),
    ],
)
async def test_the_contract_detects_inconsistent_packages(contents: tuple[PackageSnapshot, ...]) -> None:
    with pytest.raises(AssertionError):
        await check_inspector(CannedInspector(contents=contents))


async def test_the_contract_detects_unsorted_and_miscounted_answers() -> None:
    class Unsorted(CannedInspector):
        async def packages(self) -> tuple[PackageSnapshot, ...]:
            return tuple(reversed(await super().packages()))

    with pytest.raises(AssertionError):
        await check_inspector(Unsorted())
    with pytest.raises(AssertionError):
        await check_inspector(CannedInspector(base=replace(DAEMON, ready=True, draining=True)))


@pytest.mark.parametrize(
    "nodes",
    [
        (NODES[0], NODES[0]),
        (replace(NODES[0], state="done"),),
        (replace(NODES[0], decision="Yes"),),
        (replace(NODES[0], decision="Forbid", state="scheduled"),),
        (replace(NODES[1], dependencies=NODES[1].dependencies[::-1]),),
    ],
)
async def test_the_contract_detects_inconsistent_nodes(nodes: tuple[NodeSnapshot, ...]) -> None:
    with pytest.raises(AssertionError):
        await check_inspector(CannedInspector(nodes=nodes))


@pytest.mark.parametrize(
    "odd",
    [RenderSnapshot("a: 1", problem="", has_chart=False), RenderSnapshot("a: 1", problem="no", has_chart=True)],
)
async def test_the_contract_detects_inconsistent_renderings(odd: RenderSnapshot) -> None:
    with pytest.raises(AssertionError):
        await check_inspector(CannedInspector(rendered={**RENDERED, "prod.shop": odd}))


async def test_the_contract_detects_renderings_of_unknown_packages() -> None:
    class Eager(CannedInspector):
        async def render(self, name: str, *, shown_to: str = "") -> RenderSnapshot | None:
            return RENDERED.get(name, RENDERED["prod.shop"])

    with pytest.raises(AssertionError):
        await check_inspector(Eager())


@pytest.mark.parametrize(
    "odd",
    [
        replace(WHY, ready=True),
        replace(WHY, causes=()),
        replace(WHY, remedy=""),
        replace(WHY, name="other"),
        replace(WHY, causes=WHY.causes[::-1]),
        replace(WHY, causes=(WHY.causes[0], WHY.causes[0])),
        replace(WHY, causes=(replace(WHY.causes[0], state=""),)),
    ],
)
async def test_the_contract_detects_inconsistent_explanations(odd: ExplanationSnapshot) -> None:
    with pytest.raises(AssertionError):
        await check_inspector(CannedInspector(explanations={"prod.shop": odd}))


async def test_the_contract_detects_explanations_of_unknown_packages() -> None:
    class Eager(CannedInspector):
        async def why(self, name: str, at: datetime | None = None) -> ExplanationSnapshot | None:
            return await super().why(name, at) or replace(WHY_READY, name=name)

    with pytest.raises(AssertionError):
        await check_inspector(Eager())


@pytest.mark.parametrize(
    "odd", [InvalidSettings("1", ()), InvalidSettings("1", (Problem("a", ""),)), UnknownSettings("")]
)
async def test_the_contract_detects_inconsistent_answers_about_settings(odd: SettingsAnswer) -> None:
    with pytest.raises(AssertionError):
        await check_inspector(CannedInspector(answers={"prod.shop": odd}))


async def test_the_contract_detects_validation_for_unknown_packages() -> None:
    class Eager(CannedInspector):
        async def validate(self, name: str, settings: JsonObject, version: int = 0) -> SettingsAnswer | None:
            return await super().validate("prod.shop", settings, version)

    with pytest.raises(AssertionError):
        await check_inspector(Eager())


@pytest.mark.parametrize(
    "odd",
    [
        None,
        replace(STATISTICS, tasks=replace(STATISTICS.tasks, tasks=1)),
        replace(STATISTICS, tasks=replace(STATISTICS.tasks, dropped=-1)),
        replace(STATISTICS, tasks=replace(STATISTICS.tasks, bugs=41)),
        replace(STATISTICS, monitors=replace(STATISTICS.monitors, listed=13)),
        replace(STATISTICS, slots=STATISTICS.slots[1:]),
        replace(STATISTICS, slots=(*STATISTICS.slots, STATISTICS.slots[0])),
        replace(STATISTICS, slots=(SlotsSnapshot("work", 1, 2, 0),)),
        replace(STATISTICS, trying_crds=("b", "a")),
    ],
)
async def test_the_contract_detects_inconsistent_statistics(odd: StatisticsSnapshot | None) -> None:
    with pytest.raises(AssertionError):
        await check_inspector(CannedInspector(counted=odd))
