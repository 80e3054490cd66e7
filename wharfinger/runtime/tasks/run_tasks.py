"""The tasks that run a package (Run, WaitReady), and the tasks that stop or remove it (Disable, Suspend, Leave, Uninstall,
Undeploy).

Run has four steps: beforeHelm hooks, a render by Helm, an apply as one release, and afterHelm hooks. The last three steps are a
*pass*. If afterHelm hooks change the values, another pass follows. If they still change the values in pass MAX_ROUNDS, Run
fails with the reason ValuesLoop (spec/runtime §13 item 17).

Disable stops the hooks. If the package is paused, its release is kept; otherwise Disable also uninstalls the release.
"""

import logging
from contextlib import nullcontext
from typing import Final

from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.releases.request import UninstallResult
from wharfinger.cluster.watch.object_waits import Laggards
from wharfinger.formats.json.value import checksum
from wharfinger.packages.definition.definition import Layout
from wharfinger.packages.digest import Digest
from wharfinger.runtime.lifecycle.applied_stamp import stamp_of
from wharfinger.runtime.lifecycle.package_state import PACKAGE_LABEL, PackageState, StateRecord, state_record
from wharfinger.runtime.lifecycle.steps import Steps, fingerprint
from wharfinger.runtime.lifecycle.way_back_record import ReadyRevision
from wharfinger.runtime.package.events import Progressed, Released, Removing, Tracked, Uninstalled, WarnedOf
from wharfinger.runtime.package.findings import (
    DeletionChosen,
    FoundInstalled,
    FoundStored,
    HooksUnusable,
    ObjectsKnown,
    ValuesRead,
    Verified,
)
from wharfinger.runtime.package.instance import Host, Instance, Tools
from wharfinger.runtime.package.stoppable import waiting
from wharfinger.runtime.resources.release_policy import DeletionPolicy
from wharfinger.runtime.status.failures import EXPECTED, Expected, ValuesLoopError, WorkloadError, classify
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.status.reasons import Reason
from wharfinger.runtime.tasks.applying import ROLLBACK, UNREAD, applied_before, apply, restore
from wharfinger.runtime.tasks.collecting import collect_made
from wharfinger.runtime.tasks.configuration import adopt_wanted
from wharfinger.runtime.tasks.crd_tasks import remove_webhooks, withdraw_webhooks
from wharfinger.runtime.tasks.hook_checks import await_ready_by_hook
from wharfinger.runtime.tasks.install_tasks import former_name, read_package
from wharfinger.runtime.tasks.rendering import recorded_inputs, waiting_for
from wharfinger.runtime.tasks.start_tasks import bound_hooks, end_hooks, run_bound
from wharfinger.runtime.tasks.synchronizations import remember
from wharfinger.runtime.tasks.values import changed_paths

log = logging.getLogger(__name__)

MAX_ROUNDS: Final = 5
UNINSTALL: Final = "uninstall"
DELETE_BINDINGS: Final = ("beforeDeleteHelm", "afterDeleteHelm")
OF_THE_RELEASE: Final = ("drift", "maintenance", "release", "resourceRequests", ROLLBACK, UNREAD)
"""The subjects of warnings that no longer apply once the release is gone."""


async def run(instance: Instance, tools: Tools, host: Host) -> Verified | None:
    """Apply the release to the cluster with the current values, with hooks before and after. For a package without a chart,
    only the hooks run. Return None if the package has neither a chart nor hooks, so that there is nothing to do.
    """
    definition = instance.loaded()
    if definition.chart is None and not instance.files.hooks:
        host.emit(instance, Released(0))
        return None
    inputs = fingerprint(
        _digest(instance), instance.id.namespace, instance.desired.settings, instance.desired.directives
    )
    record = await instance.recorded(tools)
    if definition.chart is not None:
        record.compare(await tools.releases.history(instance.id.release, instance.id.namespace))
    unchanged = record.state.is_applied(inputs, checksum(instance.configuration.values))
    if record.state.withdrawn:
        await record.update(lambda state: state.placed())
    steps = instance.journalled()
    steps.begin(inputs)
    if definition.layout is not Layout.MODULE_FOLDER and unchanged and not instance.applied.verified:
        # After a restart, the result of a run that an earlier process completed is only checked.
        await _apply_round(instance, tools, host, _last_round(steps), inputs, unchanged=True)
    else:
        await _run_until_settled(instance, tools, host, inputs, unchanged=unchanged)
    await _note_applied(instance, tools, record, inputs)
    steps.finish()
    return Verified()


async def _note_applied(instance: Instance, tools: Tools, record: StateRecord, inputs: str) -> None:
    """Record the completed run in the package's state, unless the stamp in the release record has recorded it already."""
    values, settings, revision = checksum(instance.configuration.values), instance.desired.settings.checksum, 0
    if instance.loaded().chart is not None:
        history = await tools.releases.history(instance.id.release, instance.id.namespace)
        record.compare(history)
        revision = history[-1].revision if history else 0

    def noted(state: PackageState) -> PackageState:
        return state if state.is_applied(inputs, values) else state.applied_as(inputs, values, settings, revision)

    await record.update(noted)


async def _run_until_settled(instance: Instance, tools: Tools, host: Host, inputs: str, *, unchanged: bool) -> None:
    """Run the hooks, and apply the release between them, until afterHelm hooks do not change the values any more. Raises
    ValuesLoopError if they change the values too often.
    """
    await run_bound(instance, tools, host, "beforeHelm")
    loop: dict[str, None] = {}
    for number in range(1, MAX_ROUNDS + 1):
        host.emit(instance, ValuesRead())  # if event hooks change the values after this line, another run is needed
        before = instance.configuration.values
        rendered_from = await _apply_round(instance, tools, host, number, inputs, unchanged=unchanged and number == 1)
        hooks = await run_bound(instance, tools, host, "afterHelm", number=number)
        if checksum(instance.configuration.values) == rendered_from:
            return
        paths = ", ".join(changed_paths(before, instance.configuration.values))
        loop |= dict.fromkeys(f"{hook} ({paths})" for hook in sorted(hooks))
        log.info("%s: afterHelm hooks changed the values (%s); applying again", instance.id, paths)
    raise ValuesLoopError(
        f"afterHelm hooks of {instance.desired.package} {instance.desired.version} changed the values {MAX_ROUNDS} times "
        f"in a row: {'; '.join(loop)}; a hook must stop changing the values when nothing else changes"
    )


def _last_round(steps: Steps) -> int:
    """Return the number of the pass to check after a restart: the last pass that was applied, or 1 if the journal names
    none.
    """
    return next((number for number in range(MAX_ROUNDS, 1, -1) if steps.done(f"apply/{number}") is not None), 1)


async def _apply_round(
    instance: Instance, tools: Tools, host: Host, number: int, inputs: str, *, unchanged: bool
) -> str:
    """Apply the release with the current values, unless an earlier process that was killed has already applied it. Return the
    checksum of the applied values.

    ``inputs`` is the fingerprint of the requested state; ``unchanged`` is True if that state was already applied.
    """
    definition, steps, step = instance.loaded(), instance.journalled(), f"apply/{number}"
    if definition.chart is None:
        host.emit(instance, Released(0))
        return checksum(instance.configuration.values)
    tools.releases.resume(Owner(instance.id.release, instance.id.namespace))
    if (done := await applied_before(instance, tools, steps.done(step))) is not None:
        revision, _, applied = done.partition(" ")
        host.emit(instance, await restore(instance, tools))
        host.emit(instance, Released(int(revision)))
        return applied
    applied = checksum(instance.configuration.values)
    # If the package has hooks, the run is not complete when the release is applied. The journal's steps of afterHelm hooks
    # belong to the apply of their pass, so the apply is journalled even if it has no effect.
    stamp = "" if instance.files.hooks else stamp_of(inputs, applied)
    with steps.taking(step) if instance.files.hooks else steps.taking_if_started(step) as taken:
        deployed = await apply(instance, tools, host, definition, start=taken.start, unchanged=unchanged, stamp=stamp)
        taken.result = f"{deployed} {applied}"
    return applied


async def await_ready(instance: Instance, tools: Tools, host: Host) -> None:
    """Wait until the applied objects are ready, and report the names of the objects that are not ready.

    There is no time limit, but a new desired state or the stop of the daemon interrupts the wait.
    """

    def progress(laggards: Laggards) -> None:
        if laggards:
            reason, shown = _unready(instance, tools, laggards)
            host.emit(instance, Progressed(Stage.SCALED, reason, instance.masked(waiting_for(shown))))
        every = [str(key) for key in instance.applied.objects]
        host.emit(instance, Tracked(tuple(every), tuple([str(key) for key in laggards])))

    with waiting(tools):
        report = await tools.releases.wait_ready(instance.id.release, instance.id.namespace, progress=progress)
    if report.failed:
        raise WorkloadError(waiting_for(report.failed))
    await await_ready_by_hook(instance, tools, host)
    await _note_ready(instance, tools, host)


async def _note_ready(instance: Instance, tools: Tools, host: Host) -> None:
    """Record the revision as the one to which a rollback returns.

    This is done only for a package with a chart, and only if the rollback of failed upgrades is on, if a rollback is in force,
    or if such a revision is recorded already.
    """
    wanted = instance.desired.directives
    record = await instance.recorded(tools)
    if not instance.loaded().chart or not (wanted.upgrade.rollback or wanted.rolled_back or record.state.ready):
        return
    back = wanted.rolled_back is not None and wanted.rolled_back.is_back
    ready = ReadyRevision("" if back else wanted.asked, instance.status.revision, recorded_inputs(instance))
    await record.update(lambda state: state.ready_as(ready, instance.status.generation))
    host.emit(instance, WarnedOf(ROLLBACK, ()))


def _unready(instance: Instance, tools: Tools, laggards: Laggards) -> tuple[Reason, Laggards]:
    """Return the reason for which the package is not ready, and the objects to report.

    The reason is UNHEALTHY, and only stalled objects are returned, if an object is stalled of a package that an earlier process
    reported as Ready, or that is already UNHEALTHY. Otherwise, the reason is NOT_READY.
    """
    status = instance.status
    if status.is_being_verified or status.stages[Stage.SCALED].reason == Reason.UNHEALTHY:
        stalled = tools.releases.health(Owner(instance.id.release, instance.id.namespace)).stalled
        if late := {key: state for key, state in laggards.items() if key in stalled}:
            return Reason.UNHEALTHY, late
    return Reason.NOT_READY, laggards


async def stop_hooks(instance: Instance, tools: Tools, host: Host) -> None:
    """Stop the hooks of the loaded version before another version is loaded. Its webhooks still answer API servers."""
    await end_hooks(instance, tools, host)


async def pause(instance: Instance, tools: Tools, host: Host) -> None:
    """Stop the hooks of a package that is paused. Its objects are kept, and conversion webhooks still answer API servers."""
    await withdraw_webhooks(instance, tools, conversions=False)
    await end_hooks(instance, tools, host)


async def disable_and_uninstall(instance: Instance, tools: Tools, host: Host) -> None:
    """Stop the hooks, and uninstall the release; the loaded version is kept, so that the package can be enabled again."""
    host.emit(instance, DeletionChosen(instance.desired.directives.release_policy.deletion))
    record = await instance.recorded(tools)
    # This is recorded first, so that deleted objects never count as applied; the record of the hooks' synchronizations is
    # deleted, too.
    await record.update(lambda state: state.applied_as("", "", "").synchronized_with({}))
    if any(bound_hooks(instance.files.hooks, binding) for binding in DELETE_BINDINGS):
        await adopt_wanted(instance, tools, host)
    await _uninstall(instance, tools, host, during_removal=False)
    # This is recorded before the status reports it, because the process may be killed in between.
    await record.update(lambda state: state.uninstalled())
    instance.journalled().finish()
    for subject in OF_THE_RELEASE:
        host.emit(instance, WarnedOf(subject, ()))
    host.emit(instance, Uninstalled())


async def uninstall(instance: Instance, tools: Tools, host: Host) -> None:
    """Uninstall the release of a package that is removed. A release that the daemon did not write for this package is kept."""
    if instance.files.definition is None and instance.has_release:
        await _load_for_removal(instance, tools, host)
    if instance.files.definition is not None:
        await _adopt_for_removal(instance, tools, host)
    await _uninstall(instance, tools, host, during_removal=True)


async def leave(instance: Instance, tools: Tools, host: Host) -> None:
    """Stop all work on a package that another daemon manages from now on. Its objects and its records are kept as they are.

    The objects that its hooks have seen are recorded, so that the other daemon need not synchronize the hooks.
    """
    if instance.hooks.started is not None and not tools.synchronization.always(instance.loaded().layout):
        await remember(instance, tools)
    await pause(instance, tools, host)
    if instance.has_release:
        owner = Owner(instance.id.release, instance.id.namespace)
        await tools.releases.forget(owner)
        tools.releases.resume(owner)  # the package may come back to this daemon, and is not suspended then


async def undeploy(instance: Instance, tools: Tools, _host: Host) -> None:
    """Delete the package's files, delete downloaded blobs that no other package uses, and delete the recorded state.

    If the package has moved to another daemon, its recorded state is kept, because that daemon reads it.
    """
    steps = instance.journalled()
    if steps.done("undeploy") is None:
        with steps.taking("undeploy"):
            await tools.store.undeploy(instance.id.name)
            await tools.store.undeploy(former_name(instance.id.name))
            await tools.store.collect()
            if instance.has_release and not instance.removal.moved:
                # The record is deleted even if its content cannot be read.
                await state_record(tools.cluster, instance.id).delete()


def _digest(instance: Instance) -> str:
    return str(instance.files.manifest.descriptor.digest) if instance.files.manifest else ""


async def _uninstall(instance: Instance, tools: Tools, host: Host, *, during_removal: bool) -> None:
    def progress(laggards: Laggards) -> None:
        if laggards and during_removal:
            waits = instance.masked(waiting_for(laggards))
            host.emit(instance, Removing("Removing", f"waiting until the release is gone: {waits}"))

    if instance.hooks.scope is not None:
        instance.hooks.scope.cancel("the package is being uninstalled")
    # Webhooks are withdrawn first, because a webhook must not refuse the deletion of its own package.
    await withdraw_webhooks(instance, tools, conversions=not instance.has_release)
    if not instance.has_release:
        return
    name, namespace = instance.id.release, instance.id.namespace
    history = await tools.releases.history(name, namespace)
    ours = any(release.holder and release.labels.get(PACKAGE_LABEL) == instance.id.name for release in history)

    steps = instance.journalled()
    steps.begin_once(UNINSTALL)

    async def run_hooks(binding: str) -> None:
        hooks = bound_hooks(instance.files.hooks, binding)
        if not hooks or instance.removal.skip_delete_hooks:
            return
        if during_removal:
            names = ", ".join(hook.name for hook in hooks)
            host.emit(instance, Removing("Removing", f"running the package's {binding} hooks: {names}"))
        await run_bound(instance, tools, host, binding)

    withdrawn = instance.record is not None and instance.record.state.withdrawn
    applied = bool(instance.status.version) and not withdrawn
    if ours:
        await run_hooks("beforeDeleteHelm")
    if history and not ours:
        await tools.releases.forget(
            Owner(name, namespace)
        )  # forgets objects that were applied before the first revision
    else:
        # Without a record, the journal has no step, so remaining objects are searched again after a crash.
        with steps.taking(UNINSTALL) if ours else nullcontext(), waiting(tools):
            result = await tools.releases.uninstall(
                name,
                namespace,
                delete_protected=instance.removal.deletion is DeletionPolicy.DELETE_ALL,
                orphan=instance.removal.deletion is DeletionPolicy.ORPHAN,
                applied=applied,
                progress=progress,
            )
        if not result.found:
            _log_left_over(instance, result)
    # Drift of a later release with this name must be corrected, so the name must not count as suspended any more.
    tools.releases.resume(Owner(name, namespace))
    if ours or applied:
        await run_hooks("afterDeleteHelm")
    await collect_made(instance, tools)
    await remove_webhooks(instance, tools, host)
    await withdraw_webhooks(instance, tools, conversions=True)
    await end_hooks(instance, tools, host)
    host.emit(instance, ObjectsKnown(()))


def _log_left_over(instance: Instance, result: UninstallResult) -> None:
    """Log whether each remaining object was deleted or kept, after an uninstall of a release that has no record."""
    for key in result.deleted:
        log.info(
            "%s: deleted %s: the object belonged to this package's release, whose record is gone", instance.id, key
        )
    for key, why in result.kept.items():
        log.info("%s: the object %s of this package's former release is kept: %s", instance.id, key, why)


async def _load_for_removal(instance: Instance, tools: Tools, host: Host) -> None:
    """Load a package that is removed after a restart of the daemon, because the package's hooks have to run.

    A package that cannot be read is removed without its hooks.
    """
    try:
        state = (await instance.recorded(tools)).state
        manifest = await tools.store.installed(Digest(state.digest)) if state.digest else None
        if manifest is None:
            return
        host.emit(instance, FoundInstalled(state.source.rpartition(" ")[2], state.version))
        host.emit(instance, FoundStored(manifest, await tools.store.install(manifest)))
        await tools.store.deploy(instance.id.name, manifest)  # Undeploy removes it
        await read_package(instance, tools, host)
    except EXPECTED as error:
        _without_hooks(instance, host, error)


async def _adopt_for_removal(instance: Instance, tools: Tools, host: Host) -> None:
    """Set the values for hooks during the removal, if the package was not configured since it was loaded."""
    try:
        await adopt_wanted(instance, tools, host)
    except EXPECTED as error:
        asked = bound_hooks(instance.files.hooks, "beforeDeleteHelm") or bound_hooks(
            instance.files.hooks, "afterDeleteHelm"
        )
        if (
            asked
            and not classify(error).permanent
            and not instance.removal.skip_delete_hooks
            and instance.status.version
        ):
            raise  # a transient error is raised, so that clean-up hooks are not skipped
        _without_hooks(instance, host, error)


def _without_hooks(instance: Instance, host: Host, error: Expected) -> None:
    host.emit(instance, HooksUnusable())
    log.warning("%s: the removal continues without the package's hooks: %s", instance.id, instance.masked(str(error)))
