"""Binding contexts: why a hook runs, told to it field for field as the contract has it (spec hook-protocol §2.1). Pure.

Hooks branch on whether a field is there, so leaving one out counts as much as putting it in: ``snapshots`` is there exactly when
a binding includes some, ``filterResult`` exactly when it filters, and a binding with a group tells nothing but its snapshots.

The caller has picked the snapshots (§2.2); here they are only put in place. A version 0 binding has its own, older form.

What is kept of objects as text stays text: it is put in as it is, and taken out when the file is written
(:mod:`~wharfinger.hooks.watching.context_file`).
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from wharfinger.hooks.config.bindings import HookConfig, KubernetesBinding, ScheduleBinding, WatchVerb
from wharfinger.hooks.watching.context_file import Context, ContextValue
from wharfinger.hooks.watching.monitor_core import Item, MonitorEvent

Snapshots = Mapping[str, Sequence[Item]]
"""Items by the name of the binding that keeps them."""

_LEGACY_VERBS: Final = {WatchVerb.ADDED: "add", WatchVerb.MODIFIED: "update", WatchVerb.DELETED: "delete"}


def on_startup() -> Context:
    """The hook's package was started."""
    return {"binding": "onStartup"}


def helm_binding(binding: str, snapshots: Snapshots) -> Context:
    """``beforeHelm`` and its like: no type, and always the snapshots, of all kubernetes bindings of the hook."""
    return {"binding": binding, "snapshots": {name: _fields(items) for name, items in snapshots.items()}}


def schedule(binding: ScheduleBinding, snapshots: Snapshots) -> Context:
    """A time has come."""
    if binding.legacy:
        return {"binding": binding.name}
    if binding.group:
        return _group(binding, snapshots)
    return {"binding": binding.name, "type": "Schedule", **_included(binding, snapshots)}


def synchronization(binding: KubernetesBinding, objects: Sequence[Item], snapshots: Snapshots) -> Context:
    """All there is of a binding, before its first event."""
    if binding.group:
        return _group(binding, snapshots)
    return {
        "binding": binding.name,
        "type": "Synchronization",
        "objects": _fields(objects),
        **_included(binding, snapshots),
    }


def event(binding: KubernetesBinding, told: MonitorEvent, snapshots: Snapshots) -> Context:
    """Something happened to one object; it is shown as it was then."""
    if binding.legacy:
        return {
            "binding": binding.name,
            "resourceEvent": _LEGACY_VERBS[told.verb],
            "resourceNamespace": told.key.namespace,
            "resourceKind": told.key.resource.kind,
            "resourceName": told.key.name,
        }
    if binding.group:
        return _group(binding, snapshots)
    return {
        "binding": binding.name,
        "type": "Event",
        "watchEvent": told.verb.value,
        **told.item.fields(),
        **_included(binding, snapshots),
    }


def combined(contexts: Sequence[Context]) -> tuple[Context, ...]:
    """Contexts for one run: of each unbroken row of one group only the last stays (§2.3)."""
    kept = [context for context, following in pairwise(contexts) if not _same_group(context, following)]
    return (*kept, *contexts[-1:])


def synchronized_together(config: HookConfig) -> tuple[tuple[KubernetesBinding, ...], ...]:
    """Which bindings of a hook are synchronised in one run (§2.3), in the order of those runs.

    A binding with a group takes those behind it along, with and without one, that are told in the same queue and under the same
    conditions. One without a group begins nothing, and nothing is combined for version 0.
    """
    runs: list[list[KubernetesBinding]] = []
    latest: dict[str, list[KubernetesBinding]] = {}
    for binding in config.kubernetes:
        run = latest.get(binding.queue, [])
        if run and not binding.legacy and run[0].group and _conditions(run[0]) == _conditions(binding):
            run.append(binding)
        else:
            runs.append([binding])
            latest[binding.queue] = runs[-1]
    return tuple(map(tuple, runs))


def _conditions(binding: KubernetesBinding) -> tuple[bool, bool]:
    return binding.on_synchronization, binding.wait_for_synchronization


def _same_group(context: Context, following: Context) -> bool:
    group = context.get("groupName")
    return bool(group) and group == following.get("groupName")


def _group(binding: KubernetesBinding | ScheduleBinding, snapshots: Snapshots) -> Context:
    return {
        "binding": binding.name,
        "type": "Group",
        "groupName": binding.group,
        "snapshots": _picked(binding, snapshots),
    }


def _included(binding: KubernetesBinding | ScheduleBinding, snapshots: Snapshots) -> Context:
    return {"snapshots": _picked(binding, snapshots)} if binding.include_snapshots_from else {}


def _picked(binding: KubernetesBinding | ScheduleBinding, snapshots: Snapshots) -> dict[str, ContextValue]:
    """Every included name is there, if only with an empty list."""
    return {name: _fields(snapshots.get(name, ())) for name in binding.include_snapshots_from}


def _fields(items: Sequence[Item]) -> list[ContextValue]:
    return [item.fields() for item in items]
