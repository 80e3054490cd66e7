"""The statistics of a running daemon, from its actual components."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from tests.packages.rendering.test_chart_engine import CHART, engine_program, opened, request, values_file
from tests.packages.support.charts import write
from tests.pools.interpreters.warm import LIMITS, command_of, package, ready, until_ready
from tests.runtime.support.world import open_world
from tests.runtime.tasks.test_hook_runs import bash, config_map, hooked
from wharfinger.hooks.metrics.hook_metrics import HookMetrics
from wharfinger.hooks.watching.filters import Filters
from wharfinger.packages.settings.cel_pool import Rules
from wharfinger.packages.store.store import Store
from wharfinger.queue.lane import acting_for
from wharfinger.runtime.daemon_details import MemoryPartSnapshot, MonitorCounts, PoolSnapshot, SlotsSnapshot
from wharfinger.runtime.inspection.package_logs import PackageLogs
from wharfinger.runtime.inspection.statistics import memory_of_processes, memory_parts, statistics

WATCHING = """\
configVersion: v1
schedule: [{name: yearly, crontab: '0 0 1 1 *'}]
kubernetes: [{name: maps, kind: ConfigMap, labelSelector: {matchLabels: {a: b}}, jqFilter: .data}]
"""
RULED = (
    "type: object\nproperties: {mode: {type: string}}\nx-deckhouse-validations: [{expression: 'true', message: bad}]\n"
)


@pytest.mark.slow
async def test_every_component_has_statistics(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        idle = statistics(world.runtime)
        assert (idle.tasks.tasks, idle.tasks.retired, idle.monitors.monitors) == (0, 0, 0)
        assert idle.schedules.next_due is None
        await world.client.create(config_map("seen", {"a": "b"}))
        await world.repository()
        files = {"openapi/settings.yaml": RULED}
        await world.push_folder(
            hooked(tmp_path / "hooked", {"a.sh": bash(WATCHING, "")}, files=files), "hooked", "1.0.0"
        )
        await world.create("prod", "app", package="hooked")
        await world.create("prod", "broken", package="no-such")
        await world.until_state("prod", "app", "Ready")
        await world.until_state("prod", "broken", "Failed")
        await world.runtime.queues.wait_idle("prod.app")
        found = statistics(world.runtime)
        assert (found.tasks.queues, found.tasks.running, found.tasks.backing_off) == (1, 0, 1)
        assert found.tasks.retired > 0
        assert found.tasks.failures >= 1
        assert found.monitors == MonitorCounts(1, 1, 1, 1, 0, 0, 0)
        assert (found.schedules.crontabs, found.schedules.ticks) == (1, 0)
        assert found.schedules.next_due is not None
        assert found.filters is not None
        assert found.filters.requests >= 2, "the filter was checked, and applied to one object"
        assert found.rules is not None
        assert found.rules.requests > 0
        assert found.store is not None
        assert (found.store.locked, found.store.temporary) == (0, 0)
        assert found.trying_crds == ()
        assert [(each.kind, each.limit) for each in found.slots] == [
            ("work", 16), ("downloads", 8), ("renders", 3), ("hooks", 8), ("loads", 4), ("api", 32),
        ]  # fmt: skip
        assert found.slots[0] == SlotsSnapshot("work", 16, 0, 0)


@pytest.mark.slow
async def test_the_memory_of_every_component_is_measured(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", {"a.sh": bash(WATCHING, "")}), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        await world.until_state("prod", "app", "Ready")
        logs = PackageLogs(lambda _name: (), "1")
        with acting_for("prod.app"):
            logs.emit(logging.LogRecord("wharfinger.x", logging.INFO, "x", 1, "hello", None, None))
        parts = {each.part: each for each in memory_parts(world.runtime, HookMetrics(), logs, None)}
        assert parts["packages"] == MemoryPartSnapshot("packages", 1)
        assert parts["metrics of hooks"] == MemoryPartSnapshot("metrics of hooks", 0, 0)
        assert parts["log lines of packages"] == MemoryPartSnapshot("log lines of packages", 1, 205)
        assert parts["revisions of releases"].bytes is not None
        assert "recorded events" not in parts
    assert [each.part for each in memory_parts(None, HookMetrics(), None, None)] == ["metrics of hooks"]


def test_the_memory_of_this_process_is_measured() -> None:
    found = memory_of_processes()
    assert 0 < found.own_bytes <= found.peak_bytes * 2
    assert found.parts == ()


async def test_components_without_statistics_are_omitted(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        nobody = object()
        world.runtime.packages.tools = replace(
            world.runtime.tools,
            filters=cast("Filters", nobody),
            rules=cast("Rules", nobody),
            store=cast("Store", nobody),
        )
        found = statistics(world.runtime)
        assert (found.filters, found.rules, found.store) == (None, None, None)


async def test_the_renderer_is_named_and_its_workers_are_counted(tmp_path: Path) -> None:
    chart = write(tmp_path / "chart", CHART)
    async with open_world(tmp_path) as world, opened(tmp_path, engine_program()) as engine:
        found = statistics(world.runtime)
        assert (found.charts, found.renderer) == (None, "helm template")
        world.runtime.packages.tools = replace(world.runtime.tools, engine=engine)
        for _ in range(3):
            assert (await engine.template(request(chart), chart, values_file(tmp_path))).ok
        found = statistics(world.runtime)
        assert found.charts == PoolSnapshot(workers=1, requests=3, replaced=0)
        assert found.renderer == f"chart engine, helm {engine.versions.helm}"


async def test_workers_for_python_hooks_are_counted(tmp_path: Path) -> None:
    command = command_of(package(tmp_path / "package", "pass"), tmp_path / "run")
    async with open_world(tmp_path) as world, ready(command, 2) as starts:
        assert statistics(world.runtime).warm is None
        world.runtime.packages.tools = replace(world.runtime.tools, warm=starts)
        assert (await starts.run(command, LIMITS)).ok
        await until_ready(starts.pools()[0], 2)
        assert statistics(world.runtime).warm == PoolSnapshot(workers=2, requests=1, replaced=0)
