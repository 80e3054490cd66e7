"""Hooks in pods of a WorkerPool. The pods are on a control plane that runs the commands of pods as local processes."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from tests.control_plane.support.pod_commands import Kubelet, open_kubelet
from tests.hooks.support.scripts import run_of
from tests.pools.pods.pool_cluster import pool_object
from tests.process.children import PATH
from wharfinger.hooks.running.process_runner import ProcessHookRunner
from wharfinger.hooks.running.runner import HookRun
from wharfinger.pools.pods.pod_pools import open_pod_pools
from wharfinger.pools.pods.pod_run import PodRuns
from wharfinger.process.command import Limits
from wharfinger.runtime.resources.custom_resources import ensure_crds

LIMITS = Limits(wall_s=60.0, stdout_bytes=100_000, term_grace_s=0.05, cancel_grace_s=0.05)


@dataclass
class Ship:
    """A cluster with a pool of pods, a runner that can run hooks in these pods, and a runner of local hooks."""

    kubelet: Kubelet
    runs: PodRuns
    runner: ProcessHookRunner
    local: ProcessHookRunner


def in_pod(script: Path, pool: str = "workers") -> HookRun:
    """Return a run of a hook in a pod."""
    return replace(run_of(script), worker_pool=pool, namespace="default", owner="default.app")


@asynccontextmanager
async def open_ship(folder: Path, limits: Limits = LIMITS) -> AsyncGenerator[Ship]:
    """Open a cluster with a pool of pods, a runner that can run hooks in these pods, and a runner of local hooks."""
    async with open_kubelet(folder) as kubelet:
        client = kubelet.client
        await ensure_crds(client, "wharfinger", worker_pools=True)
        async with open_pod_pools(client, now=lambda: datetime.now(UTC)):
            await client.create(pool_object())
            runs = PodRuns(client, client.executor)
            environment = {"PATH": f"{Path(sys.executable).parent}:{PATH}"}
            runner = ProcessHookRunner(folder / "scratch", limits, environment=environment, pods=runs)
            yield Ship(kubelet, runs, runner, ProcessHookRunner(folder / "scratch", limits, environment=environment))
