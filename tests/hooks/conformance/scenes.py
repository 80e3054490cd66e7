"""Scenarios of a hook and a cluster: the hook's configuration, the cluster's states, and the contexts of the runs.

The parts in between are real: a control plane in this process, shared watches, monitors, and jq in its worker processes.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import trio
import trio.testing

from tests.cluster.support.clusters import memory_cluster
from tests.hooks.conformance.telling import asking, read
from tests.hooks.support.patience import PATIENT_FILTERS
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.http_client import HttpClusterClient
from wharfinger.cluster.watch.shared_watches import open_shared_watches
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_object, find_str
from wharfinger.formats.yaml.reader import read_yaml, read_yaml_all
from wharfinger.hooks.config.config import MAIN_QUEUE
from wharfinger.hooks.running.discovery import Hook
from wharfinger.hooks.running.package_hooks import PackageHooks, open_package_hooks
from wharfinger.hooks.watching.context_file import Context
from wharfinger.hooks.watching.contexts import synchronized_together
from wharfinger.hooks.watching.jq_pool import open_jq_pool
from wharfinger.kube.resource import ObjectKey, name_of, namespace_of

PATIENCE_S: Final = 300
QUIET_S: Final = 0.005
"""The pause in seconds between two checks of the pending contexts. It is long enough for all pending work to be done."""
_OF_THE_SERVER: Final = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")


class Cluster:
    """A cluster whose state is set from YAML."""

    def __init__(self, client: HttpClusterClient) -> None:
        self.client = client
        self._there: dict[tuple[str, str, str], JsonObject] = {}

    async def become(self, state: str) -> None:
        """Write these objects in order, then delete the objects of earlier states that are not among them."""
        wanted = {_name(obj): obj for obj in read_yaml_all(state, what="state") if isinstance(obj, dict)}
        for name, obj in wanted.items():
            if name not in self._there:
                await self.client.create(obj)
            elif self._there[name] != obj:
                metadata = {**find_object(obj, "metadata"), "resourceVersion": await self._version(obj)}
                await self.client.replace({**obj, "metadata": metadata})
        for name, obj in self._there.items():
            if name not in wanted:
                await self.client.delete(await self._key(obj))
        self._there = wanted

    async def _key(self, obj: JsonObject) -> ObjectKey:
        resource = await self.client.resource_type(*(find_str(obj, name) for name in ("apiVersion", "kind")))
        return ObjectKey(resource, namespace_of(obj), name_of(obj))

    async def _version(self, obj: JsonObject) -> str:
        return find_str(await self.client.get(await self._key(obj)), "metadata", "resourceVersion")


class Scene:
    """A hook whose monitors run, as in the daemon. Each text that a test expects is the context file of one run of the hook."""

    def __init__(self, cluster: Cluster, opened: PackageHooks, hook: Hook) -> None:
        self.cluster = cluster
        self._opened = opened
        self._hook = hook

    def starts(self, *expected: str) -> None:
        """Do the hook's synchronization runs, and check that their context files are ``expected`` (YAML)."""
        files: list[JsonValue] = []
        for bindings in synchronized_together(self._hook.config):
            if bindings[0].on_synchronization:
                files.append(_read(self._opened.synchronization(self._hook, *bindings)))
            for binding in bindings:
                self._opened.monitor(self._hook, binding).unlock()
        assert files == [read_yaml(text, what="expected") for text in expected], files

    async def becomes(self, state: str, expected: str) -> None:
        """Set the cluster to ``state``, wait until all changes were seen, and check the context file of the next run."""
        await self.cluster.become(state)
        await self.tells(expected)

    async def ticks(self, crontab: str, expected: str) -> None:
        """Tick the schedules of a crontab, and check the context file of the next run."""
        self._opened.tick(crontab)
        await self.tells(expected)

    async def tells(self, expected: str) -> None:
        """Wait until all changes were seen, and check the context file of the next run."""
        wanted = read_yaml(expected, what="expected")
        box = self._opened.inbox(self._hook, MAIN_QUEUE)
        occurrences, told = box.offered(), None
        with trio.move_on_after(PATIENCE_S):
            while told != wanted:
                await trio.testing.wait_all_tasks_blocked(QUIET_S)
                occurrences = box.offered()
                told = _read(self._opened.contexts(self._hook, occurrences))
        assert told == wanted, told
        box.remove_processed(occurrences)


@asynccontextmanager
async def scene(config: str, state: str = "") -> AsyncIterator[Scene]:
    """Open a scene: a hook with this configuration, and its monitors, in a cluster that already has the objects in
    ``state``.
    """
    hook = asking(config)
    async with memory_cluster() as client:
        cluster = Cluster(client)
        await cluster.become(state)
        async with following(client, hook) as opened:
            yield Scene(cluster, opened, hook)


@asynccontextmanager
async def following(client: ClusterClient, hook: Hook) -> AsyncIterator[PackageHooks]:
    """Open the hooks of a package that has only this hook."""
    async with (
        open_jq_pool(None, limits=PATIENT_FILTERS) as filters,
        open_shared_watches(client) as shared,
        open_package_hooks(
            "p", (hook,), client, shared, filters, namespace=None, on_event=lambda _hooks, _box: None
        ) as opened,
    ):
        yield opened


def _name(obj: JsonObject) -> tuple[str, str, str]:
    return find_str(obj, "kind"), namespace_of(obj), name_of(obj)


def _read(contexts: tuple[Context, ...]) -> JsonValue:
    """Return the contexts as a hook reads them, without the metadata that the server sets on objects."""
    return _bare([*read(*contexts)])


def _bare(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_bare(each) for each in value]
    if not isinstance(value, dict):
        return value
    if not find(value, "metadata", "uid"):
        return {key: _bare(each) for key, each in value.items()}
    metadata = find(value, "metadata")
    assert isinstance(metadata, dict)
    return {**value, "metadata": {key: each for key, each in metadata.items() if key not in _OF_THE_SERVER}}
