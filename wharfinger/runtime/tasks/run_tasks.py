"""Run → WaitReady, and the way back: Disable, Uninstall, Undeploy.

Run: beforeHelm hooks, render with the real Helm, apply as one release, afterHelm hooks. While afterHelm hooks change the
values, this is repeated up to MAX_ROUNDS times; then the loop is reported instead of being run for ever (spec/runtime §13 item
17). Disabling stops the hooks; a pause keeps the release, an uninstall removes it as well.
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
from wharfinger.runtime.lifecycle.package_state import PACKAGE_LABEL, state_record
from wharfinger.runtime.lifecycle.steps import Steps, fingerprint
from wharfinger.runtime.package.instance import Instance, Reporter, Tools
from wharfinger.runtime.package.stoppable import waiting
from wharfinger.runtime.resources.release_policy import DeletionPolicy
from wharfinger.runtime.status.failures import EXPECTED, Expected, ValuesLoopError, WorkloadError, classify
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.status.reasons import Reason
from wharfinger.runtime.tasks.applying import applied_before, apply, restore
from wharfinger.runtime.tasks.collecting import collect_made
from wharfinger.runtime.tasks.configuration import adopt_wanted
from wharfinger.runtime.tasks.crd_tasks import remove_webhooks
from wharfinger.runtime.tasks.hook_checks import await_ready_by_hook
from wharfinger.runtime.tasks.install_tasks import read_package
from wharfinger.runtime.tasks.rendering import waiting_for
from wharfinger.runtime.tasks.start_tasks import bound_hooks, rest_hooks, run_bound
from wharfinger.runtime.tasks.values import changed_paths

log = logging.getLogger(__name__)

MAX_ROUNDS: Final = 5
UNINSTALL: Final = "uninstall"
DELETE_BINDINGS: Final = ("beforeDeleteHelm", "afterDeleteHelm")
OF_THE_RELEASE: Final = ("drift", "maintenance", "release", "resourceRequests")
"""The subjects of warnings that do not apply once there is no release."""


async def run(instance: Instance, tools: Tools, reporter: Reporter) -> None:
    """Apply the release to the cluster as the values require, with hooks before and after. A package without a chart has
    hooks only.
    """
    definition = instance.loaded()
    if definition.chart is None and not instance.hooks:
        reporter.released(instance, 0)
        return
    inputs = fingerprint(_digest(instance), instance.id.namespace, instance.wanted_settings, instance.wanted)
    record = await instance.recorded(tools)
    unchanged = (inputs, checksum(instance.values)) == (record.state.applied, record.state.values)
    if record.state.withdrawn:
        await record.update(lambda state: state.placed())
    steps = instance.journalled()
    steps.begin(inputs)
    if definition.layout is not Layout.MODULE_FOLDER and unchanged and not instance.verified:
        # After a restart: what an earlier process completed is checked, not done again.
        await _apply_round(instance, tools, reporter, _last_round(steps), unchanged=True)
    else:
        await _run_to_rest(instance, tools, reporter, unchanged=unchanged)
    values = checksum(instance.values)
    await record.update(lambda state: state.applied_as(inputs, values, instance.wanted_settings.checksum))
    steps.finish()
    instance.verified = True


async def _run_to_rest(instance: Instance, tools: Tools, reporter: Reporter, *, unchanged: bool) -> None:
    """Run the hooks, and the release between them, until afterHelm hooks leave the values unchanged. Raises ValuesLoopError."""
    await run_bound(instance, tools, reporter, "beforeHelm")
    loop: dict[str, None] = {}
    for number in range(1, MAX_ROUNDS + 1):
        instance.dirty = False  # changes of event hooks from here on need another run
        before = instance.values
        rendered_from = await _apply_round(instance, tools, reporter, number, unchanged=unchanged and number == 1)
        hooks = await run_bound(instance, tools, reporter, "afterHelm", number=number)
        if checksum(instance.values) == rendered_from:
            return
        paths = ", ".join(changed_paths(before, instance.values))
        loop |= dict.fromkeys(f"{hook} ({paths})" for hook in sorted(hooks))
        log.info("%s: afterHelm hooks changed the values (%s); applying again", instance.id, paths)
    raise ValuesLoopError(
        f"afterHelm hooks of {instance.package} {instance.version} changed the values {MAX_ROUNDS} times in a row: "
        f"{'; '.join(loop)}; a hook must stop changing the values when nothing else changes"
    )


def _last_round(steps: Steps) -> int:
    """Return the last round that a killed process applied before it could record the end of its run; otherwise the first."""
    return next((number for number in range(MAX_ROUNDS, 1, -1) if steps.done(f"apply/{number}") is not None), 1)


async def _apply_round(instance: Instance, tools: Tools, reporter: Reporter, number: int, *, unchanged: bool) -> str:
    """Apply the values to the cluster, unless a killed process did; return the checksum of the applied values.

    ``unchanged``: everything requested was applied before.
    """
    definition, steps, step = instance.loaded(), instance.journalled(), f"apply/{number}"
    if definition.chart is None:
        reporter.released(instance, 0)
        return checksum(instance.values)
    tools.releases.wake(Owner(instance.id.release, instance.id.namespace))
    if (done := await applied_before(instance, tools, steps.done(step))) is not None:
        revision, _, applied = done.partition(" ")
        await restore(instance, tools)
        reporter.released(instance, int(revision))
        return applied
    applied = checksum(instance.values)
    with steps.taking(step) as taken:
        taken.result = f"{await apply(instance, tools, reporter, definition, unchanged=unchanged)} {applied}"
    return applied


async def await_ready(instance: Instance, tools: Tools, reporter: Reporter) -> None:
    """Wait until the applied objects are ready, naming the laggards.

    There is no time limit: a new wish or the end interrupts it.
    """

    def progress(laggards: Laggards) -> None:
        if laggards:
            reason, shown = _unready(instance, tools, laggards)
            reporter.progressed(instance, Stage.SCALED, reason, instance.masked(waiting_for(shown)))
        every = [str(key) for key in instance.objects]
        reporter.tracked(instance, every, [str(key) for key in laggards])

    with waiting(tools):
        report = await tools.releases.wait_ready(instance.id.release, instance.id.namespace, progress=progress)
    if report.failed:
        raise WorkloadError(waiting_for(report.failed))
    await await_ready_by_hook(instance, tools, reporter)


def _unready(instance: Instance, tools: Tools, laggards: Laggards) -> tuple[Reason, Laggards]:
    """Return the reason and the laggards to report.

    A package that an earlier process left Ready is not Ready while one is stalled.
    """
    status = instance.status
    if status.is_being_verified or status.stages[Stage.SCALED].reason == Reason.UNHEALTHY:
        stalled = tools.releases.health(Owner(instance.id.release, instance.id.namespace)).stalled
        if late := {key: state for key, state in laggards.items() if key in stalled}:
            return Reason.UNHEALTHY, late
    return Reason.NOT_READY, laggards


async def pause(instance: Instance, tools: Tools, _reporter: Reporter) -> None:
    """Stop the hooks and keep the release: objects in the cluster are kept."""
    await rest_hooks(instance, tools)


async def take_away(instance: Instance, tools: Tools, reporter: Reporter) -> None:
    """Disable the package and uninstall its release; the loaded version is kept, to be enabled again."""
    instance.deletion = instance.wanted.upkeep.deletion
    record = await instance.recorded(tools)
    # Recorded first, so that nothing deleted counts as applied; the results of the hooks' synchronizations are deleted, too.
    await record.update(lambda state: state.applied_as("", "", "").synchronized_with({}))
    if any(bound_hooks(instance.hooks, binding) for binding in DELETE_BINDINGS):
        await adopt_wanted(instance, tools)
    await _uninstall(instance, tools, reporter, during_removal=False)
    await record.update(lambda state: state.taken_away())  # the status reports it later, unless the process is killed
    instance.journalled().finish()
    for subject in OF_THE_RELEASE:
        reporter.warned(instance, subject, ())
    reporter.uninstalled(instance)


async def uninstall(instance: Instance, tools: Tools, reporter: Reporter) -> None:
    """Uninstall the release permanently. No release, or none that we ever wrote, is success."""
    if instance.definition is None and instance.has_release:
        await _load_for_removal(instance, tools)
    if instance.definition is not None:
        await _adopt_for_removal(instance, tools)
    await _uninstall(instance, tools, reporter, during_removal=True)


async def undeploy(instance: Instance, tools: Tools, _reporter: Reporter) -> None:
    """Remove the package from the disk, collect blobs that no other package uses, and delete its recorded state."""
    steps = instance.journalled()
    if steps.done("undeploy") is None:
        with steps.taking("undeploy"):
            await tools.store.undeploy(instance.id.name)
            await tools.store.collect()
            if instance.has_release:
                await state_record(tools.cluster, instance.id).delete()  # even if it cannot be read


def _digest(instance: Instance) -> str:
    return str(instance.manifest.descriptor.digest) if instance.manifest else ""


async def _uninstall(instance: Instance, tools: Tools, reporter: Reporter, *, during_removal: bool) -> None:
    def progress(laggards: Laggards) -> None:
        if laggards and during_removal:
            waits = instance.masked(waiting_for(laggards))
            reporter.removing(instance, "Removing", f"waiting until it is gone: {waits}")

    if instance.hook_scope is not None:
        instance.hook_scope.cancel("the package is being uninstalled")
    if not instance.has_release:
        return
    name, namespace = instance.id.release, instance.id.namespace
    history = await tools.releases.history(name, namespace)
    ours = any(release.holder and release.labels.get(PACKAGE_LABEL) == instance.id.name for release in history)

    steps = instance.journalled()
    steps.begin_once(UNINSTALL)

    async def run_hooks(binding: str) -> None:
        hooks = bound_hooks(instance.hooks, binding)
        if not hooks or instance.skip_delete_hooks:
            return
        if during_removal:
            names = ", ".join(hook.name for hook in hooks)
            reporter.removing(instance, "Removing", f"running its {binding} hooks: {names}")
        await run_bound(instance, tools, reporter, binding)

    withdrawn = instance.record is not None and instance.record.state.withdrawn
    applied = bool(instance.status.version) and not withdrawn
    if ours:
        await run_hooks("beforeDeleteHelm")
    if history and not ours:
        await tools.releases.forget(Owner(name, namespace))  # objects that were applied before its first revision
    else:
        # Without a record there is no step: leftover objects are searched again after a crash.
        with steps.taking(UNINSTALL) if ours else nullcontext(), waiting(tools):
            result = await tools.releases.uninstall(
                name,
                namespace,
                delete_protected=instance.deletion is DeletionPolicy.DELETE_ALL,
                orphan=instance.deletion is DeletionPolicy.ORPHAN,
                applied=applied,
                progress=progress,
            )
        if not result.found:
            _tell_left(instance, result)
    tools.releases.wake(Owner(name, namespace))  # the next release with this name is not suspended
    if ours or applied:
        await run_hooks("afterDeleteHelm")
    await collect_made(instance, tools)
    await remove_webhooks(instance, tools)
    await rest_hooks(instance, tools)
    instance.objects = ()


def _tell_left(instance: Instance, result: UninstallResult) -> None:
    """Log the fate of each object of a release whose record is gone, because no record shows it any more."""
    for key in result.deleted:
        log.info("%s: deleted %s: it was left over from this package's release, whose record is gone", instance.id, key)
    for key, why in result.kept.items():
        log.info("%s: %s is left over from its release, and is kept: %s", instance.id, key, why)


async def _load_for_removal(instance: Instance, tools: Tools) -> None:
    """Load a package for its removal after a restart, because its hooks have to run.

    Unreadable packages do not block the removal.
    """
    try:
        state = (await instance.recorded(tools)).state
        manifest = await tools.store.installed(Digest(state.digest)) if state.digest else None
        if manifest is None:
            return
        instance.package, instance.version = state.source.rpartition(" ")[2], state.version
        instance.manifest, instance.tree = manifest, await tools.store.install(manifest)
        await tools.store.deploy(instance.id.name, manifest)  # removed by Undeploy
        await read_package(instance, tools)
    except EXPECTED as error:
        _without_hooks(instance, error)


async def _adopt_for_removal(instance: Instance, tools: Tools) -> None:
    """Set the values for hooks during the removal, if the package was not configured since it was loaded."""
    try:
        await adopt_wanted(instance, tools)
    except EXPECTED as error:
        asked = bound_hooks(instance.hooks, "beforeDeleteHelm") or bound_hooks(instance.hooks, "afterDeleteHelm")
        if asked and not classify(error).permanent and not instance.skip_delete_hooks and instance.status.version:
            raise  # clean-up hooks are not skipped because of a transient error
        _without_hooks(instance, error)


def _without_hooks(instance: Instance, error: Expected) -> None:
    instance.hooks = ()
    log.warning("%s: removed without its hooks: %s", instance.id, instance.masked(str(error)))
