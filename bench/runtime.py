"""The main job: an Application from create to Ready, against what it cannot do without (one `helm template`)."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import trio

from bench.measure import Ratio, compare_async
from tests.runtime.world import open_world


def measure() -> Iterator[Ratio]:
    """Create, wait for Ready, delete, wait until it is gone."""
    yield trio.run(_measure)


async def _measure() -> Ratio:
    helm = shutil.which("helm")
    if helm is None:
        raise SystemExit("bench: helm is not on PATH; run `make bench`")
    with tempfile.TemporaryDirectory() as folder:
        async with open_world(Path(folder)) as world:
            await world.push("web", "1.0.0")
            await world.repository()

            async def ours() -> None:
                await world.create("prod", "shop")
                await world.until_state("prod", "shop", "Ready")
                await world.delete("prod", "shop")
                await world.until_gone("prod", "shop")

            async def theirs() -> None:
                await trio.run_process([helm, "template", "shop", str(Path(folder) / "web-1.0.0")], capture_stdout=True)

            return await compare_async(
                "runtime", "create, Ready, delete, gone", "bare helm template", ours, theirs, budget=8.0
            )
