"""The tasks Configure and Startup, which turn settings into values and start the hooks, and the functions that other tasks use
to run hooks at stages of the package and to stop the hooks.

Startup depends on the layout. For packages with a ``package.yaml``, the watches of bindings start first, and then the onStartup
hooks run, each hook once for each version: a hook that is recorded as done is not run again, not even after a crash. A binding
whose hook has already seen all objects (:mod:`~wharfinger.runtime.tasks.synchronizations`) is not synchronized again. For
addon-operator's modules, the onStartup hooks run first, and everything is repeated at every start, as addon-operator's contract
requires. These are the defaults; options of the daemon can set another policy
(:mod:`~wharfinger.runtime.lifecycle.restart_policy`). In both layouts, every kubernetes binding is synchronized before its
events are passed to the hook. After a failure, the next Startup does only the missing steps.
"""

import logging
from operator import attrgetter

from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.listing import counted
from wharfinger.hooks.config.bindings import HookConfig
from wharfinger.hooks.config.config import MAIN_QUEUE as HOOK_MAIN_QUEUE
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.discovery import Hook, HookKind
from wharfinger.hooks.running.package_hooks import PackageHooks
from wharfinger.hooks.watching import contexts
from wharfinger.packages.definition.definition import Layout
from wharfinger.packages.settings.values import SettingsError, check_settings, check_values_rules, merged_values
from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.package.events import Progressed, WarnedOf
from wharfinger.runtime.package.findings import Configured, HooksStarted, HooksStarting, HooksStopped, StartupHookDone
from wharfinger.runtime.package.instance import Host, Instance, Tools
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.tasks.configuration import comparable_settings, newest_settings
from wharfinger.runtime.tasks.event_tasks import SynchronizeTask, lane_of, named, synchronize
from wharfinger.runtime.tasks.health_expressions import check_health_rules
from wharfinger.runtime.tasks.hook_checks import check_by_hook
from wharfinger.runtime.tasks.hook_runs import Cause, run_hook, wait_hooks_quiet, with_snapshots
from wharfinger.runtime.tasks.synchronizations import knows_all, remember
from wharfinger.runtime.tasks.values import values_of

log = logging.getLogger(__name__)


async def configure(instance: Instance, tools: Tools, host: Host) -> None:
    """Configure the package with its settings. The settings are read only now, so that the newest ones are used.

    They are converted to the newest version of their schema, compared with the settings that were configured before (even by an
    earlier process), and merged into the values, which are checked, too. Raises ConversionError, SettingsError, RulesError,
    ReleasePolicyError.
    """
    definition, version = instance.loaded(), instance.desired.settings.version
    await check_health_rules(instance.desired.directives.release_policy.health, tools.rules)
    record = await instance.recorded(tools)
    newest = await newest_settings(instance, tools, host)
    before, filters = record.state, tools.filters.of(instance.id.name)
    old = await comparable_settings(definition, filters, before.configured, before.configured_version)
    report = await check_settings(definition, newest.settings, old, tools.rules)
    if report.problems:
        raise SettingsError(report.problems, subject=newest.subject)
    async with instance.values_lock:
        values = await _checked_values(instance, tools, newest.settings)
        await check_by_hook(instance, tools, host, report.settings, values)
        host.emit(instance, Configured(definition, newest, report.settings, values))
    if definition.settings_schema is not None and definition.settings_schema.compares:
        await record.update(lambda state: state.configured_as(report.settings, newest.version))
    else:
        await record.update(lambda state: state.configured_as(None))
    current = newest.version
    older = (
        f"spec.settings have version {version} of the schema, and are converted to version {current}, the newest one",
    )
    said = tuple(instance.masked(f"spec.settings.{warning.path}: {warning.message}") for warning in report.warnings)
    host.emit(instance, WarnedOf("settings", (older if 0 < version < current else ()) + said))


async def _checked_values(instance: Instance, tools: Tools, settings: JsonObject) -> JsonObject:
    """Return the values for the settings. If the values match the schemas only without the values patches of hooks, drop these
    patches.
    """
    definition = instance.loaded()
    before = instance.configuration.values if instance.is_configured else None
    values = values_of(instance, settings)
    report = await check_values_rules(definition, values, before, tools.rules)
    if report.problems and instance.patches:
        # Either the settings are wrong even without the patches; then the user has to correct them, and the patches are kept.
        # Or the values patches of another version's hooks do not match any more; then the hooks have to start over.
        fresh = merged_values(definition, settings)
        alone = await check_values_rules(definition, fresh, before, tools.rules)
        if alone.problems:
            raise SettingsError(alone.problems, subject="values")
        log.warning(
            "%s: dropped the values patches of its hooks, because they do not match the schemas of this version",
            instance.id,
        )
        record = await instance.recorded(tools)
        await record.update(lambda state: state.started_anew())
        if instance.hooks.scope is not None:
            instance.hooks.scope.cancel("the values patches of hooks were dropped")
        return fresh
    if report.problems:
        raise SettingsError(report.problems, subject="values")
    return values


async def startup(instance: Instance, tools: Tools, host: Host) -> None:
    """Start the hooks, once after each load of the package. If the hooks were stopped since then, start all of them again."""
    if not instance.files.hooks:
        return
    early = instance.loaded().layout is Layout.MODULE_FOLDER
    scope = instance.hooks.scope
    if scope is None or scope.cancelled:
        await end_hooks(instance, tools, host)
        scope = WorkScope(f"hooks of {instance.id.name}")
        host.emit(instance, HooksStarting(scope))
    if instance.hooks.started is None:
        message = f"starting {counted(len(instance.files.hooks), 'hook')}"
        host.emit(instance, Progressed(Stage.HOOKS, "StartingHooks", message))
    if early:
        await _run_startup_hooks(instance, tools, host)
    if (started := instance.hooks.started) is None:
        started = await tools.hook_services.start(instance.id.name, instance.files.hooks, namespace=instance.isolation)
        host.emit(instance, HooksStarted(started))
    await _synchronize_all(instance, tools, host, started, scope)
    if not early:
        await _run_startup_hooks(instance, tools, host)
    if not tools.synchronization.always(instance.loaded().layout):
        await remember(instance, tools)
    tools.hook_services.start_schedules(started)


async def end_hooks(instance: Instance, tools: Tools, host: Host) -> None:
    """Stop the hooks: interrupt the running hooks, and end their watches.

    If this is interrupted, the hooks count as stopped; hooks that still run are stopped before the next start.
    """
    if instance.hooks.scope is not None:
        instance.hooks.scope.cancel("the package's hooks are stopped")
    host.emit(instance, HooksStopped())
    await wait_hooks_quiet(instance)
    tools.metrics.forget(instance.id.name)
    await tools.hook_services.stop(instance.id.name)


async def run_bound(instance: Instance, tools: Tools, host: Host, binding: str, *, number: int = 1) -> set[str]:
    """Run the hooks of a Helm binding (``beforeHelm`` …) in their order, with all their snapshots.

    Return the names of the hooks that changed the values. Each hook is a step of the operation, which is skipped if it is
    complete in the journal; ``number`` is the number of the pass (:mod:`~wharfinger.runtime.tasks.run_tasks`).
    """
    steps, changed = instance.journalled(), set[str]()
    for hook in bound_hooks(instance.files.hooks, binding):
        step = f"{binding}/{number}/{hook.name}"
        if steps.done(step) is not None:
            continue
        with steps.taking(step):
            telling = with_snapshots(instance, hook, binding)
            if await run_hook(instance, tools, host, hook, telling, Cause(binding)):
                changed.add(hook.name)
    return changed


ORDERS = {
    "onStartup": attrgetter("on_startup"),
    "beforeHelm": attrgetter("before_helm"),
    "afterHelm": attrgetter("after_helm"),
    "beforeDeleteHelm": attrgetter("before_delete_helm"),
    "afterDeleteHelm": attrgetter("after_delete_helm"),
    "beforeAll": attrgetter("before_all"),
    "afterAll": attrgetter("after_all"),
}


def order_of(config: HookConfig, binding: str) -> int | None:
    """Return the order that a hook's configuration states for a binding such as ``onStartup``; None if the hook does not have
    this binding.
    """
    order: int | None = ORDERS[binding](config)
    return order


def bound_hooks(hooks: tuple[Hook, ...], binding: str) -> tuple[Hook, ...]:
    """Return the hooks of a binding, sorted by order. Hooks of equal order stay in the sequence of ``hooks``: by path, and by
    index if one executable contains several hooks.
    """
    found = [(order, hook) for hook in hooks if (order := order_of(hook.config, binding)) is not None]
    return tuple(hook for _, hook in sorted(found, key=lambda pair: pair[0]))


async def _run_startup_hooks(instance: Instance, tools: Tools, host: Host) -> None:
    record = await instance.recorded(tools)
    once = not tools.on_startup.always(instance.loaded().layout)
    for hook in bound_hooks(instance.files.hooks, "onStartup"):
        if hook.name in instance.hooks.startup_done or (once and hook.name in record.state.started):
            continue
        host.emit(instance, Progressed(Stage.HOOKS, "StartingHooks", f"running {hook.name} (onStartup)"))
        await run_hook(instance, tools, host, hook, lambda: (contexts.on_startup(),), Cause("onStartup"))
        if once:
            name = hook.name
            await record.update(lambda state: state.startup_done(name))  # noqa: B023 - called before the next turn
        host.emit(instance, StartupHookDone(hook.name))


async def _synchronize_all(instance: Instance, tools: Tools, host: Host, hooks: PackageHooks, scope: WorkScope) -> None:
    again = tools.synchronization.always(instance.loaded().layout)
    runs = [
        (hook, bindings, (hook.name, bindings[0].name, number))
        for hook in instance.files.hooks
        for number, bindings in enumerate(contexts.synchronized_together(hook.config))
    ]
    # A readiness hook runs later, and gets no Synchronization. This set is made before the first run, because all entries of
    # a hook are removed from the record as soon as the hook is notified for one binding.
    known = {
        key
        for hook, bindings, key in runs
        if hook.kind is HookKind.READINESS
        or (not again and all(knows_all(instance, hook, binding) for binding in bindings))
    }
    for hook, bindings, key in runs:
        if key in hooks.synchronized:
            continue
        head = bindings[0]
        if key in known:
            for binding in bindings:
                hooks.monitor(hook, binding).unlock()
        elif head.wait_for_synchronization or head.queue == HOOK_MAIN_QUEUE:
            doing = f"synchronizing {hook.name} with {named(bindings)}"
            host.emit(instance, Progressed(Stage.HOOKS, "StartingHooks", doing))
            await synchronize(instance, tools, host, hooks, hook, bindings)
        else:
            task = SynchronizeTask(hook, bindings, hooks, instance, tools, host, scope)
            if not host.run_later(instance, task, lane_of(head.queue)):
                raise HookError(
                    hook.name, "the queue is full, so its synchronization cannot be enqueued", transient=True
                )
        hooks.synchronized.add(key)
