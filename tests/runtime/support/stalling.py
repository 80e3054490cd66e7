"""Packages whose version 1.0.0 hangs in one stage, and whose version 2.0.0 is installed without a problem.

Everything that hangs is real: a registry over HTTP that stops in the middle of a blob, a bash hook and its child that both ignore
SIGTERM, a helm that does not return, a Deployment that is never ready, and a queue that waits a minute before a retry. Before a
hook or helm hangs, it writes the name of its package and the IDs of its processes to a FIFO.
"""

import os
import shlex
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path

import trio

from tests.packages.support.charts import chart
from tests.packages.support.faulty_registry import Reply, Request, open_faulty_registry
from tests.runtime.support.task_log import TaskLog
from tests.runtime.support.world import Ground, open_ground
from tests.runtime.tasks.test_hook_runs import bash, hooked
from wharfinger.cluster.releases.engine import ReleaseEngine
from wharfinger.hooks.running.hook_services import HookServices
from wharfinger.hooks.running.process_runner import ProcessHookRunner
from wharfinger.packages.registry.address import RepositoryAddress
from wharfinger.packages.registry.pusher import Package, pack_package
from wharfinger.packages.rendering.helm_renderer import HelmRenderer, RenderLimits
from wharfinger.packages.sources.source import RegistrySource
from wharfinger.process.command import Limits
from wharfinger.process.ledger import open_ledger
from wharfinger.queue.backoff import BackoffPolicy
from wharfinger.queue.slots_machine import SlotLimits
from wharfinger.runtime.core.runtime import Runtime
from wharfinger.runtime.core.service import Facts, open_runtime
from wharfinger.runtime.lifecycle.journal import Journal
from wharfinger.runtime.package.instance import Tools
from wharfinger.runtime.resources.identity import AppId
from wharfinger.runtime.resources.resources import Directives, PackageSpec
from wharfinger.runtime.resources.settings import ResolvedSettings

OLD, NEW = "1.0.0", "2.0.0"
A_MINUTE = BackoffPolicy(initial_s=60, max_s=60, jitter=0)
LONG_S = 1000.0
STALL_FILE = "STALL"
SLEEPING = 'trap "" TERM\n(trap "" TERM; sleep 1000; :) &\necho "{name} $$ $!" >{fifo}\nwait'
ON_STARTUP = "{configVersion: v1, onStartup: 1}"
HELM = """#!/bin/sh
for chart; do :; done
[ -e "$chart/STALL" ] && echo "$2 $$" >{fifo} && exec sleep 1000
exec {helm} "$@"
"""
NEVER_READY = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, annotations: {wharfinger.dev/never-ready: "true"}}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: main, image: example/main}]}
"""


class Where(StrEnum):
    """The stage in which a package hangs."""

    DOWNLOAD = "download"
    HOOK = "hook"
    RENDER = "render"
    WAIT = "wait"
    BACKOFF = "backoff"


def make_package(folder: Path, name: str, where: Where, fifo: Path) -> Package:
    """Write version 1.0.0 of a package. This version hangs in the stage ``where``."""
    match where:
        case Where.HOOK:
            hook = bash(ON_STARTUP, SLEEPING.format(name=name, fifo=shlex.quote(str(fifo))))
            hooked(folder, {"start.sh": hook}, name=name)
        case Where.BACKOFF:
            hooked(folder, {"start.sh": bash(ON_STARTUP, "exit 1")}, name=name)
        case Where.DOWNLOAD:
            chart(folder, name, OLD)
        case Where.RENDER:
            chart(folder, name, OLD, {STALL_FILE: ""})
        case Where.WAIT:
            chart(folder, name, OLD, {"templates/deployment.yaml": NEVER_READY.replace("NAME", name)})
    return pack_package(folder, name)


@dataclass(slots=True)
class Shelf:
    """The content of the registry, by path.

    ``stalled`` contains paths of blobs. The registry sends only the first half of such a blob. When it is requested, its path
    is added to ``asked``.
    """

    contents: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    stalled: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)

    def put(self, package: Package, *, stalled: bool = False) -> None:
        """Add a package to the registry, under its version and its digest. If ``stalled`` is true, its layer is sent only
        halfway.
        """
        manifest, path = package.manifest, f"/v2/packages/{package.name}"
        for reference in (package.tag, str(manifest.descriptor.digest)):
            self.contents[f"{path}/manifests/{reference}"] = (manifest.media_type, manifest.data)
        for blob in (package.config, package.layer):
            self.contents[f"{path}/blobs/{blob.descriptor.digest}"] = (blob.media_type, blob.data)
        if stalled:
            self.stalled.add(f"{path}/blobs/{package.layer.descriptor.digest}")

    def answer(self, log: TaskLog, request: Request) -> Reply:
        """Answer a request as a registry does, except that the answer for a path in ``stalled`` stops halfway."""
        if request.path not in self.contents:
            return Reply(404)
        media_type, data = self.contents[request.path]
        headers = (("Content-Type", media_type),)
        if request.path not in self.stalled:
            return Reply(headers=headers, body=data)
        self.asked.add(request.path)
        log.tell()
        return Reply(headers=headers, body=data, cut=len(data) // 2, stay=True)


@dataclass(slots=True)
class Stalled:
    """A runtime with packages that hang. ``placed`` maps the name of each package to the stage in which it hangs."""

    runtime: Runtime
    source: RegistrySource
    log: TaskLog
    shelf: Shelf
    placed: dict[str, Where]
    processes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """The processes that a package's hook or helm reported before it hung."""

    def desired(self, name: str, version: str, generation: int, *, suspended: bool = False) -> None:
        """Set the desired state of a package."""
        instance = AppId("prod", name)
        directives = Directives(suspended=suspended)
        spec = PackageSpec(instance, generation, name, version, "default", {}, (), {}, directives=directives)
        self.runtime.update_app(spec, self.source, ResolvedSettings({}))

    async def until_still(self) -> None:
        """Wait until every package hangs in its stage."""
        await self.log.until(lambda: all(self._is_still(name, where) for name, where in self.placed.items()))

    def _is_still(self, name: str, where: Where) -> bool:
        runs = self.log.runs.get(f"prod.{name}", [])
        match where:
            case Where.DOWNLOAD:
                return any(f"/{name}/" in path for path in self.shelf.asked)
            case Where.HOOK | Where.RENDER:
                return name in self.processes
            case Where.WAIT:
                return bool(runs) and runs[-1].task == "WaitReady"
            case Where.BACKOFF:
                return bool(runs) and runs[-1].over == "failed"


@asynccontextmanager
async def open_stalled(folder: Path, wheres: Sequence[Where], log: TaskLog) -> AsyncIterator[Stalled]:
    """Open a runtime with one package for each of these stages, and wait until each package hangs in its stage."""
    placed = {f"{where}-{number}": where for number, where in enumerate(wheres)}
    shelf = Shelf()
    async with open_faulty_registry() as registry, open_ground(folder) as ground, trio.open_nursery() as nursery:
        registry.answer = partial(shelf.answer, log)
        fifo = folder / "fifo"
        for name, where in placed.items():
            stalling = make_package(folder / name / OLD, name, where, fifo)
            shelf.put(stalling, stalled=where is Where.DOWNLOAD)
            shelf.put(pack_package(chart(folder / name / NEW, name, NEW), name))
        with _open_fifo(fifo) as descriptor:
            async with _open_runtime(ground, folder, fifo, len(placed), log) as runtime:
                source = RegistrySource(RepositoryAddress(registry.address, "packages", "http"))
                stalled = Stalled(runtime, source, log, shelf, placed)
                nursery.start_soon(_listen, descriptor, stalled)
                for name in placed:
                    stalled.desired(name, OLD, 1)
                await stalled.until_still()
                yield stalled
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def _open_runtime(ground: Ground, folder: Path, fifo: Path, count: int, log: TaskLog) -> AsyncIterator[Runtime]:
    """Open a runtime with a journal, as a daemon does. The runtime's limits are so high that they are never reached."""
    helm = folder / "helm"
    helm.write_text(HELM.format(fifo=shlex.quote(str(fifo)), helm=shlex.quote(str(ground.helm))))
    helm.chmod(0o755)
    enough = SlotLimits(count, count, count, count, count, source_share=100, namespace_share=100)
    scratch = folder / "scratch"
    with open_ledger(folder / "journal.db") as ledger:
        ground = replace(ground, journal=Journal(ledger.file))

        def make_tools(services: HookServices, releases: ReleaseEngine) -> Tools:
            return replace(
                ground.make_tools(services, releases, enough),
                renderer=HelmRenderer(helm, scratch, ledger, RenderLimits(wall_s=LONG_S, at_once=count)),
                hook_runner=ProcessHookRunner(
                    scratch, Limits(wall_s=LONG_S, stdout_bytes=1024, term_grace_s=LONG_S), ledger
                ),
            )

        facts = Facts(await ground.client.server_version(), "", UTC)
        async with open_runtime(
            make_tools,
            ground.client,
            ground.filters,
            facts,
            now=lambda: datetime.now(UTC),
            on_change=lambda _name: log.tell(),
            backoff=A_MINUTE,
        ) as runtime:
            yield runtime


@contextmanager
def _open_fifo(path: Path) -> Iterator[int]:
    """Make a FIFO. A line can be written to it without waiting for a reader."""
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


async def _listen(descriptor: int, stalled: Stalled) -> None:
    rest = b""
    while True:
        await trio.lowlevel.wait_readable(descriptor)
        *lines, rest = (rest + os.read(descriptor, 65536)).split(b"\n")
        for line in lines:
            name, *numbers = line.decode().split()
            stalled.processes[name] = tuple(map(int, numbers))
        stalled.log.tell()
