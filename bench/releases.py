"""Many small packages on one server: their installation, the correction of drift, and a second pass.

The installation is compared with a loop of ``helm install``.

For the installation and for drift, the daemon, its control plane, a registry, helm and kubectl are real processes on loopback.
A *second pass* checks all packages again without changes; for it, the daemon's runtime and the control plane are in this
process.
"""

import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from unittest.mock import patch

import httpx
import trio

from bench.measure import Ratio
from tests.packages.support.charts import SIX_OBJECTS, write
from tests.programs import WHARFINGER, program
from tests.registry_server import open_registry_server
from tests.runtime.support.world import World, open_world
from wharfinger.cluster.api.connection import load_connection
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.cluster.watch.informer import open_informer
from wharfinger.control_plane.http.memory_transport import MemoryTransport
from wharfinger.formats.json.value import JsonObject, find_int, find_str
from wharfinger.kube.resource import ResourceType, name_of
from wharfinger.runtime.resources.resources import APPLICATION
from wharfinger.runtime.scheduler.events import Rescheduled

PACKAGES: Final = 200
FEW: Final = 30
PASSES: Final = 5
INSTALL_BUDGET: Final = 0.5
"""The budget of an install. The aim on a real API server is 0.25; bench/README.md explains the difference."""
PATIENCE_S: Final = 600
NAMESPACE: Final = ResourceType("", "v1", "Namespace", "namespaces", namespaced=False)
DEPLOYMENT: Final = ResourceType("apps", "v1", "Deployment", "deployments", namespaced=True)


def measure(long: bool) -> Iterator[Ratio]:
    """Measure the installation of packages, the correction of drift among them, and a check of all packages without changes."""
    packages = PACKAGES if long else FEW
    yield from trio.run(_measure, packages)
    yield trio.run(_second_pass, packages)


@dataclass(frozen=True, slots=True)
class Stage:
    """A daemon with its own cluster, and the environment for the commands of its users."""

    folder: Path
    client: HttpClusterClient
    registry: str
    environment: dict[str, str]

    def run(self, *command: str) -> None:
        """Run a command as a user does. Raises CalledProcessError."""
        subprocess.run(command, env=self.environment, check=True, stdout=subprocess.DEVNULL)


async def _measure(packages: int) -> list[Ratio]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        chart = folder / "six"
        write(chart, dict(SIX_OBJECTS))
        async with open_registry_server(folder / "registry") as address:
            state = folder / "state"
            with program(*WHARFINGER, "run", "--embedded", "--state-dir", str(state)) as daemon:
                await trio.to_thread.run_sync(daemon.wait_line, " ready: ")
                kubeconfig = state / "embedded" / "kubeconfig"
                with _drained(daemon.output.fileno()):
                    async with open_client(load_connection(kubeconfig)) as client:
                        stage = Stage(folder, client, str(address), _environment(folder, kubeconfig))
                        rows = [await _installs(stage, chart, packages), await _drift(stage, packages)]
                daemon.process.terminate()
                await trio.to_thread.run_sync(daemon.process.wait, 60)
                return rows


@contextmanager
def _drained(descriptor: int) -> Iterator[None]:
    """Read the daemon's output, so that the daemon never waits for a reader."""
    child = subprocess.Popen(["cat"], stdin=descriptor, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        child.kill()
        child.wait()


def _environment(folder: Path, kubeconfig: Path) -> dict[str, str]:
    homes = {f"HELM_{what}_HOME": str(folder / "helm") for what in ("CACHE", "CONFIG", "DATA")}
    return {**os.environ, **homes, "KUBECONFIG": str(kubeconfig)}


async def _installs(stage: Stage, chart: Path, packages: int) -> Ratio:
    """Measure the installation of packages by the daemon against ``helm install`` of the same chart."""
    target = f"{stage.registry}/packages/six:1.0.0"
    stage.run(*WHARFINGER, "package", "push", str(chart), target, "--plain-http")
    for name in ("ours", "theirs"):
        await stage.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    spec: JsonObject = {"registry": {"repo": f"{stage.registry}/packages", "scheme": "HTTP"}}
    await stage.client.create(_resource("PackageRepository", "default", "", spec))
    ready: set[str] = set()
    installs = max(10, packages // 5)
    began = time.perf_counter()
    async with open_informer(stage.client, APPLICATION, "ours") as informer:
        for number in range(packages):
            spec = {"packageName": "six", "packageVersion": "1.0.0"}
            await stage.client.create(_resource("Application", f"six-{number}", "ours", spec))
        with trio.fail_after(PATIENCE_S), informer.changes() as changes:
            while len(ready) < packages:
                for key in await changes.wait():
                    found = informer.get(key)
                    if found is not None and find_str(found, "status", "summary", "state") == "Ready":
                        ready.add(key.name)
    ours = time.perf_counter() - began
    began = time.perf_counter()
    for number in range(installs):
        await trio.to_thread.run_sync(
            stage.run, "helm", "install", f"six-{number}", str(chart), "--namespace", "theirs"
        )
    theirs = time.perf_counter() - began
    what = f"{packages} packages of 6 objects to Ready, each"
    return Ratio(
        "releases", what, f"a loop of {installs} helm install", ours / packages, theirs / installs, INSTALL_BUDGET
    )


async def _drift(stage: Stage, packages: int) -> Ratio:
    """Measure the 99th percentile of the time in which drift is corrected, against one second.

    The time begins when a watch shows that `kubectl patch` has changed an applied field.
    """
    broken: dict[str, float] = {}
    mended: list[float] = []
    edited = trio.Event()

    async def watch(task_status: trio.TaskStatus[None]) -> None:
        listed = await stage.client.list(DEPLOYMENT, "ours")
        async with stage.client.watch(DEPLOYMENT, "ours", resource_version=listed.resource_version) as events:
            task_status.started()
            async for event in events:
                if event.type is not WatchType.MODIFIED:
                    continue
                name, replicas = name_of(event.object), find_int(event.object, "spec", "replicas")
                if replicas != 1:
                    broken.setdefault(name, time.perf_counter())
                elif name in broken:
                    mended.append(time.perf_counter() - broken.pop(name))
                    edited.set()

    async with trio.open_nursery() as nursery:
        await nursery.start(watch)
        for number in range(packages // 2):
            name = f"six-{number * 7 % packages}"
            command = ("kubectl", "--namespace", "ours", "patch", "deployment", name, "--type=merge")
            edited = trio.Event()
            await trio.to_thread.run_sync(
                stage.run, *command, f"--patch={json.dumps({'spec': {'replicas': 3 + number % 5}})}"
            )
            with trio.fail_after(60):
                await edited.wait()
        nursery.cancel_scope.cancel()
    worst = statistics.quantiles(mended, n=100)[98]
    return Ratio("releases", f"drift corrected among {packages} packages, p99", "one second", worst, 1.0, 1.0)


# --- a second pass --------------------------------------------------------------------------------------------------------


async def _second_pass(packages: int) -> Ratio:
    """Measure a check of an unchanged package in this process, compared with the installation of the package.

    Raises SystemExit if a check writes to the cluster.
    """
    with tempfile.TemporaryDirectory() as name:
        async with open_world(Path(name)) as world:
            await world.push_folder(write(Path(name) / "six", dict(SIX_OBJECTS)), "six", "1.0.0")
            await world.repository()
            await _bring_up(world, range(1))
            began = time.perf_counter()
            await _bring_up(world, range(1, 1 + packages))
            first = time.perf_counter() - began
            with _counted() as requests:
                await _look_again(world, packages)  # This pass only fills the caches.
                again = statistics.median([await _look_again(world, packages) for _ in range(PASSES)])
    writes = [one for one in requests if not one.startswith("GET /")]
    if writes:
        raise SystemExit(f"bench: a second pass without changes wrote: {', '.join(writes[:10])}")
    what = f"{packages} packages again, unchanged, each"
    return Ratio("releases", what, "their install", again / packages, first / packages, 0.03)


async def _bring_up(world: World, numbers: range) -> None:
    for number in numbers:
        await world.create("prod", f"six-{number}", package="six")
    for number in numbers:
        await world.until_state("prod", f"six-{number}", "Ready")


async def _look_again(world: World, packages: int) -> float:
    """Reschedule every package, as a change of a dependency does, and return the seconds until the last one was checked."""
    names = [f"prod.six-{number}" for number in range(1, 1 + packages)]
    began = time.perf_counter()
    for name in names:
        world.runtime.packages.send(Rescheduled(name, "the benchmark"))
    for name in names:
        await world.runtime.queues.wait_idle(name)
        instance = world.runtime.instances[name]
        if world.runtime.lifecycle.is_applying(name) or not instance.status.scale_checked:
            raise SystemExit(f"bench: the check of {name} did not complete")
    return time.perf_counter() - began


@contextmanager
def _counted() -> Iterator[list[str]]:
    """Record every request to the control plane of this process, including the requests of its own controllers."""
    requests: list[str] = []
    original = MemoryTransport.handle_async_request

    async def handle(transport: MemoryTransport, request: httpx.Request) -> httpx.Response:
        requests.append(f"{request.method} {request.url.path}")
        return await original(transport, request)

    with patch.object(MemoryTransport, "handle_async_request", handle):
        yield requests


def _resource(kind: str, name: str, namespace: str, spec: JsonObject) -> JsonObject:
    metadata: JsonObject = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "wharfinger.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}
