"""The runtime: the life cycle of a package with and without a hook, and a restart.

The yardstick is one `helm template`, because each installation of a package renders a chart. A package with a hook is compared
with one without a hook.
"""

import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import trio

from bench.measure import Ratio, compare_async
from tests.runtime.support.world import World, open_ground, open_world
from tests.runtime.tasks.test_hook_runs import bash, hooked
from wharfinger.runtime.core.runtime import Runtime
from wharfinger.runtime.status.summary import summarize

PACKAGES: Final = 20
LOOK_S: Final = 0.005


def measure(long: bool) -> Iterator[Ratio]:
    """Measure a package from its creation through Ready to its removal, and a restart until all packages are Ready."""
    yield from trio.run(_main_job)
    yield trio.run(_restart)


# --- the life of a package -------------------------------------------------------------------------------------------------


async def _main_job() -> list[Ratio]:
    with tempfile.TemporaryDirectory() as folder:
        async with open_world(Path(folder)) as world:
            await world.push("web", "1.0.0")
            hook = bash("{configVersion: v1, onStartup: 10}", "true")
            await world.push_folder(hooked(Path(folder) / "hooked", {"start.sh": hook}), "hooked", "1.0.0")
            await world.repository()

            async def plain() -> None:
                await _there_and_back(world, "web")

            async def with_hook() -> None:
                await _there_and_back(world, "hooked")

            template = _template(Path(folder) / "web-1.0.0")
            what = "create, Ready, delete, gone"
            return [
                await compare_async("runtime", what, "bare helm template", plain, template, budget=8.0),
                await compare_async(
                    "runtime", "the same, with an onStartup hook", "without the hook", with_hook, plain, budget=3.0
                ),
            ]


async def _there_and_back(world: World, package: str) -> None:
    await world.create("prod", "shop", package=package)
    await world.until_state("prod", "shop", "Ready")
    await world.delete("prod", "shop")
    await world.until_gone("prod", "shop")


def _template(folder: Path) -> Callable[[], Awaitable[object]]:
    helm = shutil.which("helm")
    if helm is None:
        raise SystemExit("bench: helm is not on PATH; run `make bench`")
    return partial(trio.run_process, [helm, "template", "shop", str(folder)], capture_stdout=True)


# --- a restart -------------------------------------------------------------------------------------------------------------


async def _restart() -> Ratio:
    with tempfile.TemporaryDirectory() as folder:
        async with open_ground(Path(folder)) as ground:
            async with ground.open_world() as world:
                await world.repository()
                for number in range(PACKAGES):
                    name = f"web-{number}"
                    await world.push(name, "1.0.0")
                    await world.create("prod", name, package=name)
                await _all_ready(world.runtime)

            async def ours() -> None:
                async with ground.open_daemon() as runtime:
                    await _all_ready(runtime)

            what = f"restart of {PACKAGES} packages, each"
            template = _template(Path(folder) / "web-0-1.0.0")
            ratio = await compare_async("runtime", what, "bare helm template", ours, template, budget=4.0, rounds=5)
            return ratio.each_of(PACKAGES)


async def _all_ready(runtime: Runtime) -> None:
    names = [f"prod.web-{number}" for number in range(PACKAGES)]
    while not all(_is_ready(runtime, name) for name in names):  # noqa: ASYNC110 - only the controllers are notified
        await trio.sleep(LOOK_S)


def _is_ready(runtime: Runtime, name: str) -> bool:
    status = runtime.status(name)
    return status is not None and summarize(status)[0] == "Ready"
