"""Binding contexts: why a hook runs, told to it field for field as the contract has it (spec hook-protocol §2.1). Pure.

Hooks branch on whether a field is there, so leaving one out counts as much as putting it in: ``snapshots`` is there exactly when
a binding includes some, ``filterResult`` exactly when it filters, and a binding with a group tells nothing but its snapshots.

The caller has picked the snapshots (§2.2); here they are only put in place. A version 0 binding has its own, older form.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from wharfinger.formats.json_value import JsonObject, JsonValue, find_str
from wharfinger.hooks.config import KubernetesBinding, ScheduleBinding, WatchVerb

Snapshots = Mapping[str, Sequence[JsonObject]]
"""Items by the name of the binding that keeps them."""

_LEGACY_VERBS: Final = {WatchVerb.ADDED: "add", WatchVerb.MODIFIED: "update", WatchVerb.DELETED: "delete"}


def on_startup() -> JsonObject:
    """The hook's package was started."""
    return {"binding": "onStartup"}


def helm_binding(binding: str, snapshots: Snapshots) -> JsonObject:
    """``beforeHelm`` and its like: no type, and always the snapshots, of all kubernetes bindings of the hook."""
    return {"binding": binding, "snapshots": {name: list(items) for name, items in snapshots.items()}}


def schedule(binding: ScheduleBinding, snapshots: Snapshots) -> JsonObject:
    """A time has come."""
    if binding.legacy:
        return {"binding": binding.name}
    if binding.group:
        return _group(binding, snapshots)
    return {"binding": binding.name, "type": "Schedule", **_included(binding, snapshots)}


def synchronization(binding: KubernetesBinding, objects: Sequence[JsonObject], snapshots: Snapshots) -> JsonObject:
    """All there is of a binding, before its first event. ``objects`` are items: object and filterResult as they apply."""
    if binding.group:
        return _group(binding, snapshots)
    return {
        "binding": binding.name,
        "type": "Synchronization",
        "objects": list(objects),
        **_included(binding, snapshots),
    }


def event(binding: KubernetesBinding, verb: WatchVerb, item: JsonObject, snapshots: Snapshots) -> JsonObject:
    """Something happened to one object; ``item`` is how it was then."""
    if binding.legacy:
        found = item.get("object")
        return {
            "binding": binding.name,
            "resourceEvent": _LEGACY_VERBS[verb],
            "resourceNamespace": find_str(found, "metadata", "namespace"),
            "resourceKind": find_str(found, "kind"),
            "resourceName": find_str(found, "metadata", "name"),
        }
    if binding.group:
        return _group(binding, snapshots)
    return {
        "binding": binding.name,
        "type": "Event",
        "watchEvent": verb.value,
        **item,
        **_included(binding, snapshots),
    }


def combined(contexts: Sequence[JsonObject]) -> tuple[JsonObject, ...]:
    """Contexts for one run: of each unbroken row of one group only the last stays (§2.3)."""
    kept = [context for context, following in pairwise(contexts) if not _same_group(context, following)]
    return (*kept, *contexts[-1:])


def _same_group(context: JsonObject, following: JsonObject) -> bool:
    group = context.get("groupName")
    return bool(group) and group == following.get("groupName")


def _group(binding: KubernetesBinding | ScheduleBinding, snapshots: Snapshots) -> JsonObject:
    return {
        "binding": binding.name,
        "type": "Group",
        "groupName": binding.group,
        "snapshots": _picked(binding, snapshots),
    }


def _included(binding: KubernetesBinding | ScheduleBinding, snapshots: Snapshots) -> JsonObject:
    return {"snapshots": _picked(binding, snapshots)} if binding.include_snapshots_from else {}


def _picked(binding: KubernetesBinding | ScheduleBinding, snapshots: Snapshots) -> JsonObject:
    """Every included name is there, if only with an empty list."""
    picked: dict[str, JsonValue] = {name: list(snapshots.get(name, ())) for name in binding.include_snapshots_from}
    return picked
