"""As many renders by the real chart engine as in a day. Workers are replaced, dismissed and killed, but memory and descriptors
do not grow.
"""

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from tests.packages.rendering.test_chart_engine import CHART, engine_program, opened, request, values_file
from tests.packages.support.charts import write
from tests.scale import scaled
from wharfinger.packages.rendering import chart_engine
from wharfinger.packages.rendering.chart_engine import ChartEngine, EngineLimits
from wharfinger.process.command import Ending

HOURS = scaled(24, 2)
RENDERS_AN_HOUR = scaled(200, 20)
LARGEST_HEAP = 64 * 1024
"""The largest heap of a worker for these charts, in KiB. A worker that leaked charts would exceed it."""
WORKERS = 2


def workers() -> list[int]:
    """Return the process ids of the engine's workers: the children of this process that run the engine's program."""
    found: list[int] = []
    for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        with suppress(OSError):  # The child has just ended.
            if b"wharfinger-engine" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(int(child))
    return found


def descriptors() -> int:
    """Return the number of open descriptors of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


def memory_kib(pid: int) -> int:
    """Return the anonymous memory of a process in KiB, or 0 if the process has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("RssAnon")), 0)


async def until_dismissed() -> None:
    """Wait until all idle workers have ended."""
    with trio.fail_after(300):
        while workers():  # noqa: ASYNC110 - the end of a process is no event here
            await trio.sleep(0.05)


async def an_hour(engine: ChartEngine, chart: Path, values: Path, hour: int) -> None:
    """Do RENDERS_AN_HOUR renders, two at a time, and kill all workers once."""

    async def render(number: int) -> None:
        if number == hour:
            for pid in workers():
                os.kill(pid, signal.SIGSEGV)
        found = await engine.template(request(chart), chart, values)
        assert found.ok or (found.ending is Ending.EXITED and found.returncode != 0)
        failed.append(not found.ok)

    failed: list[bool] = []
    limiter = trio.CapacityLimiter(WORKERS)
    async with trio.open_nursery() as nursery:
        for number in range(RENDERS_AN_HOUR):
            await limiter.acquire_on_behalf_of(number)

            async def one(number: int = number) -> None:
                try:
                    await render(number)
                finally:
                    limiter.release_on_behalf_of(number)

            nursery.start_soon(one)
    assert sum(failed) <= WORKERS, "a worker that dies costs its own render only"


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_a_day_of_renders_leaves_no_workers_or_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, chart, values = engine_program(), write(tmp_path / "chart", CHART), values_file(tmp_path)
    monkeypatch.setattr(chart_engine, "IDLE_S", 0.2)
    monkeypatch.setattr(chart_engine, "MAX_RENDERS", RENDERS_AN_HOUR // 3)
    limits = EngineLimits(wall_s=30, output_bytes=1024**2, memory_bytes=1024**3, workers=WORKERS)
    before = descriptors()
    async with opened(tmp_path, program, limits) as engine:
        for hour in range(HOURS):
            await an_hour(engine, chart, values, hour)
            assert len(workers()) <= WORKERS
            assert all(memory_kib(pid) < LARGEST_HEAP for pid in workers())
            await until_dismissed()
            assert [path for path in (tmp_path / "engine").rglob("*") if path.is_file()] == []
    assert workers() == []
    assert descriptors() <= before
