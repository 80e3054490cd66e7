"""The time from an event to the object patch that a hook makes, against a plain run of the same program.

The runtime is the real one, on a control plane in this process: the watch reports a change, the package's queue runs the hook,
and the hook's patch is applied. The time begins when the server has answered the request that changes the watched object, and
ends when a watch shows the object that the hook has patched.
"""

import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from statistics import median
from typing import Final

import trio

from bench.measure import ROUNDS, Ratio
from tests.runtime.support.world import Ground, World, open_ground
from tests.runtime.tasks.test_hook_runs import bash, config_map, hooked
from wharfinger.cluster.releases.engine import ReleaseEngine
from wharfinger.cluster.watch.informer import Informer, open_informer
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.hooks.containment.containment import NO_CONTAINMENT, Containment
from wharfinger.hooks.containment.options import FILE_BYTES
from wharfinger.hooks.running.hook_services import HookServices
from wharfinger.hooks.running.process_runner import ProcessHookRunner
from wharfinger.kube.resource import ObjectKey
from wharfinger.process.command import Limits
from wharfinger.queue.slots_machine import SlotLimits
from wharfinger.runtime.package.instance import Tools
from wharfinger.runtime.resources.resources import CONFIG_MAP

RUNS: Final = 10
DEFAULT: Final = Containment(file_bytes=FILE_BYTES)
BUDGET: Final = 5.0
WATCHED: Final = ObjectKey(CONFIG_MAP, "prod", "watched")
PATCHED: Final = ObjectKey(CONFIG_MAP, "prod", "patched")
CONFIG: Final = (
    "configVersion: v1\nkubernetes:\n"
    "- {name: maps, apiVersion: v1, kind: ConfigMap, nameSelector: {matchNames: [watched]}, "
    "executeHookOnSynchronization: false}\n"
)
PATCH: Final = (
    'printf \'{"operation":"MergePatch","apiVersion":"v1","kind":"ConfigMap","namespace":"prod","name":"patched",'
    '"mergePatch":{"data":{"at":"%s"}}}\' "$at" >"$KUBERNETES_PATCH_PATH"'
)
PLAIN: Final = f'read -r context <"$BINDING_CONTEXT_PATH"; at=${{context#*\\"at\\":\\"}}; at=${{at%%\\"*}}\n{PATCH}'
WITH_JQ: Final = f'at=$(jq -r ".[-1].object.data.at" "$BINDING_CONTEXT_PATH")\n{PATCH}'


def measure(long: bool) -> Iterator[Ratio]:
    """Measure a hook in plain bash with and without the default limits, and a hook that reads its context with jq."""
    yield trio.run(_measure, "bash hook, event to patch, no limits", PLAIN, NO_CONTAINMENT)
    yield trio.run(_measure, "bash hook, event to patch", PLAIN, DEFAULT)
    yield trio.run(_measure, "bash hook with jq, event to patch", WITH_JQ, DEFAULT)


@dataclass(frozen=True)
class _Contained(Ground):
    """A ``Ground`` (the parts of a runtime; see ``tests/runtime/support/world.py``) whose hooks run with ``containment``."""

    containment: Containment = NO_CONTAINMENT

    def make_tools(self, services: HookServices, releases: ReleaseEngine, limits: SlotLimits | None = None) -> Tools:
        bounds = Limits(wall_s=60, stdout_bytes=1024 * 1024)
        runner = ProcessHookRunner(self.folder / "scratch", bounds, containment=self.containment)
        return replace(Ground.make_tools(self, services, releases, limits), hook_runner=runner)


async def _measure(what: str, body: str, containment: Containment) -> Ratio:
    with tempfile.TemporaryDirectory() as folder:
        script = bash(CONFIG, body)
        async with (
            open_ground(Path(folder)) as plain,
            _Contained(
                **{field.name: getattr(plain, field.name) for field in fields(plain)}, containment=containment
            ).open_world() as world,
            watching(world, script) as patched,
        ):
            bare = _bare(Path(folder), script)
            rows: list[tuple[float, float]] = []
            for number in range(1 + ROUNDS):
                ours = [await event_time(world, patched, f"{number}.{run}") for run in range(RUNS)]
                theirs = [await _timed(bare) for _ in range(RUNS)]
                rows.append((median(ours), median(theirs)))
            ours_s, theirs_s = (median(column) for column in zip(*rows[1:], strict=True))
            return Ratio("hook_path", what, "trio.run_process", ours_s, theirs_s, BUDGET)


@asynccontextmanager
async def watching(world: World, script: str) -> AsyncIterator[Informer]:
    """Install a package with the hook, and wait until it is Ready. Yield an informer of the objects that the hook patches."""
    await world.repository()
    await world.push_folder(hooked(world.folder / "hooked", {"hook.sh": script}), "hooked", "1.0.0")
    for key in (WATCHED, PATCHED):
        await world.client.create(config_map(key.name))
    await world.create("prod", "app", package="hooked")
    await world.until_state("prod", "app", "Ready")
    async with open_informer(world.client, CONFIG_MAP, "prod") as informer:
        await informer.wait_synced()
        yield informer


async def event_time(world: World, patched: Informer, at: str) -> float:
    data: JsonObject = {"data": {"at": at}}
    with trio.fail_after(60), patched.changes() as changes:
        await world.client.merge_patch(WATCHED, data)
        begin = time.perf_counter()
        while find_str(patched.get(PATCHED) or {}, "data", "at") != at:
            await changes.wait()
        return time.perf_counter() - begin


def _bare(folder: Path, script: str) -> Callable[[], Awaitable[object]]:
    program = folder / "bare.sh"
    program.write_text(script)
    program.chmod(0o755)
    contexts = folder / "contexts.json"
    contexts.write_text('[{"binding":"maps","object":{"data":{"at":"1"}},"type":"Event","watchEvent":"Modified"}]\n')
    environment = {
        **os.environ,
        "BINDING_CONTEXT_PATH": str(contexts),
        "KUBERNETES_PATCH_PATH": str(folder / "patches.json"),
    }

    async def start() -> None:
        await trio.run_process([str(program)], cwd=folder, env=environment, capture_stdout=True, capture_stderr=True)

    return start


async def _timed(start: Callable[[], Awaitable[object]]) -> float:
    begin = time.perf_counter()
    await start()
    return time.perf_counter() - begin
