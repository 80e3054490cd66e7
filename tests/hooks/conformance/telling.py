"""Helpers that return the exact text of a context file, and the objects, events and hooks from which it is written."""

import io
import json
from collections.abc import Sequence
from typing import cast

from tests.hooks.support.hooked import hook
from tests.hooks.support.python_filters import PythonFilters
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.raw_object import RawObject
from wharfinger.cluster.watch.shared_watches import SharedWatches
from wharfinger.formats.json.value import JsonObject, JsonValue, canonical_json, find_str
from wharfinger.hooks.config.bindings import KubernetesBinding, WatchVerb
from wharfinger.hooks.running.discovery import Hook
from wharfinger.hooks.running.inbox import Inbox, Occurrence
from wharfinger.hooks.running.package_hooks import PackageHooks
from wharfinger.hooks.watching.context_file import Context, write_contexts
from wharfinger.hooks.watching.monitor_core import Item, MonitorEvent, entry_of, sighting_of
from wharfinger.kube.resource import ObjectKey, ResourceType

POD_TYPE = ResourceType("", "v1", "Pod", "pods", namespaced=True)


def pod(name: str, namespace: str = "d") -> JsonObject:
    """Return a small pod, so that a whole context is readable in a test."""
    return {"kind": "Pod", "metadata": {"name": name, "namespace": namespace}}


def key(obj: JsonObject) -> ObjectKey:
    return ObjectKey(POD_TYPE, find_str(obj, "metadata", "namespace"), find_str(obj, "metadata", "name"))


def item(binding: KubernetesBinding, obj: JsonObject, filtered: JsonValue = None) -> Item:
    """Return an item as a monitor stores it; ``filtered`` is the filter's result, if the binding has a filter."""
    seen = sighting_of(RawObject(key(obj), "", "", canonical_json(obj)))
    return entry_of(binding, seen, canonical_json(filtered) if binding.jq_filter else None).item


def event(binding: KubernetesBinding, verb: WatchVerb, obj: JsonObject, filtered: JsonValue = None) -> MonitorEvent:
    return MonitorEvent(verb, key(obj), item(binding, obj, filtered))


def happened(binding: KubernetesBinding, verb: WatchVerb, obj: JsonObject, filtered: JsonValue = None) -> Occurrence:
    return Occurrence(binding, event(binding, verb, obj, filtered))


def written(*contexts: Context) -> str:
    """Return the text of the context file with these contexts."""
    file = io.BytesIO()
    write_contexts(file, contexts)
    return file.getvalue().decode()


def read(*contexts: Context) -> list[JsonObject]:
    """Return the contexts as a hook reads them."""
    found: list[JsonObject] = json.loads(written(*contexts))
    return found


def unopened(*hooks: Hook) -> PackageHooks:
    """Return the hooks of a package whose monitors do not run."""
    client, watches = cast("ClusterClient", None), cast("SharedWatches", None)
    return PackageHooks(
        "p", hooks, client, watches, PythonFilters({}), namespace=None, on_event=lambda _hooks, _box: None
    )


def asking(config: str, name: str = "hooks/a.sh") -> Hook:
    """Return a hook with this version 1 configuration."""
    return hook("configVersion: v1\n" + config, name)


def waiting(hook: Hook, occurrences: Sequence[Occurrence], *, limit: int = 1_000) -> Inbox:
    """Return an inbox with these waiting occurrences."""
    box = Inbox(hook, "main", limit=limit)
    for occurrence in occurrences:
        box.add(occurrence)
    return box
