"""Hooks: the cost of the files that the daemon and a hook exchange, of filters in worker processes, and of object monitors."""

import os
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import httpx
import jq
import trio

from bench.measure import Ratio, compare_async
from tests.cluster.api.test_discovery import CORE, GROUPS, POD
from tests.cluster.support.client_contract import CONFIG_MAP, config_map
from tests.cluster.support.clusters import memory_cluster
from tests.hooks.support.bindings import binding
from tests.hooks.support.scripts import bash, run_of
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.http_client import open_client
from wharfinger.cluster.watch.informer import open_informer
from wharfinger.cluster.watch.shared_watches import open_shared_watches
from wharfinger.formats.json.value import JsonObject, canonical_json, find_object
from wharfinger.hooks.config.bindings import KubernetesBinding
from wharfinger.hooks.running.process_runner import ProcessHookRunner
from wharfinger.hooks.watching.filters import Filters
from wharfinger.hooks.watching.jq_pool import open_jq_pool
from wharfinger.hooks.watching.monitor import Monitor, open_monitors
from wharfinger.hooks.watching.monitor_core import MonitorEvent
from wharfinger.process.child import run_child
from wharfinger.process.command import Command, Limits

RUNS: Final = 10
OBJECTS: Final = 1_000
APPLIED: Final = 200
FILTER: Final = "{name: .metadata.name, a: .data.a}"
LIMITS: Final = Limits(wall_s=30, stdout_bytes=1_000_000)


def measure(long: bool) -> Iterator[Ratio]:
    """Measure a run of a hook, a filter, a monitor that lists objects, and a monitor that processes events."""
    yield from trio.run(_measure)


async def _measure() -> list[Ratio]:
    with tempfile.TemporaryDirectory() as folder:
        rows = await _runs(Path(folder))
    async with open_jq_pool(None) as filters:
        return [*rows, await _filter(filters), *await _listing(filters), *await _events(filters)]


async def _runs(folder: Path) -> list[Ratio]:
    script = bash(folder, 'echo "{\\"a\\": 1}" >&2')
    run = run_of(script)
    environment = dict(os.environ)
    command = Command((str(script),), folder, environment)
    runner = ProcessHookRunner(folder / "scratch", LIMITS)

    async def ours() -> None:
        for _ in range(RUNS):
            assert (await runner.run(run)).succeeded

    async def child() -> None:
        for _ in range(RUNS):
            await run_child(command, LIMITS)

    async def bare() -> None:
        for _ in range(RUNS):
            await trio.run_process([str(script)], cwd=folder, env=environment, capture_stdout=True, capture_stderr=True)

    what = f"{RUNS} x a bash hook"
    return [
        await compare_async("hooks", what, "run_child of the same script", ours, child, budget=4.0),
        await compare_async("hooks", what, "trio.run_process", ours, bare, budget=7.0),
    ]


async def _filter(filters: Filters) -> Ratio:
    obj = _object(0)
    program = jq.compile(FILTER)

    async def ours() -> None:
        for _ in range(APPLIED):
            await filters.apply(FILTER, obj)

    async def theirs() -> None:
        for _ in range(APPLIED):
            program.input_text(canonical_json(obj).decode()).first()

    return await compare_async(
        "hooks", f"{APPLIED} x a small filter", "the jq binding in-process", ours, theirs, budget=15.0
    )


async def _listing(filters: Filters) -> list[Ratio]:
    async with memory_cluster() as client:
        for number in range(OBJECTS):
            await client.create(_object(number))

        async def theirs() -> None:
            assert len((await client.list(CONFIG_MAP, "default")).items) >= OBJECTS

        async def ours(wanted: KubernetesBinding) -> None:
            async with _following(client, filters, wanted, lambda _: None) as monitor:
                await monitor.wait_listed()
                assert len(monitor.snapshot()) >= OBJECTS

        what = f"monitor lists {OBJECTS} objects"
        plain, filtered = binding(), binding(jq_filter=FILTER)
        return [
            await compare_async("hooks", what, "bare client.list", partial(ours, plain), theirs, budget=6.0),
            await compare_async(
                "hooks", f"{what}, jqFilter", "bare client.list", partial(ours, filtered), theirs, budget=30.0
            ),
        ]


async def _events(filters: Filters) -> list[Ratio]:
    server = _Server(_lines())
    async with open_client(Connection("https://api.invalid"), transport=server) as client:

        async def theirs() -> None:
            done = _Countdown(OBJECTS)
            async with open_informer(client, POD, "default", on_change=done.count) as informer:
                await informer.wait_synced()
                server.tell()
                await done.event.wait()

        async def ours(wanted: KubernetesBinding) -> None:
            done = _Countdown(OBJECTS)
            async with _following(client, filters, wanted, done.count) as monitor:
                await monitor.wait_listed()
                monitor.unlock()
                server.tell()
                await done.event.wait()

        what = f"monitor reports {OBJECTS} events"
        plain, filtered = binding(kind="Pod"), binding(kind="Pod", jq_filter=FILTER)
        return [
            await compare_async("hooks", what, "bare informer", partial(ours, plain), theirs, budget=4.0),
            await compare_async(
                "hooks", f"{what}, jqFilter", "bare informer", partial(ours, filtered), theirs, budget=30.0
            ),
        ]


@asynccontextmanager
async def _following(
    client: ClusterClient, filters: Filters, wanted: KubernetesBinding, emit: Callable[[MonitorEvent], None]
) -> AsyncIterator[Monitor]:
    async with open_shared_watches(client) as watches:
        monitor = Monitor(client, watches, filters, wanted, hook="bench", namespace="default", emit=emit)
        async with open_monitors([monitor]):
            yield monitor


class _Countdown:
    """An event that is set when :meth:`count` has been called ``calls`` times."""

    def __init__(self, calls: int) -> None:
        self.event = trio.Event()
        self._left = calls

    def count(self, _told: object) -> None:
        self._left -= 1
        if not self._left:
            self.event.set()


class _Server(httpx.AsyncBaseTransport):
    """An API server whose lists are empty. Each call of :meth:`tell` makes one watch send the same lines without a pause."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = lines
        self._told = trio.Event()

    def tell(self) -> None:
        """Let the open watch send its lines, or the next watch if none is open."""
        self._told.set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await trio.lowlevel.checkpoint()
        if "watch" in request.url.params:
            return httpx.Response(200, stream=_Watch(self._watch()))
        empty: JsonObject = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "5"}, "items": []}
        documents = {"/api": CORE, "/apis": GROUPS}
        return httpx.Response(200, content=canonical_json(documents.get(request.url.path, empty)))

    async def _watch(self) -> AsyncGenerator[bytes, None]:
        await self._told.wait()
        self._told = trio.Event()
        for line in self._lines:
            await trio.lowlevel.checkpoint()
            yield line
        await trio.sleep_forever()


class _Watch(httpx.AsyncByteStream):
    def __init__(self, lines: AsyncGenerator[bytes, None]) -> None:
        self._lines = lines

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._lines

    async def aclose(self) -> None:
        with trio.CancelScope(shield=True):
            await self._lines.aclose()


def _lines() -> list[bytes]:
    """Return the events of a hundred objects, each of which is added and then changed nine times."""
    lines = []
    for number in range(OBJECTS):
        obj = _object(number % 100, number)
        find_object(obj, "metadata")["resourceVersion"] = str(number + 10)
        event: JsonObject = {"type": "ADDED" if number < 100 else "MODIFIED", "object": {**obj, "kind": "Pod"}}
        lines.append(canonical_json(event) + b"\n")
    return lines


def _object(number: int, revision: int = 1) -> JsonObject:
    """Return a ConfigMap of about 1 kB."""
    return config_map(f"map-{number}", a=f"{revision}", text="x" * 500, more="y" * 300)
