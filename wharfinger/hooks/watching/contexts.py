"""Binding contexts, which give a hook the reason of a run. Their fields are exactly those of the contract (spec hook-protocol
§2.1). Pure.

Hooks check whether a field is present, so leaving one out matters as much as including it. In the context of a ``kubernetes``
or ``schedule`` binding, ``snapshots`` is present exactly if the binding includes snapshots, and ``filterResult`` exactly if the
binding has a filter. If such a binding has a group, its context contains only the type, the names of the binding and of the
group, and the snapshots.

The caller selects the snapshots (§2.2); this module only inserts them. Contexts of version 0 bindings have an older form of their
own.

Objects that are kept as text stay text: they are inserted as they are, and unpacked when the file is written
(:mod:`~wharfinger.hooks.watching.context_file`).
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

from wharfinger.formats.json.value import JsonObject
from wharfinger.hooks.config.bindings import (
    AdmissionBinding,
    ConversionBinding,
    HookConfig,
    KubernetesBinding,
    ScheduleBinding,
    WatchVerb,
)
from wharfinger.hooks.watching.context_file import Context, ContextValue
from wharfinger.hooks.watching.monitor_core import Item, MonitorEvent

Snapshots = Mapping[str, Sequence[Item]]
"""The items of each snapshot, by the name of its binding."""

Including: TypeAlias = KubernetesBinding | ScheduleBinding | AdmissionBinding | ConversionBinding
"""A binding that may include snapshots."""

_LEGACY_VERBS: Final = {WatchVerb.ADDED: "add", WatchVerb.MODIFIED: "update", WatchVerb.DELETED: "delete"}


def on_startup() -> Context:
    """Return the context of the run at the start of the hook's package."""
    return {"binding": "onStartup"}


def helm_binding(binding: str, snapshots: Snapshots) -> Context:
    """Return the context of a stage such as ``beforeHelm``: without a type, and with the snapshots of all kubernetes bindings."""
    return {"binding": binding, "snapshots": {name: _fields(items) for name, items in snapshots.items()}}


def schedule(binding: ScheduleBinding, snapshots: Snapshots) -> Context:
    """Return the context of a schedule's tick."""
    if binding.legacy:
        return {"binding": binding.name}
    if binding.group:
        return _group(binding, snapshots)
    return {"binding": binding.name, "type": "Schedule", **_included(binding, snapshots)}


def synchronization(binding: KubernetesBinding, objects: Sequence[Item], snapshots: Snapshots) -> Context:
    """Return the context of a Synchronization, which has all objects of a binding. It precedes all events of the binding."""
    if binding.group:
        return _group(binding, snapshots)
    return {
        "binding": binding.name,
        "type": "Synchronization",
        "objects": _fields(objects),
        **_included(binding, snapshots),
    }


def event(binding: KubernetesBinding, told: MonitorEvent, snapshots: Snapshots) -> Context:
    """Return the context of a change of one object, with the object as it was at the time of the change."""
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


def validating(binding: AdmissionBinding, review: JsonObject, snapshots: Snapshots) -> Context:
    """Return the context of a request that is to be allowed or refused; ``review`` is the AdmissionReview. The type is Validating
    even if the binding has a group.
    """
    return {"binding": binding.name, "type": "Validating", "review": review, **_included(binding, snapshots)}


def mutating(binding: AdmissionBinding, review: JsonObject, snapshots: Snapshots) -> Context:
    """Return the context of a request that may be changed; ``review`` is the AdmissionReview."""
    return {"binding": binding.name, "type": "Mutating", "review": review, **_included(binding, snapshots)}


def conversion(
    binding: ConversionBinding, versions: tuple[str, str], review: JsonObject, snapshots: Snapshots
) -> Context:
    """Return the context of objects to be converted. ``versions`` is one pair of versions of the binding, and ``review`` is the
    ConversionReview.
    """
    return {
        "binding": binding.name,
        "type": "Conversion",
        "fromVersion": versions[0],
        "toVersion": versions[1],
        "review": review,
        **_included(binding, snapshots),
    }


def combined(contexts: Sequence[Context]) -> tuple[Context, ...]:
    """Combine contexts for one run. If consecutive contexts have the same group, keep only the last of them (spec hook-protocol
    §2.3).
    """
    kept = [context for context, following in pairwise(contexts) if not _same_group(context, following)]
    return (*kept, *contexts[-1:])


def synchronized_together(config: HookConfig) -> tuple[tuple[KubernetesBinding, ...], ...]:
    """Return the kubernetes bindings of a hook, grouped by the run that synchronizes them (§2.3), in the order of the runs.

    A binding with a group shares its run with the next bindings of the same queue, with or without a group, as long as they have
    the same ``executeHookOnSynchronization`` and ``waitForSynchronization``. If the first binding of a run has no group, it has
    this run for itself. Version 0 bindings always have runs of their own.
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


def _included(binding: Including, snapshots: Snapshots) -> Context:
    return {"snapshots": _picked(binding, snapshots)} if binding.include_snapshots_from else {}


def _picked(binding: Including, snapshots: Snapshots) -> dict[str, ContextValue]:
    """Return the included snapshots by name; every included name is present, even if its list is empty."""
    return {name: _fields(snapshots.get(name, ())) for name in binding.include_snapshots_from}


def _fields(items: Sequence[Item]) -> list[ContextValue]:
    return [item.fields() for item in items]
