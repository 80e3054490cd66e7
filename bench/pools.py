"""Pools: Python scripts and hooks in warm interpreters and in persistent processes, and the claim scheduler under load.

The yardstick of scripts and hooks is the same program in a new process for each run.
"""

import gc
import os
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Final

import trio

from bench.hook_path import CONFIG, event_time, watching
from bench.measure import Ratio, compare_async
from tests.control_plane.support.served import served
from tests.pools.claims.fake_backend import FakeBackend
from tests.pools.interpreters.warm import until, until_ready
from tests.pools.pods.pool_cluster import OTHERS, Clients, claim_object, claimed, open_backend
from tests.runtime.support.world import Ground, open_ground
from wharfinger.cluster.api.connection import Connection, load_connection
from wharfinger.cluster.api.http_client import open_client
from wharfinger.cluster.releases.engine import ReleaseEngine
from wharfinger.hooks.containment.containment import Containment
from wharfinger.hooks.containment.options import FILE_BYTES
from wharfinger.hooks.running.hook_services import HookServices
from wharfinger.hooks.running.process_runner import ProcessHookRunner
from wharfinger.pools.claims.scheduler import PoolScheduler, Request, open_pool_scheduler
from wharfinger.pools.interpreters.warm_start import WarmStarts, open_warm_starts
from wharfinger.pools.memory.budget import MemoryBudget
from wharfinger.pools.persistent.programs import PersistentRun, open_persistent_programs
from wharfinger.pools.pods.pod_pool import LIMITS as LIMITS_OF_PODS
from wharfinger.pools.pods.pod_pool import PodRequest
from wharfinger.pools.pods.resources import read_claim
from wharfinger.process.child import run_child
from wharfinger.process.command import Command, Limits
from wharfinger.queue.slots_machine import SlotLimits
from wharfinger.runtime.package.instance import Tools
from wharfinger.runtime.resources.custom_resources import ensure_crds

RUNS: Final = 10
FEW: Final = 3
"""The number of runs of a persistent hook in a round. It is low, because a new process takes at least a tenth of a second."""
GIB: Final = 1024**3
WORKERS: Final = 4
LIMITS: Final = Limits(wall_s=60, stdout_bytes=1024 * 1024)
IMPORTS: Final = "import argparse, datetime, json, logging, pathlib, re, subprocess, sys, urllib.request, yaml"
TRIPS: Final = 30
"""The number of changes for which the time until the hook's patch is measured."""
TRIP_S: Final = 0.02
CLAIMS: Final = 3_000
RATE: Final = 1_000
PODS: Final = 300
HOOK: Final = (
    f"#!{sys.executable}\n{IMPORTS}\nimport os\n"
    f"if sys.argv[1:] == ['--config']:\n    print({CONFIG!r})\n    sys.exit()\n"
    "context = json.load(open(os.environ['BINDING_CONTEXT_PATH']))\n"
    "at = context[-1]['object']['data']['at']\n"
    "patch = {'operation': 'MergePatch', 'apiVersion': 'v1', 'kind': 'ConfigMap', 'namespace': 'prod', 'name': 'patched',\n"
    "    'mergePatch': {'data': {'at': at}}}\n"
    "json.dump(patch, open(os.environ['KUBERNETES_PATCH_PATH'], 'w'))\n"
)


def measure(long: bool) -> Iterator[Ratio]:
    """Measure runs of scripts and of a persistent hook, the time from an event to a hook's patch, and claims."""
    gc.collect()
    gc.freeze()  # The daemon does this after its start.
    yield trio.run(_script, "a script that does nothing", "pass", 0.5)
    yield trio.run(_script, "a script with ten imports", IMPORTS, 0.15)
    yield trio.run(_persistent)
    yield trio.run(_path)
    yield trio.run(_throughput)
    yield trio.run(_latency)
    yield trio.run(_pods)


async def _script(what: str, text: str, budget: float) -> Ratio:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "hook.py"
        script.write_text(f"#!{sys.executable}\n{text}\n")
        script.chmod(0o755)
        command = Command((str(script),), Path(folder), {"PATH": os.environ["PATH"]})
        async with open_warm_starts(WORKERS, None, MemoryBudget(GIB)) as starts:
            await _ready(starts, command)

            async def warm() -> None:
                for _ in range(RUNS):
                    assert (await starts.run(command, LIMITS)).ok

            async def cold() -> None:
                for _ in range(RUNS):
                    assert (await run_child(command, LIMITS)).ok

            row = await compare_async(
                "pools", f"{RUNS} x {what}, warm worker", "a new process", warm, cold, budget=budget
            )
            assert starts.cold == 1, "a run was not warm"
            return row


async def _persistent() -> Ratio:
    """Measure runs of a hook that keeps running, against runs of the same hook in new processes."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "hook.py"
        script.write_text(
            f"#!{sys.executable}\n{IMPORTS}\nfor line in sys.stdin:\n"
            '    print(json.dumps({"run": json.loads(line)["run"], "status": 0}), flush=True)\n'
        )
        script.chmod(0o755)
        command = Command((str(script),), Path(folder), {"PATH": os.environ["PATH"]})
        run = PersistentRun("bench", command, {"BINDING_CONTEXT_PATH": folder})
        async with open_persistent_programs(None, MemoryBudget(GIB)) as programs:

            async def kept() -> None:
                for _ in range(FEW):
                    assert (await programs.run(run, LIMITS)).ok

            async def cold() -> None:
                for _ in range(FEW):
                    assert (await run_child(command, LIMITS)).ok

            row = await compare_async("pools", f"{FEW} x a persistent hook", "a new process", kept, cold, budget=0.1)
            assert programs.counters.started == 1, "a run had another process"
            return row


async def _ready(starts: WarmStarts, command: Command) -> None:
    await starts.run(command, LIMITS)
    await until(starts.pools)
    await until_ready(starts.pools()[0], WORKERS)


@dataclass(frozen=True)
class _Warm(Ground):
    """A ``Ground`` (the parts of a runtime; see ``tests/runtime/support/world.py``). With ``starts``, its hooks run in
    warm interpreters.
    """

    starts: WarmStarts | None = None

    def make_tools(self, services: HookServices, releases: ReleaseEngine, limits: SlotLimits | None = None) -> Tools:
        containment = Containment(file_bytes=FILE_BYTES)
        scratch = self.folder / ("warm" if self.starts else "cold")
        runner = ProcessHookRunner(scratch, LIMITS, containment=containment, warm=self.starts)
        return replace(Ground.make_tools(self, services, releases, limits), hook_runner=runner)


async def _path() -> Ratio:
    """Measure the time from a change until a hook's patch is observed, first with warm starts and then without."""
    async with open_warm_starts(WORKERS, None, MemoryBudget(GIB)) as starts:
        warm_s, cold_s = await _path_of(starts), await _path_of(None)
        assert starts.warm >= TRIPS, "hooks were not warm"
    return Ratio("pools", "Python hook, event to patch, warm", "each run a new process", warm_s, cold_s, 0.2)


async def _path_of(starts: WarmStarts | None) -> float:
    with tempfile.TemporaryDirectory() as folder:
        async with (
            open_ground(Path(folder)) as plain,
            _Warm(
                **{field.name: getattr(plain, field.name) for field in fields(plain)}, starts=starts
            ).open_world() as world,
            watching(world, HOOK) as patched,
        ):
            await event_time(world, patched, "first")
            await trio.sleep(1.0 if starts else 0.0)  # The new pool needs time to fill.
            return statistics.median([await event_time(world, patched, str(number)) for number in range(TRIPS)])


async def _throughput() -> Ratio:
    """Measure the time in which many claims are answered, with a backend that takes 20 ms for each."""
    backend = FakeBackend(trip_s=TRIP_S)
    backend.put(*(f"m{number}" for number in range(2 * CLAIMS)))
    async with open_pool_scheduler(backend) as scheduler:
        backend.notify = scheduler.notify_idle
        begin = time.perf_counter()
        requests: deque[Request[str, str]] = deque(Request("claim") for _ in range(CLAIMS))
        for request in requests:
            assert scheduler.enqueue(request)
        for request in requests:
            await request.answered.wait()
        took_s = time.perf_counter() - begin
        assert max(backend.owners.values()) == 1
    return Ratio("pools", f"{CLAIMS} claims, 20 ms round trip", "one second", took_s, 1.0, 1.0)


async def _pods() -> Ratio:
    """Measure claims of pods on an embedded control plane in another process.

    Each claim requires a patch over TLS and a watch event.
    """
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as server:
        return await _pods_of(load_connection(server.kubeconfig))


async def _pods_of(connection: Connection) -> Ratio:
    async with (
        open_client(connection, options=OTHERS) as user,
        open_client(connection) as client,
        _with_definitions(Clients(user, client)) as cluster,
        open_backend(cluster, PODS) as backend,
    ):
        claims = [read_claim(await cluster.user.create(claim_object(f"claim-{number}"))) for number in range(PODS)]
        async with open_pool_scheduler(backend, LIMITS_OF_PODS) as scheduler:
            backend.on_change = scheduler.notify_idle
            begin = time.perf_counter()
            requests: list[PodRequest] = [Request(claim) for claim in claims]
            for request in requests:
                assert scheduler.enqueue(request)
            for request in requests:
                await request.answered.wait()
            took_s = time.perf_counter() - begin
        assert len({request.result.uid for request in requests if request.result}) == PODS, "a pod was claimed twice"
        assert len(claimed(await cluster.pods())) == PODS
    return Ratio("pools", f"{PODS} claims of pods, embedded control plane", "one second", took_s, 1.0, 1.0)


@asynccontextmanager
async def _with_definitions(cluster: Clients) -> AsyncIterator[Clients]:
    await ensure_crds(cluster.user, "wharfinger", worker_pools=True)
    yield cluster


async def _latency() -> Ratio:
    """Measure the 99th percentile of the time from a request to its answer, less the backend's 20 ms, at a steady rate."""
    backend = FakeBackend(trip_s=TRIP_S)
    backend.put(*(f"m{number}" for number in range(2 * RATE)))
    begun: dict[str, float] = {}
    due: dict[str, float] = {}
    backend.trouble = None
    async with open_pool_scheduler(backend) as scheduler, trio.open_nursery() as nursery:
        backend.notify = scheduler.notify_idle
        start = trio.current_time() + 0.1
        for number in range(RATE):
            at = start + number / RATE
            await trio.sleep_until(at)
            due[str(number)] = at
            nursery.start_soon(_claim, scheduler, str(number), begun)
    late = sorted(begun[name] - due[name] - TRIP_S for name in due)
    return Ratio("pools", f"p99 of dispatch at {RATE} claims/s", "10 ms", late[len(late) * 99 // 100], 0.01, 1.0)


async def _claim(scheduler: PoolScheduler[str, str], name: str, begun: dict[str, float]) -> None:
    await scheduler.claim(name)
    begun[name] = trio.current_time()
