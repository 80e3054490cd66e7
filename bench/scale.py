"""The processor time of a daemon and all of its children: for the installation of many packages, and for a restart with
them.

The daemon and the control plane are processes of their own, so that each side's time is known. With ``--kubeconfig`` the
daemon manages that cluster instead, in namespaces that are deleted at the end. A restart that writes to the cluster ends
the benchmark with an error.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from bench.measure import KUBECONFIG, Ratio
from tests.packages.support.charts import SIX_OBJECTS, write
from tests.programs import WHARFINGER, Program, program
from wharfinger.cluster.api.connection import load_connection
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.cluster.watch.informer import open_informer
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType, name_of, namespace_of
from wharfinger.runtime.resources.resources import APPLICATION

FEW: Final = 30
MANY: Final = (100, 300, 1000)
INSTALLS: Final = 5
"""The number of `helm install` runs that a package is compared with."""
PATIENCE_S: Final = 900
QUIET_S: Final = 2.0
"""The time after which a daemon counts as idle if it has used less than ``IDLE`` of the processor."""
IDLE: Final = 0.03
NAMESPACES: Final = ResourceType("", "v1", "Namespace", "namespaces", namespaced=False)
NAMESPACE: Final = "wharfinger-bench"
TOGETHER: Final = 20
"""The number of packages in one namespace."""
REPOSITORY: Final = "bench"
KINDS: Final = (
    ResourceType("", "v1", "ConfigMap", "configmaps", namespaced=True),
    ResourceType("", "v1", "Secret", "secrets", namespaced=True),
    ResourceType("apps", "v1", "Deployment", "deployments", namespaced=True),
)
TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")


def measure(long: bool) -> Iterator[Ratio]:
    """Measure an install and a restart, each against helm's client; with ``long``, for several numbers of packages, and
    also without the chart engine."""
    for packages in MANY if long else (FEW,):
        yield from trio.run(_measure, packages)
    if long:
        yield from trio.run(_measure, MANY[0], "none")


@dataclass(slots=True)
class Bench:
    """The cluster, and the daemon's command line."""

    folder: Path
    kubeconfig: Path
    client: HttpClusterClient
    environment: dict[str, str]
    engine: str = ""

    @property
    def command(self) -> tuple[str, ...]:
        """The command that starts the daemon."""
        folders = ("--state-dir", str(self.folder / "state"), "--local-packages", str(self.folder / "packages"))
        chosen = ("--engine", self.engine) if self.engine else ()
        return (*WHARFINGER, "run", "--kubeconfig", str(self.kubeconfig), *folders, *chosen)


async def _measure(packages: int, engine: str = "") -> list[Ratio]:
    async with _open_bench(packages, engine) as bench:
        with program(*bench.command) as daemon:
            await trio.to_thread.run_sync(daemon.wait_line, " ready: ")
            with _drained(daemon):
                await bench.client.apply(_repository(bench.folder), field_manager="bench", force=True)
                await _bring(bench.client, range(1))  # fills the caches
                await _idle(daemon)
                began, before = time.perf_counter(), _used(daemon.process.pid)
                await _bring(bench.client, range(1, packages + 1))
                took = time.perf_counter() - began
                await _idle(daemon)
                installed = (_used(daemon.process.pid) - before) / packages
                _say(f"{packages} packages in {took:.1f} s, {packages / took:.1f}/s, {_memory(daemon.process.pid)} MiB")
            await _stop(daemon)
        versions = await _versions(bench.client)
        with program(*bench.command) as daemon:
            started = time.perf_counter()
            await trio.to_thread.run_sync(daemon.wait_line, " ready: ")
            opened = time.perf_counter()
            with _drained(daemon):
                await _idle(daemon)
                restarted = _used(daemon.process.pid) / packages
                quiet = time.perf_counter() - QUIET_S - opened
                _say(
                    f"restart: {opened - started:.1f} s to the socket, {quiet:.1f} s more until everything is verified"
                )
                if await _versions(bench.client) != versions:
                    raise SystemExit("bench: the restarted daemon wrote to the cluster, although nothing had changed")
                used, began = _used(daemon.process.pid), time.perf_counter()
                await _remove(bench.client)
                took, each_ms = time.perf_counter() - began, (_used(daemon.process.pid) - used) * 1000 / packages
                _say(f"removal: {took:.1f} s, {packages / took:.1f}/s, {each_ms:.0f} ms of the processor each")
            await _stop(daemon)
        helm = await trio.to_thread.run_sync(_helm, bench)
    against = f"{INSTALLS} helm install, the client's, each"
    how, most = (" without the engine", 0.6) if engine == "none" else ("", 0.4)
    return [
        Ratio("scale", f"{packages} packages to Ready{how}, processor each", against, installed, helm, most),
        Ratio("scale", f"{packages} packages after a restart{how}, the same", against, restarted, helm, 0.4),
    ]


@asynccontextmanager
async def _open_bench(packages: int, engine: str) -> AsyncIterator[Bench]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # The Services are headless, because the embedded control plane has only 254 addresses.
        service = SIX_OBJECTS["templates/service.yaml"].replace("spec: {", "spec: {clusterIP: None, ")
        chart = write(folder / "packages" / "six", {**SIX_OBJECTS, "templates/service.yaml": service})
        given = os.environ.get(KUBECONFIG, "")
        kubeconfig = Path(given) if given else folder / "kubeconfig"
        command = () if given else (*WHARFINGER, "control-plane", "--kubeconfig", str(kubeconfig))
        with program(*(command or ("cat",))) as control_plane:
            if command:
                await trio.to_thread.run_sync(control_plane.wait_line, str(kubeconfig))
            homes = {f"HELM_{what}_HOME": str(folder / "helm") for what in ("CACHE", "CONFIG", "DATA")}
            environment = {**os.environ, **homes, "KUBECONFIG": str(kubeconfig), "CHART": str(chart)}
            async with open_client(load_connection(kubeconfig)) as client:
                names = [NAMESPACE, *sorted({_namespace_of(number) for number in range(packages + 1)})]
                for place in names:
                    metadata: JsonObject = {"name": place}
                    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
                try:
                    yield Bench(folder, kubeconfig, client, environment, engine)
                finally:
                    with trio.CancelScope(shield=True, deadline=trio.current_time() + 60):
                        for place in names:
                            await client.delete(ObjectKey(NAMESPACES, "", place))


def _namespace_of(number: int) -> str:
    return f"{NAMESPACE}-{number // TOGETHER}"


def _is_ours(key: ObjectKey) -> bool:
    return key.namespace.startswith(f"{NAMESPACE}-")


def _repository(folder: Path) -> JsonObject:
    return {
        "apiVersion": "wharfinger.dev/v1alpha1",
        "kind": "PackageRepository",
        "metadata": {"name": REPOSITORY},
        "spec": {"folder": {"path": str(folder / "packages")}},
    }


async def _bring(client: HttpClusterClient, numbers: range) -> None:
    """Create Applications, and wait until they are Ready."""
    spec: JsonObject = {"packageName": "six", "packageVersion": "1.0.0", "packageRepositoryName": REPOSITORY}
    waiting = {f"six-{number}": _namespace_of(number) for number in numbers}
    async with open_informer(client, APPLICATION) as informer:
        for name, namespace in sorted(waiting.items()):
            metadata: JsonObject = {"name": name, "namespace": namespace}
            await client.create(
                {"apiVersion": "wharfinger.dev/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec}
            )
        with trio.fail_after(PATIENCE_S), informer.changes() as changes:
            while waiting:
                for key in await changes.wait():
                    found = informer.get(key)
                    if found is not None and find_str(found, "status", "summary", "state") == "Ready":
                        waiting.pop(key.name, None)


async def _remove(client: HttpClusterClient) -> None:
    """Delete all Applications, and wait until they are gone."""
    async with open_informer(client, APPLICATION) as informer:
        await informer.wait_synced()
        with trio.fail_after(PATIENCE_S), informer.changes() as changes:
            for key in filter(_is_ours, informer.objects()):
                await client.delete(key)
            while any(map(_is_ours, informer.objects())):
                await changes.wait()


async def _versions(client: HttpClusterClient) -> dict[ObjectKey, str]:
    """Return the resourceVersion of every object of the packages; a changed object has another one."""
    found: dict[ObjectKey, str] = {}
    for kind in (APPLICATION, *KINDS):
        for obj in (await client.list(kind)).items:
            key = ObjectKey(kind, namespace_of(obj), name_of(obj))
            if _is_ours(key):
                found[key] = find_str(obj, "metadata", "resourceVersion")
    return found


async def _idle(daemon: Program) -> None:
    """Wait until the daemon has been idle for QUIET_S."""
    used, since = _used(daemon.process.pid), time.perf_counter()
    with trio.fail_after(PATIENCE_S):
        while time.perf_counter() - since < QUIET_S:
            await trio.sleep(0.1)
            if (now := _used(daemon.process.pid)) > used + IDLE * QUIET_S:
                used, since = now, time.perf_counter()


async def _stop(daemon: Program) -> None:
    daemon.process.terminate()
    await trio.to_thread.run_sync(daemon.process.wait, PATIENCE_S)


@contextmanager
def _drained(daemon: Program) -> Iterator[None]:
    """Read the daemon's log, so that the daemon never waits for a reader."""
    child = subprocess.Popen(["cat"], stdin=daemon.output.fileno(), stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        child.kill()
        child.wait()


def _used(pid: int) -> float:
    """Return the processor time of a process and of all of its descendants, ended ones included, in seconds."""
    total = 0.0
    for number in _family(pid):
        with suppress(OSError):
            fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15])) * TICK_S
    return total


def _family(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(one for child in children for one in _family(int(child)))]


def _memory(pid: int) -> int:
    """Return the resident memory of a process, in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS"))


def _helm(bench: Bench) -> float:
    """Return the processor time of one `helm install` of the same chart."""
    before = _children()
    for number in range(INSTALLS):
        subprocess.run(
            ["helm", "install", f"helm-{number}", bench.environment["CHART"], "--namespace", NAMESPACE],
            env=bench.environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )
    return (_children() - before) / INSTALLS


def _say(text: str) -> None:
    print(f"scale: {text}", file=sys.stderr)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
