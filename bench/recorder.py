"""The flight recorder (``wharfinger/runtime/recording``), which records the steps of the daemon's state machines.

The figures show which share of the daemon's processor time the recorder needs to keep the steps in memory, and to write them
to disk as well.

The inner part of the daemon (its runtime and its controllers) runs in this process, and the cluster and the chart engine run in
other processes. So the processor time of this process is the daemon's own. There are two kinds of rounds. In one, every package
is reconciled although nothing has changed. Such a reconciliation is as cheap as it can be, so the recorder's share is as large
as it can be. In the other, the settings of every package change, so each package is rendered again and gets a new revision.

In the short form, the steps of a few packages are first collected and later passed to recorders, without the rest of the
daemon. This is exact even on a busy machine. With ``--long``, this is also done for 200 packages. Then rounds of 200 packages
alternate: one without a recorder, one with a recorder that keeps the steps in memory (only in the rounds without changes), and
one with a recorder that also writes them to disk. These consecutive rounds are a *block*. The speed of a machine varies, so
only rounds of the same block are compared. A row of these rounds has the median of the ratios of all blocks.
"""

import gc
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final, TypeAlias, cast

import trio

from bench.measure import Ratio
from tests.packages.support.charts import SIX_OBJECTS, write
from tests.programs import WHARFINGER, program
from tests.registry_server import open_registry_server
from tests.runtime.support.world import Ground
from wharfinger.cluster.api.connection import load_connection
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.cluster.releases.engine import ReleaseEngine
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.hooks.running.hook_services import HookServices
from wharfinger.hooks.watching.jq_pool import open_jq_pool
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.packages.rendering.chart_engine import ChartEngine
from wharfinger.packages.rendering.entry_cache import EntryCache
from wharfinger.packages.rendering.helm_renderer import HelmRenderer, RenderLimits
from wharfinger.packages.rendering.render_cache import CachingRenderer
from wharfinger.packages.settings.cel_pool import open_cel_pool
from wharfinger.packages.sources.source import open_source
from wharfinger.packages.store.disk_store import open_store
from wharfinger.process.ledger import ProcessLedger, open_ledger
from wharfinger.queue.slots_machine import SlotLimits
from wharfinger.runtime.core.runtime import Runtime
from wharfinger.runtime.daemon.daemon import GC_THRESHOLDS
from wharfinger.runtime.daemon.engine import ENGINE, open_engine
from wharfinger.runtime.inspection.snapshots import RuntimeInspector
from wharfinger.runtime.lifecycle.journal import Journal
from wharfinger.runtime.package.instance import Instance, Tools
from wharfinger.runtime.recording.flight_log import DEFAULT_BYTES, FlightLog, open_flight_log, prepared
from wharfinger.runtime.recording.recorder import Recorder
from wharfinger.runtime.resources.custom_resources import ensure_crds
from wharfinger.runtime.resources.resources import APPLICATION, REQUESTED
from wharfinger.runtime.status.summary import summarize

PACKAGES: Final = 200
BLOCKS: Final = 7
"""The number of measured blocks of rounds, after one block to warm up. With three blocks, the median could be 2 % off."""
FEW: Final = 6
FEW_ROUNDS: Final = 6
REPEATED: Final = 9
MEMORY_BUDGET: Final = 0.03
DISK_BUDGET: Final = 0.04
"""The largest share with `--flight-recorder`, if reconciliations change nothing. MEMORY_BUDGET is the largest share for the
steps that each daemon keeps in memory.
"""
CHURN_BUDGET: Final = 0.03
"""The highest share with `--flight-recorder`, if the settings of each package change."""
OBSERVERS: Final = ("lifecycle", "journal", "queue", "scheduler", "package")
Calls: TypeAlias = list[tuple[str, tuple[object, ...]]]
NAMESPACE: Final = ObjectKey(ResourceType("", "v1", "Namespace", "namespaces", namespaced=False), "", "bench")
PATIENCE_S: Final = 1_800
LOOK_S: Final = 0.05
CONFIG_MAP: Final = ResourceType("", "v1", "ConfigMap", "configmaps", namespaced=True)
Ask: TypeAlias = Callable[[str], JsonObject]
"""A function that returns the patch with which a round changes an Application; its argument is the text of the round."""
Seen: TypeAlias = Callable[[Instance, str], bool]
"""A function that returns whether the daemon has observed the patch of a package."""


@dataclass(frozen=True, slots=True)
class _BenchGround(Ground):
    """A ``Ground`` (the parts of a runtime; see ``tests/runtime/support/world.py``) that renders charts in the chart engine."""

    chart_engine: ChartEngine | None = None

    def make_tools(self, services: HookServices, releases: ReleaseEngine, limits: SlotLimits | None = None) -> Tools:
        tools = Ground.make_tools(self, services, releases, limits)
        helm = HelmRenderer(self.helm, self.folder / "scratch", None, RenderLimits(), None, self.chart_engine)
        return replace(tools, renderer=CachingRenderer(helm, EntryCache(self.folder / "renders")))


@dataclass(slots=True)
class _Switch:
    """A switch that connects one of two recorders, or none, to a runtime."""

    runtime: Runtime
    in_memory: Recorder
    on_disk: Recorder
    written: FlightLog

    def turn(self, recorder: Recorder | None) -> None:
        runtime = self.runtime
        runtime.lifecycle.observe = recorder.lifecycle if recorder is not None else None
        runtime.scheduler.observe = recorder.scheduler if recorder is not None else None
        runtime.tools.journal.observe = recorder.journal if recorder is not None else None
        runtime.packages.observe = recorder.package if recorder is not None else None
        for instance in runtime.instances.values():
            instance.observe = runtime.packages.observe
        queues = runtime.queues
        queues._shared = replace(queues._shared, observe=recorder.queue if recorder is not None else None)  # noqa: SLF001 - not switched elsewhere


class _Collector:
    """A stand-in for a recorder, which collects the calls of its methods."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[object, ...]]] = []
        for name in OBSERVERS:
            setattr(self, name, partial(self._collect, name))

    def _collect(self, name: str, *step: object) -> None:
        self.calls.append((name, step))


@dataclass(frozen=True, slots=True)
class _Round:
    """A kind of round: the patch for each Application, and a check that tells whether the daemon has observed the patch."""

    patch: Ask
    seen: Seen


RECONCILED: Final = _Round(
    lambda text: {"metadata": {"annotations": {REQUESTED: text}}},
    lambda instance, text: instance.desired.directives.requested == text,
)
"""Each package is reconciled from the beginning, as a user requests it."""
CHANGED: Final = _Round(
    lambda text: {"spec": {"settings": {"colour": text}}},
    lambda instance, text: instance.desired.settings.settings.get("colour") == text,
)
"""Each package gets changed settings."""


def measure(long: bool) -> Iterator[Ratio]:
    """Measure recorders alone, with the steps of a few packages. With ``long``, also measure rounds of many packages."""
    for packages in (FEW, PACKAGES) if long else (FEW,):
        yield from trio.run(_measure_apart, packages)
    if long:
        yield from trio.run(_measure, PACKAGES)


async def _measure_apart(packages: int) -> list[Ratio]:
    """Measure the processor time in which recorders record steps that were collected before. The yardstick is the processor
    time of the reconciliations that made these steps.
    """
    gc.set_threshold(*GC_THRESHOLDS)
    with tempfile.TemporaryDirectory() as name:
        async with _open(Path(name)) as (switch, client):
            await _install(switch.runtime, client, Path(name), packages)
            same = await _collected(switch, client, packages, RECONCILED)
            changed = await _collected(switch, client, packages, CHANGED)
            gc.collect()
            gc.freeze()
            memory, disk, churn = list[float](), list[float](), list[float]()
            for number in range(REPEATED):
                memory.append(await _given(Recorder(switch.in_memory.secrets_of), None, same))
                for times, steps, kind in ((disk, same, "same"), (churn, changed, "changed")):
                    written = await prepared(Path(name) / f"{kind}-{number}", time.time, DEFAULT_BYTES)
                    times.append(await _given(Recorder(switch.in_memory.secrets_of, written), written, steps))
    each, of = packages * FEW_ROUNDS, "" if packages == FEW else f" ({packages} packages)"
    against, against_changed = "the reconciliation, processor time", "the change, processor time"
    return [
        Ratio(
            "recorder",
            f"the steps of a reconciliation, in memory{of}",
            against,
            min(memory) / each,
            same.each,
            MEMORY_BUDGET,
        ),
        Ratio(
            "recorder",
            f"the steps of a reconciliation, also on disk{of}",
            against,
            min(disk) / each,
            same.each,
            DISK_BUDGET,
        ),
        Ratio(
            "recorder",
            f"the steps of changed settings, also on disk{of}",
            against_changed,
            min(churn) / each,
            changed.each,
            CHURN_BUDGET,
        ),
    ]


@dataclass(frozen=True, slots=True)
class _Collected:
    """The steps of the first round and of the other rounds. ``each`` is the median processor time that one package takes in one
    of the other rounds.
    """

    first: Calls
    others: Sequence[Calls]
    each: float


async def _collected(switch: _Switch, client: HttpClusterClient, packages: int, what: _Round) -> _Collected:
    rounds, times = list[_Collector](), list[float]()
    for number in range(1 + FEW_ROUNDS):
        rounds.append(collector := _Collector())
        switch.turn(cast("Recorder", collector))
        before = time.process_time()
        await _run(what, switch.runtime, client, packages, f"round-{number}")
        times.append((time.process_time() - before) / packages)
    first, *others = (collector.calls for collector in rounds)
    return _Collected(first, others, median(times[1:]))


async def _given(recorder: Recorder, written: FlightLog | None, steps: _Collected) -> float:
    """Pass collected steps to a recorder, and return its processor time for them.

    The first round does not count, because the recorder then records the whole state of each machine, and later only changes.
    """
    before = 0.0
    for number, calls in enumerate((steps.first, *steps.others)):
        if number == 1:
            before = time.process_time()
        for name, step in calls:
            getattr(recorder, name)(*step)
        recorder.drain()
        if written is not None:
            await written.flush()
    took = time.process_time() - before
    if recorder.failures:
        raise SystemExit("bench: records were lost")
    return took


async def _measure(packages: int) -> list[Ratio]:
    gc.set_threshold(*GC_THRESHOLDS)
    with tempfile.TemporaryDirectory() as name:
        async with _open(Path(name)) as (switch, client):
            await _install(switch.runtime, client, Path(name), packages)
            gc.collect()
            gc.freeze()  # The daemon does this, too.
            kinds = {"off": None, "memory": switch.in_memory, "disk": switch.on_disk}
            off, memory, disk = await _in_turns(switch, client, packages, RECONCILED, kinds)
            del kinds["memory"]
            plain, recorded = await _in_turns(switch, client, packages, CHANGED, kinds)
            if switch.in_memory.failures or switch.on_disk.failures or switch.written.counters.lost:
                raise SystemExit("bench: records were lost")
    same, changed = f"{packages} packages, reconciled,", f"{packages} packages, settings changed,"
    return [
        _row(f"{same} kept in memory", memory, off, MEMORY_BUDGET),
        _row(f"{same} also on disk", disk, off, DISK_BUDGET),
        _row(f"{changed} also on disk", recorded, plain, CHURN_BUDGET),
    ]


async def _in_turns(
    switch: _Switch, client: HttpClusterClient, packages: int, what: _Round, kinds: Mapping[str, Recorder | None]
) -> list[list[float]]:
    """Run several rounds of each kind in turns. For each kind, return the processor time that each of its rounds took for one
    package.
    """
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    for number in range(len(kinds) * (1 + BLOCKS)):
        # The order of the kinds changes from block to block, so that none of them is always the first.
        kind = tuple(kinds)[(number + number // len(kinds)) % len(kinds)]
        switch.turn(kinds[kind])
        before = time.process_time()
        await _run(what, switch.runtime, client, packages, f"round-{number}")
        await switch.written.flush()
        times[kind].append((time.process_time() - before) / packages)
        print(f"recorder: round {number}, {kind}: {times[kind][-1] * 1000:.2f} ms a package", file=sys.stderr)
        if what is CHANGED:
            await _check_applied(client, packages, f"round-{number}")
    return [each[1:] for each in times.values()]  # The first block is only a warm-up.


async def _check_applied(client: HttpClusterClient, packages: int, text: str) -> None:
    """Check that the cluster has an object with the last settings for each package; otherwise end the benchmark with
    an error.
    """
    found = [find_str(each, "data", "colour") for each in (await client.list(CONFIG_MAP, NAMESPACE.name)).items]
    if found.count(text) != packages:
        raise SystemExit(f"bench: expected {packages} ConfigMaps with {text}, found {found.count(text)}")


def _row(what: str, recorded: Sequence[float], off: Sequence[float], budget: float) -> Ratio:
    usual = median(off)
    return Ratio("recorder", what, "not recorded, processor time", usual * _share(recorded, off), usual, 1 + budget)


def _share(recorded: Sequence[float], off: Sequence[float]) -> float:
    """Return the median of the ratios between a recorded and an unrecorded round of the same block."""
    return median(one / other for one, other in zip(recorded, off, strict=True))


@asynccontextmanager
async def _open(folder: Path) -> AsyncIterator[tuple[_Switch, HttpClusterClient]]:
    service = SIX_OBJECTS["templates/service.yaml"].replace("spec: {", "spec: {clusterIP: None, ")
    config = SIX_OBJECTS["templates/config.yaml"].replace("colour: blue", "colour: {{ .Values.colour }}")
    changed = {
        "values.yaml": "replicas: 1\ncolour: blue\n",
        "templates/service.yaml": service,
        "templates/config.yaml": config,
    }
    write(folder / "packages" / "six", {**SIX_OBJECTS, **changed})
    helm, engine = shutil.which("helm"), shutil.which(ENGINE)
    if helm is None or engine is None:
        raise SystemExit("bench: helm or the chart engine is not on PATH; run `make bench`")
    kubeconfig = folder / "kubeconfig"
    (folder / "state").mkdir()
    with (
        program(*WHARFINGER, "control-plane", "--kubeconfig", str(kubeconfig)) as control_plane,
        open_ledger(folder / "state" / "journal.db") as ledger,
    ):
        await trio.to_thread.run_sync(control_plane.wait_line, str(kubeconfig))
        async with open_client(load_connection(kubeconfig)) as client:
            await ensure_crds(client, "wharfinger", lambda: datetime.now(UTC))
            async with _serve(folder, client, ledger, helm, engine) as switch:
                yield switch, client


@asynccontextmanager
async def _serve(
    folder: Path, client: HttpClusterClient, ledger: ProcessLedger, helm: str, engine: str
) -> AsyncIterator[_Switch]:
    """Run the inner part of the daemon (its runtime and its controllers), with the recorder switched off."""
    async with (
        _ground(folder, client, ledger, helm, engine) as ground,
        ground.open_daemon() as runtime,
        open_flight_log(folder / "flight", time.time) as written,
    ):
        inspector = RuntimeInspector("bench", runtime.now(), runtime)
        switch = _Switch(runtime, Recorder(inspector.secrets_of), Recorder(inspector.secrets_of, written), written)
        yield switch


@asynccontextmanager
async def _ground(
    folder: Path, client: HttpClusterClient, ledger: ProcessLedger, helm: str, engine: str
) -> AsyncIterator[_BenchGround]:
    async with (
        open_registry_server(folder) as address,
        open_store(folder / "state") as store,
        open_jq_pool(None) as filters,
        open_cel_pool(None) as rules,
        open_engine(Path(engine), folder / "scratch", ledger, RenderLimits()) as chart_engine,
    ):
        yield _BenchGround(
            folder,
            client,
            client,
            store,
            filters,
            rules,
            open_source,
            Path(helm),
            address,
            [],
            None,
            Journal(ledger.file),
            chart_engine=chart_engine,
        )


async def _install(runtime: Runtime, client: HttpClusterClient, folder: Path, packages: int) -> None:
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE.name}})
    api = "wharfinger.dev/v1alpha1"
    spec: JsonObject = {"folder": {"path": str(folder / "packages")}}
    await client.create({"apiVersion": api, "kind": "PackageRepository", "metadata": {"name": "default"}, "spec": spec})
    for number in range(packages):
        metadata: JsonObject = {"name": f"six-{number}", "namespace": NAMESPACE.name}
        wanted: JsonObject = {"packageName": "six", "packageVersion": "1.0.0"}
        await client.create({"apiVersion": api, "kind": "Application", "metadata": metadata, "spec": wanted})
    await _settled(runtime, packages, lambda _: True)


async def _run(what: _Round, runtime: Runtime, client: HttpClusterClient, packages: int, text: str) -> None:
    """Patch the Applications of all packages, and wait until all of them are Ready again."""
    for number in range(packages):
        key = ObjectKey(APPLICATION, NAMESPACE.name, f"six-{number}")
        await client.merge_patch(key, what.patch(text))
    await _settled(runtime, packages, lambda instance: what.seen(instance, text))


async def _settled(runtime: Runtime, packages: int, seen: Callable[[Instance], bool]) -> None:
    """Wait until all packages have seen their patch and are Ready, and nothing is queued."""
    with trio.fail_after(PATIENCE_S):
        while not _is_settled(runtime, packages, seen):  # noqa: ASYNC110 - only the controllers are notified
            await trio.sleep(LOOK_S)


def _is_settled(runtime: Runtime, packages: int, seen: Callable[[Instance], bool]) -> bool:
    if runtime.queues.names():
        return False
    known = list(runtime.instances.values())
    return len(known) == packages and all(seen(each) and summarize(each.status).state == "Ready" for each in known)
