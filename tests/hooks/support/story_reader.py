"""A model of a hook for test_watch_story. From the contexts of the hook's runs, it concludes what the hook knows about the
cluster.
"""

import io
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tests.hooks.support.story_cluster import CONFIG_MAP, NAMESPACE, TEAM, StoryCluster
from tests.hooks.support.watching import plain
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_str
from wharfinger.hooks.config.bindings import KubernetesBinding
from wharfinger.hooks.running.discovery import Hook
from wharfinger.hooks.running.package_hooks import PackageHooks
from wharfinger.hooks.watching.context_file import Context, write_contexts


def selected(cluster: StoryCluster, binding: KubernetesBinding) -> dict[str, JsonValue]:
    """Return the values of the objects in the cluster that a binding selects, by ``namespace/name``."""
    team = {stored.name for stored in cluster.now.values() if stored.resource is NAMESPACE and stored.label == TEAM}
    return {
        f"{stored.namespace}/{stored.name}": str(stored.value)
        for stored in cluster.now.values()
        if stored.resource is CONFIG_MAP
        and stored.label.startswith(binding.label_selector)
        and (binding.names is None or stored.name in binding.names)
        and (binding.namespaces is None or not binding.namespaces.labels or stored.namespace in team)
    }


def written(contexts: tuple[Context, ...]) -> list[JsonObject]:
    """Return the contexts as a hook reads them."""
    file = io.BytesIO()
    write_contexts(file, contexts)
    found: list[JsonObject] = json.loads(file.getvalue())
    return found


def shown(item: JsonValue) -> tuple[str, JsonValue]:
    """Return the ``namespace/name`` of the item's object (``/`` if the item has no object), and the item's value."""
    document = find(item, "object")
    place = f"{find_str(document, 'metadata', 'namespace')}/{find_str(document, 'metadata', 'name')}"
    filtered = isinstance(item, dict) and "filterResult" in item
    return place, find(item, "filterResult") if filtered else find(document, "data", "v")


@dataclass
class Reader:
    """One hook of one package, and the values of objects that the hook knows about, by binding.

    ``believed`` has the value of each object by ``namespace/name``. The items of one binding have no object, and so no name;
    for this binding, ``values`` has the sorted values.
    """

    hooks: PackageHooks
    hook: Hook
    cluster: StoryCluster
    believed: dict[str, dict[str, JsonValue]] = field(default_factory=dict)
    values: dict[str, list[str]] = field(default_factory=dict)
    synchronized: set[str] = field(default_factory=set)

    async def synchronize(
        self, binding: KubernetesBinding, meanwhile: Callable[[], Awaitable[None]], *, succeeds: bool
    ) -> None:
        """Do the first run for a binding, unless it has already succeeded; ``meanwhile`` is called during the run."""
        if binding.name in self.synchronized:
            return
        if binding.legacy:  # A legacy binding has no Synchronization run.
            items = self.hooks.monitor(self.hook, binding).synchronize()
            self._shown(binding.name, [plain(item) for item in items])
            succeeds = True
        else:
            told = written(self.hooks.synchronization(self.hook, binding))
            await meanwhile()
            if succeeds:
                self._believe(told)
        if succeeds:
            self.synchronized.add(binding.name)
            self.hooks.monitor(self.hook, binding).unlock()

    async def run(self, queue: str, meanwhile: Callable[[], Awaitable[None]], *, succeeds: bool) -> None:
        """Run the hook with the occurrences that wait in a queue; ``meanwhile`` is called during the run."""
        box = self.hooks.inbox(self.hook, queue)
        occurrences = box.offered()
        for occurrence in occurrences:
            assert occurrence.event is None or occurrence.binding.name in self.synchronized, (
                "an event before its Synchronization"
            )
        if not occurrences:
            return
        told = written(self.hooks.contexts(self.hook, occurrences))
        read = {json.dumps(one["snapshots"], sort_keys=True) for one in told if "snapshots" in one}
        assert len(read) <= 1, "the snapshots of one run differ"
        await meanwhile()
        if succeeds:
            self._believe(told)
            box.remove_processed(occurrences)

    def _believe(self, told: list[JsonObject]) -> None:
        for context in told:
            name = find_str(context, "binding")
            match find(context, "type"):
                case "Synchronization":
                    self._shown(name, find_list(context, "objects"))
                case "Group":
                    for included in ("grouped", "together"):
                        self._shown(included, find_list(context, "snapshots", included))
                case "Event":
                    self._told(name, find_str(context, "watchEvent"), context)
                case _:
                    place = f"{find_str(context, 'resourceNamespace')}/{find_str(context, 'resourceName')}"
                    verbs = {"add": "Added", "update": "Modified", "delete": "Deleted"}
                    self._changed(name, verbs[find_str(context, "resourceEvent")], place, None)

    def _shown(self, name: str, items: list[JsonValue]) -> None:
        if name == "named":
            self.values[name] = sorted(str(shown(item)[1]) for item in items)
        else:
            self.believed[name] = dict(map(shown, items))

    def _told(self, name: str, verb: str, context: JsonObject) -> None:
        asked_for = next(one.verbs for one in self.hook.config.kubernetes if one.name == name)
        assert verb in asked_for, f"{name}: {verb}"
        place, value = shown(context)
        if name != "named":
            self._changed(name, verb, place, value)
            return
        # The event contains no object, so the values are read from the binding's snapshot, which is current.
        self._shown(name, find_list(context, "snapshots", name))

    def _changed(self, name: str, verb: str, place: str, value: JsonValue) -> None:
        believed = self.believed[name]
        if name != "going":
            assert (place in believed) == (verb != "Added"), f"{name}: {verb} {place}"
        if verb == "Deleted":
            believed.pop(place, None)
        else:
            believed[place] = value

    def check(self) -> None:
        """Check that what the hook knows equals the state of the cluster, except for changes that a binding does not report."""
        for binding in self.hook.config.kubernetes:
            truth = selected(self.cluster, binding)
            if binding.name == "named":
                assert self.values[binding.name] == sorted(map(str, truth.values()))
                continue
            believed = self.believed[binding.name]
            if binding.name == "going":
                assert believed.keys() <= truth.keys(), "the hook knows an object that was deleted"
            elif binding.legacy or binding.name == "coming":
                assert believed.keys() == truth.keys(), binding.name
            else:
                assert believed == truth, binding.name
            assert self.hooks.settled(self.hook, binding)
