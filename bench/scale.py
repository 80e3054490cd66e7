"""The processor time that a daemon and its children need to install many packages, and to restart with these packages.

The duration of the installs is measured as well. With ``--long``, the processor time of the idle daemon is measured, too, and
with 1,000 packages the memory of the daemon. The daemon and the control plane are separate processes, so that the time of each
is known. With ``--kubeconfig``, the daemon manages the cluster of that file instead, and the namespaces of the benchmark are
deleted at the end. If the restarted daemon changes an Application or an object of a package, the benchmark ends with an error.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from bench.measure import KUBECONFIG, PACKAGES, Ratio, Unit
from tests.packages.support.charts import SIX_OBJECTS, write
from tests.programs import WHARFINGER, Program, program
from wharfinger.cluster.api.connection import load_connection
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.cluster.watch.informer import open_informer
from wharfinger.formats.json.value import JsonObject, as_object, find_str
from wharfinger.formats.yaml.reader import read_yaml_all
from wharfinger.kube.resource import ObjectKey, ResourceType, name_of, namespace_of
from wharfinger.runtime.resources.resources import APPLICATION, PACKAGE_REPOSITORY

FEW: Final = 30
MANY: Final = (100, 300, 1000)
INSTALLS: Final = 5
"""The number of `helm install` runs whose mean is the yardstick."""
PATIENCE_S: Final = 900
BARE: Final = 20
"""The number of packages whose objects are applied without a daemon, one after another."""
LEAVE_S: Final = 120
"""The time within which the namespaces of a measurement, and its repository, must be deleted."""
REST_S: Final = 30
"""The time over which the idle daemon is measured."""
IDLE_SHARE: Final = 0.005
"""The processor time that an idle daemon may use, as a share of a core."""
MAX_MEMORY: Final = 160 * 1024**2
"""The highest allowed resident memory of a daemon with the largest number of packages."""
QUIET_S: Final = 2.0
"""The time after which a daemon counts as idle, if it has used less than the share ``IDLE`` of a core in this time."""
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
    """Measure an install and a restart, each against `helm install`.

    With ``long``, measure several numbers of packages, and also without the chart engine.
    """
    chosen = tuple(int(each) for each in os.environ.get(PACKAGES, "").split())
    for packages in chosen or (MANY if long else (FEW,)):
        yield from trio.run(_measure, packages, "", long)
    if long and not chosen:
        yield from trio.run(_measure, MANY[0], "none", long)


@dataclass(slots=True)
class Bench:
    """A cluster, and the command line of a daemon for it."""

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


async def _measure(packages: int, engine: str, long: bool) -> list[Ratio]:
    async with _open_bench(packages, engine) as bench:
        with program(*bench.command) as daemon:
            await trio.to_thread.run_sync(daemon.wait_line, " ready: ")
            async with _drained(daemon, bench.folder):
                await bench.client.apply(_repository(bench.folder), field_manager="bench", force=True)
                await _install(bench.client, range(1))  # The first package fills the caches.
                await _idle(daemon)
                began, before = time.perf_counter(), _used(daemon.process.pid)
                await _install(bench.client, range(1, packages + 1))
                took = time.perf_counter() - began
                await _idle(daemon)
                installed = (_used(daemon.process.pid) - before) / packages
                each_s, memory = took / packages, _memory(daemon.process.pid)
                _say(f"{packages} packages in {took:.1f} s, {1 / each_s:.1f}/s, {memory // 1024**2} MiB")
            await _stop(daemon)
        versions = await _versions(bench.client)
        with program(*bench.command) as daemon:
            started = time.perf_counter()
            await trio.to_thread.run_sync(daemon.wait_line, " ready: ")
            opened = time.perf_counter()
            async with _drained(daemon, bench.folder):
                await _idle(daemon)
                restarted = _used(daemon.process.pid) / packages
                quiet = time.perf_counter() - QUIET_S - opened
                _say(
                    f"restart: {opened - started:.1f} s to the socket, {quiet:.1f} s more until everything is verified"
                )
                resting = await _rest(daemon) if long else 0.0
                if await _versions(bench.client) != versions:
                    raise SystemExit("bench: the restarted daemon wrote to the cluster, although nothing had changed")
                used, began = _used(daemon.process.pid), time.perf_counter()
                await _remove(bench.client)
                took, each_ms = time.perf_counter() - began, (_used(daemon.process.pid) - used) * 1000 / packages
                await _remove_repository(bench.client)
                _say(f"removal: {took:.1f} s, {packages / took:.1f}/s, {each_ms:.0f} ms of the processor each")
            await _stop(daemon)
        helm, helm_s = await trio.to_thread.run_sync(_helm, bench)
        bare_s = await _bare(bench)
    against = f"{INSTALLS} helm install"
    how, most = (" without the engine", 0.6) if engine == "none" else ("", 0.4)
    what = f"{packages} packages"
    rows = [
        Ratio("scale", f"{what} to Ready{how}, processor each", f"{against}, processor each", installed, helm, most),
        Ratio(
            "scale", f"{what} after a restart{how}, processor each", f"{against}, processor each", restarted, helm, 0.4
        ),
        Ratio("scale", f"{what} to Ready{how}, time each", f"{against}, one after another, each", each_s, helm_s, 0.5),
        Ratio("scale", f"{what} to Ready{how}, time each", "their objects applied, in turn", each_s, bare_s, 4),
    ]
    if long:
        rows.append(Ratio("scale", f"{what}, idle, processor of a second", "0.005 of a core", resting, IDLE_SHARE, 1))
    if packages == MANY[-1]:
        rows.append(Ratio("scale", f"{what}, memory of the daemon", "160 MiB", memory, MAX_MEMORY, 1, Unit.BYTES))
    return rows


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
                    with trio.CancelScope(shield=True, deadline=trio.current_time() + LEAVE_S):
                        await _leave(client, names)


async def _leave(client: HttpClusterClient, namespaces: list[str]) -> None:
    """Delete the namespaces, and wait until they are gone, so that the next measurement can create them again.

    A server deletes a namespace only some seconds after the request.
    """
    async with open_informer(client, NAMESPACES) as informer:
        await informer.wait_synced()
        with informer.changes() as changes:
            for place in namespaces:
                await client.delete(ObjectKey(NAMESPACES, "", place))
            while any(informer.get(ObjectKey(NAMESPACES, "", place)) for place in namespaces):
                await changes.wait()


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


async def _install(client: HttpClusterClient, numbers: range) -> None:
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


async def _remove_repository(client: HttpClusterClient) -> None:
    """Delete the repository, and wait until it is gone. This needs the daemon, which removes the repository's finalizer."""
    key = ObjectKey(PACKAGE_REPOSITORY, "", REPOSITORY)
    async with open_informer(client, PACKAGE_REPOSITORY) as informer:
        await informer.wait_synced()
        with trio.fail_after(LEAVE_S), informer.changes() as changes:
            await client.delete(key)
            while informer.get(key) is not None:
                await changes.wait()


async def _versions(client: HttpClusterClient) -> dict[ObjectKey, str]:
    """Return the resourceVersion of each Application and of each object of KINDS in the benchmark's namespaces."""
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


async def _rest(daemon: Program) -> float:
    """Return the processor time that the idle daemon uses per second, in seconds."""
    used = _used(daemon.process.pid)
    await trio.sleep(REST_S)
    return (_used(daemon.process.pid) - used) / REST_S


async def _stop(daemon: Program) -> None:
    daemon.process.terminate()
    await trio.to_thread.run_sync(daemon.process.wait, PATIENCE_S)


@asynccontextmanager
async def _drained(daemon: Program, folder: Path) -> AsyncIterator[None]:
    """Read the daemon's log, so that the daemon never waits for a reader.

    Exit with the end of the log if the daemon ends by itself, for example because it could not renew its Lease on a busy machine.
    """
    log = folder / "daemon.log"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_read, daemon, log, nursery.cancel_scope)
        yield
        nursery.cancel_scope.cancel()
    if (code := daemon.process.poll()) is not None:
        end = "\n".join(log.read_text(errors="replace").splitlines()[-10:])
        raise SystemExit(f"bench: the daemon ended with exit code {code}:\n{end}")


async def _read(daemon: Program, log: Path, scope: trio.CancelScope) -> None:
    """Write the daemon's output to a file, and cancel the scope at the end of the output."""
    with log.open("wb") as file:
        await trio.run_process(["cat"], stdin=daemon.output.fileno(), stdout=file, check=False)
    await trio.to_thread.run_sync(daemon.process.wait, PATIENCE_S)
    scope.cancel()


def _used(pid: int) -> float:
    """Return the processor time of a process and of all of its descendants, including ended ones, in seconds."""
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
    """Return the resident memory of a process, in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


async def _bare(bench: Bench) -> float:
    """Return the mean time to apply the objects of one package one after the other, without rendering, in seconds."""
    command = ["helm", "template", "bare", bench.environment["CHART"]]
    done = await trio.run_process(command, env=bench.environment, capture_stdout=True)
    objects = [as_object(each, "object") for each in read_yaml_all(done.stdout, what="helm template")]
    began = time.perf_counter()
    for number in range(BARE):
        for obj in objects:
            metadata: JsonObject = {"name": f"bare-{number}-{name_of(obj)}", "namespace": NAMESPACE}
            await bench.client.apply({**obj, "metadata": metadata}, field_manager="bench", force=True)
    return (time.perf_counter() - began) / BARE


def _helm(bench: Bench) -> tuple[float, float]:
    """Return the mean processor time and the mean duration of a `helm install` of the same chart, in seconds."""
    before, began = _children(), time.perf_counter()
    for number in range(INSTALLS):
        subprocess.run(
            ["helm", "install", f"helm-{number}", bench.environment["CHART"], "--namespace", NAMESPACE],
            env=bench.environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )
    return (_children() - before) / INSTALLS, (time.perf_counter() - began) / INSTALLS


def _say(text: str) -> None:
    print(f"scale: {text}", file=sys.stderr)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
