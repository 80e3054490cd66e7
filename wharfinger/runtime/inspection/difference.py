"""The changes that the next apply of a package would make in the cluster: the chart is rendered as for an apply, and the
result of the apply is predicted (:mod:`wharfinger.cluster.releases.prediction`).
"""

from functools import partial
from typing import Final, assert_never

import trio

from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.releases.prediction import Change, ObjectChange, Prediction
from wharfinger.packages.definition.definition import Definition
from wharfinger.runtime.inspection.field_changes import field_changes
from wharfinger.runtime.package.instance import Host, Instance, Tools
from wharfinger.runtime.package_details import DifferenceSnapshot, ObjectChangeSnapshot
from wharfinger.runtime.status.failures import EXPECTED, classify
from wharfinger.runtime.tasks.rendering import (
    is_unmanaged,
    new_recorded,
    overlaid,
    recorded,
    release_request,
    render,
    wanted_render,
)

NOT_LOADED: Final = "the package is not loaded yet; `wharfinger why` says what it waits for"
NO_CHART: Final = "the package has no Helm chart, so nothing is applied"


async def difference_of(instance: Instance, tools: Tools, host: Host) -> DifferenceSnapshot:
    """Return the changes that the next apply of a package would make. If the package cannot be rendered, or the apply would be
    refused, the answer contains the problem. Nothing is changed.
    """
    name, definition = instance.id.name, instance.files.definition
    if definition is None or instance.files.tree is None:
        return DifferenceSnapshot(name, problem=NOT_LOADED)
    if definition.chart is None:
        return DifferenceSnapshot(name, problem=NO_CHART)
    try:
        notes, prediction = await _predicted(instance, tools, host, definition)
    except EXPECTED as error:
        return DifferenceSnapshot(name, problem=instance.masked(classify(error).message))
    secrets = instance.secrets
    changes = await trio.to_thread.run_sync(partial(_snapshots, prediction, secrets))
    unchanged = sum(each.change is Change.UNCHANGED for each in prediction.changes)
    return DifferenceSnapshot(name, changes, unchanged, (*notes, *prediction.notes))


async def _predicted(
    instance: Instance, tools: Tools, host: Host, definition: Definition
) -> tuple[tuple[str, ...], Prediction]:
    """Render the chart, and return notes and a prediction of the next apply. Raises PackageError or ClusterError."""
    owner = Owner(instance.id.release, instance.id.namespace)
    history = await tools.releases.history(owner.name, owner.namespace)
    wanted = await wanted_render(instance, tools, host, history)
    found = await recorded(wanted, instance, tools, history)
    if found is None:
        found = new_recorded(wanted, await render(wanted.request, instance, tools))
    over = (await overlaid(found.rendered, wanted.directives, instance.id.name, tools)).rendered
    request = await trio.to_thread.run_sync(partial(release_request, wanted, found, over, definition, instance))
    notes = _notes(instance, tools)
    if instance.desired.directives.maintenance and history and is_unmanaged(history[-1]):
        notes.append("the package is in maintenance (spec.maintenance): nothing is applied before the maintenance ends")
    return tuple(notes), await tools.releases.predict(request)


def _notes(instance: Instance, tools: Tools) -> list[str]:
    """Return notes about facts that delay the next apply, or may change its result."""
    notes: list[str] = []
    if instance.status.suspended:
        resume = f"`wharfinger resume {instance.id.name}`"
        notes.append(f"the package is suspended: nothing is applied before it is resumed with {resume}")
    notes += [
        f"an operation is under way ({entry.operation.value}); this difference is about its intermediate state"
        for entry in tools.journal.entries()
        if entry.package == instance.id.name and not entry.earlier
    ]
    if not instance.is_configured:
        notes.append("the newest settings are not in use yet; this difference is about the former settings")
    if instance.files.hooks:
        notes.append("hooks of the package run before and after the apply; their changes are not predicted")
    return notes


def _snapshots(prediction: Prediction, secrets: tuple[str, ...]) -> tuple[ObjectChangeSnapshot, ...]:
    return tuple(_snapshot(each, secrets) for each in prediction.changes if each.change is not Change.UNCHANGED)


def _snapshot(each: ObjectChange, secrets: tuple[str, ...]) -> ObjectChangeSnapshot:
    match each.change:
        case Change.CREATE:
            fields, more = field_changes(None, each.after, secrets)
        case Change.CHANGE:
            fields, more = field_changes(each.before, each.after, secrets)
        case Change.DELETE | Change.KEEP | Change.UNKNOWN | Change.UNCHANGED:
            fields, more = (), 0
        case _:
            assert_never(each.change)
    note = "; ".join(text for text in (each.note, f"{more} more fields" if more else "") if text)
    return ObjectChangeSnapshot(each.object, each.change.value, each.by.value, fields, note)
